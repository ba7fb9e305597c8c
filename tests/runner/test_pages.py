"""Which pages kernels lie on, as this system's kernel counts them."""

import ctypes
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from castmates.runner.processes.starts import ON_HUGE_PAGES, pages_of, wanted
from castmates.workloads.heartbeat import Reader, State, create
from castmates.workloads.native import build as native
from tests.needs import lacks
from tests.runner.programs import run, start, wait_until

MIB = 1 << 20
SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PR_SET_THP_DISABLE = 41


def counted(kernels: Path, beats: Path, words: str, before=None) -> dict[str, int | str]:
    """What the kernel counts of a program that is ready."""
    name, *options = words.split()
    environment = {"CASTMATES_HEARTBEAT": str(beats)}
    process = subprocess.Popen([kernels / name, *options], env=environment, preexec_fn=before)
    try:
        with Reader(beats) as reader:
            wait_until(lambda: reader.state is State.READY)
        found = pages_of([process.pid], [name, *options])
        assert found is not None
        return found
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def huge() -> None:
    if not SWITCH.is_file() or "[never]" in SWITCH.read_text():
        lacks("huge-pages", "transparent_hugepage is never, or not shown")


@pytest.mark.usefixtures("huge")
@pytest.mark.parametrize("words", ["chase --bytes 16M", "capacity --bytes 16M", "stream --bytes 16M --huge"])
def test_what_asks_for_huge_pages_has_them(kernels, beats, words):
    found = counted(kernels, beats, words)
    assert (found["huge"], found["wanted"]) == (16 * MIB, "huge")


@pytest.mark.parametrize(
    "words", ["stream --bytes 16M", "chase --bytes 16M --small", "tlb --bytes 16M", "gather --bytes 16M"]
)
def test_what_does_not_ask_has_usual_pages_whatever_the_system_gives(kernels, beats, words):
    """Where transparent_hugepage is `always`, these had huge ones, and 4 KiB where it is `madvise`."""
    found = counted(kernels, beats, words)
    assert (found["huge"], found["wanted"]) == (0, "usual")
    assert found["resident"] >= 16 * MIB


def test_every_kernel_decides_by_advice_and_not_by_the_systems_default(kernels, tmp_path):
    """The flags of the mapping are the same with `always` and with `madvise`: hg, or nh."""
    if not SWITCH.is_file():
        lacks("huge-pages", "this kernel has no transparent huge pages")
    for number, (words, flag) in enumerate({"stream --bytes 8M": "nh", "chase --bytes 8M": "hg"}.items()):
        create(tmp_path / f"beats{number}")
        name, *options = words.split()
        process = start([kernels / name, *options], tmp_path / f"beats{number}")
        try:
            with Reader(tmp_path / f"beats{number}") as reader:
                wait_until(lambda reader=reader: reader.state is State.READY)
            assert flag in flags_of_largest(process.pid)
        finally:
            process.kill()
            process.communicate()


def flags_of_largest(pid: int) -> list[str]:
    """The flags of the mapping that holds most."""
    best, resident = [], 0
    size = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if line.startswith("Rss:"):
            size = int(line.split()[1])
        elif line.startswith("VmFlags:") and size > resident:
            best, resident = line.split()[1:], size
    return best


@pytest.mark.usefixtures("huge")
def test_a_promise_of_huge_pages_that_is_not_kept_is_reported(kernels):
    """The advice succeeds all the same."""
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) != 0:
        lacks("huge-pages", "prctl cannot forbid huge pages")
    forbidden = "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    status, _, err = run([sys.executable, "-c", forbidden, kernels / "chase", "--bytes", "16M", "--units", "9"])
    assert (status, err.count("\n")) == (0, 1)
    assert f"chase: wanted {16 * MIB} bytes on huge pages, has 0" in err


@pytest.mark.parametrize("kernel", [name for name in native.KERNELS if name not in native.KEEPERS])
def test_the_record_knows_what_each_kernel_asks_for(kernels, kernel):
    _, help_text, _ = run([kernels / kernel, "--help"])
    assert ("on huge pages (default)" in help_text) is (kernel in ON_HUGE_PAGES) is (wanted([kernel]) == "huge")


def test_what_is_wanted_follows_from_the_command():
    assert [
        wanted(words.split()) for words in ("chase --small", "/bin/stream --huge", "stream", "python x", "loop x")
    ] == [*("usual", "huge", "usual", "as the system gives", "as the system gives")]


def test_pages_of_several_processes_are_added_and_of_none_not_known(tmp_path):
    for pid in (1, 2):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/smaps_rollup").write_text("0-f ---p\nRss:  3 kB\nAnonHugePages:  2 kB\nSwap: 9 kB\n")
    found = pages_of([1, 2, 3], ["python"], tmp_path)
    assert found == {"resident": 6144, "huge": 4096, "wanted": "as the system gives"}
    assert pages_of([3], ["python"], tmp_path) is None
