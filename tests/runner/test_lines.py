"""The keeper that reads output: every line that is a step becomes progress, whatever else a program writes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest

from castmates.linux.processes import Family
from castmates.runner.processes.freezer import SignalFreezer
from castmates.study.model import Workload
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import State
from castmates.workloads.native.build import SOURCES, compile_flags, compile_program
from tests.runner.stage import PYTHON, counter, measured, plan_of
from tests.waiting import PATIENCE, wait_for

LONG = b"x" * 300_000
STEP = "step ([0-9]+)"
TWO_CPUS = pytest.mark.needs("two-cpus")


class Lines:
    """The keeper at work, with a heartbeat."""

    def __init__(self, program: Path, folder: Path, *words: str) -> None:
        heartbeat.create(folder / "beats")
        self.beats = heartbeat.Reader(folder / "beats")
        channel = {heartbeat.VARIABLE: str(folder / "beats")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [program, *words]
        self.process = subprocess.Popen(command, env=os.environ | channel, start_new_session=True, **pipes)
        self.family = Family(self.process.pid)

    def end(self) -> tuple[int, bytes, str]:
        out, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, said.decode()

    def units(self) -> list[int]:
        return [units for _, units in self.beats.beats(0).records]

    def tell(self, line: str) -> None:
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def program(compiler: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lines") / "lines"
    compile_program(SOURCES / "lines.c", place, compiler, compile_flags(compiler))
    return place


@pytest.fixture
def follow(program, tmp_path) -> Iterator[Callable[..., Lines]]:
    keepers = []

    def start(*words: str) -> Lines:
        keepers.append(Lines(program, tmp_path, *words))
        return keepers[-1]

    yield start
    for one in keepers:
        left = one.family.kill(5)
        one.process.wait(PATIENCE)
        for pipe in (one.process.stdin, one.process.stdout, one.process.stderr):
            pipe.close()
        assert left == []


def printed(follow, folder: Path, text: bytes) -> list[int]:
    """What is reported of a command that writes this."""
    (folder / "text").write_bytes(text)
    one = follow("--step", STEP, "--", "cat", str(folder / "text"))
    status, out, _ = one.end()
    assert (status, out) == (0, text)
    assert one.beats.state is State.FINISHED
    return one.units()


@pytest.mark.parametrize(
    ("text", "units"),
    [
        (b"step 0\nstep 10\nloss 3\nstep 25\n", [10, 25]),
        (b"step 1000\nstep 1001\n", [1]),  # it goes on from a checkpoint
        (b"step 5\nstep 7\nstep 1\nstep 3\n", [2, 3, 5]),  # a new count
        (b"step 5\nstep 5\nstep 6\n", [1]),  # a line that is repeated
        (b"\rstep 1\rstep 2\rstep 3", [1, 2]),  # a progress bar; the last line has no end
        (b"step 1\r\nstep 2\r\n", [1]),
        (b"\x1b[1;32mstep\x1b[0m 1\n\x1b]0;title\astep \x1b[1m2\n", [1]),  # colours
        (b"\x00\xff\xfe step 1\n\x80\x00step 2\n", [1]),
        (b"step 1\n" + LONG + b" step 9\nstep 2\n", [1]),  # too long a line: its end is not looked at
        (b"nothing\n", []),
    ],
)
def test_numbers_are_units_so_far(follow, tmp_path, text, units):
    assert printed(follow, tmp_path, text) == units


def test_without_a_group_each_line_is_one_unit(follow):
    one = follow("--step", "^done", "sh", "-c", "echo done; echo not done; printf done")
    assert one.end()[0] == 0
    assert one.units() == [1, 2]


def test_output_is_a_terminal_and_what_comes_in_pieces_is_one_line(follow):
    code = "import sys; print(sys.stdout.isatty(), end=' '); print('ste', end='', flush=True); print('p 4')"
    one = follow("--step", STEP, "--ready", "True step", "--", sys.executable, "-c", code)
    assert one.end() == (0, b"True step 4\n", "")
    assert one.beats.state is State.FINISHED


def test_ready_comes_with_its_line_and_what_was_before_does_not_count(follow):
    one = follow("--step", STEP, "--ready", "^begin", "--", "cat")
    one.tell("step 1\nstep 50\n")
    wait_for(lambda: b"50" in os.read(one.process.stdout.fileno(), 100), "the text has come through")
    assert (one.beats.state, one.units()) == (State.STARTING, [])
    one.tell("begin\nstep 52\n")
    wait_for(lambda: one.units() == [2], "the units are reported")
    assert one.beats.state is State.READY
    one.process.stdin.close()
    assert one.process.wait(PATIENCE) == 0


def test_a_number_that_is_none_ends_the_keeper_with_a_sentence(follow):
    one = follow("--step", "epoch ([^ ]+)", "--", "sh", "-c", "echo epoch 0.25; sleep 60")
    status, _, said = one.end()
    assert (status, one.beats.state) == (4, State.FAILED)
    assert said == "castmates lines: the first group of the step's line must match a whole number, but is '0.25'\n"


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("echo step 1; exit 7", 7, ""),
        ("kill -9 $$", 137, "castmates lines: sh was killed by signal 9\n"),
        ("echo oops >&2; exit 1", 1, ""),
    ],
)
def test_it_ends_as_its_command_ends(follow, command, status, said):
    one = follow("--step", STEP, "sh", "-c", command)
    found, out, err = one.end()
    assert (found, err, one.beats.state) == (status, said, State.FAILED)
    assert out in (b"step 1\n", b"oops\n", b"")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--step", "(", "true"], 2, "lines: --step is no POSIX extended regular expression"),
        (["true"], 2, "lines: --step is missing"),
        (["--step", "a"], 2, "lines: a command to run is missing"),
        (["--step", "a", "no-such-program"], 127, "castmates lines: cannot run no-such-program: No such file"),
    ],
)
def test_bad_arguments_are_a_sentence(follow, words, status, said):
    found, _, err = follow(*words).end()
    assert found == status
    assert err.startswith(said)
    assert err.count("\n") == 1


@pytest.mark.parametrize(("trap", "status"), [("", 0), ("trap 'exit 143' TERM;", 0), ("trap 'exit 3' TERM;", 3)])
def test_sigterm_is_handed_on_and_is_no_verdict(follow, trap, status):
    one = follow("--step", STEP, "sh", "-c", f"{trap} echo step 1; while :; do sleep 0.01; done")
    wait_for(lambda: one.beats.state is State.READY, "it is ready")
    one.process.send_signal(signal.SIGTERM)
    assert one.end()[0] == status
    assert one.beats.state is State.FINISHED


def test_endless_output_does_not_keep_signals_from_being_heard(follow):
    one = follow("--step", "y", "yes")
    wait_for(lambda: os.read(one.process.stdout.fileno(), 1 << 16) and one.beats.head > 100, "it reports what is read")
    one.process.send_signal(signal.SIGTERM)
    assert one.end()[0] == 0


def test_killed_it_takes_the_command_with_it_and_hides_its_heartbeat(follow):
    script = f"echo step 1 ${{{heartbeat.VARIABLE}:-hidden}}; exec sleep 100"
    one = follow("--step", "step 1 hidden", "sh", "-c", script)
    wait_for(lambda: one.beats.state is State.READY, "it is ready")
    (child,) = psutil.Process(one.process.pid).children()
    one.process.kill()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the command has ended")


def test_frozen_it_reports_nothing_and_thawed_it_goes_on(follow):
    script = "i=0; while :; do i=$((i+1)); echo step $i; sleep 0.002; done"
    one = follow("--step", STEP, "sh", "-c", script + " > /dev/fd/1")
    freezer = SignalFreezer()
    freezer.adopt("one", one.process.pid)
    drain = subprocess.Popen(["cat"], stdin=one.process.stdout, stdout=subprocess.DEVNULL)
    wait_for(lambda: one.beats.head > 5, "it reports")
    freezer.freeze("one")
    assert freezer.is_frozen("one")
    head = one.beats.head
    signal.sigtimedwait([], 0.2)
    assert one.beats.head == head
    freezer.thaw("one")
    wait_for(lambda: one.beats.head > head + 5, "it goes on after the thaw")
    units = one.units()
    assert units == list(range(1, len(units) + 1))  # not one line is lost
    freezer.kill("one")
    assert drain.wait(PATIENCE) == 0


# In a launch --------------------------------------------------------------------------------------------------------

SPEAKER = (
    "import time, sys\nprint('begin', flush=True)\nn = 0\nwhile True:\n n += 1; time.sleep(0.002); print('at', n)\n"
)


def speaker(**keys: object) -> Workload:
    lines = {"progress": "output", "step_line": r"^at (\d+)$", "ready_line": "^begin", "unit": "step"}
    return Workload.model_validate({"command": [PYTHON, "-c", SPEAKER], **lines, **keys})


def followed(lead: Workload, cache: Path, folder: Path) -> dict:
    plan = plan_of({"lead": lead, "beside": counter()}, ["beside"], cache, rounds=1, spare_rounds=0)
    return measured(plan, folder, cache)


@TWO_CPUS
def test_a_member_is_followed_by_its_output(cache, tmp_path):
    record = followed(speaker(), cache, tmp_path)
    assert record["status"] == "measured", record["reason"]
    slices = pd.read_parquet(tmp_path / "slices.parquet")
    assert slices[slices["role"] == "lead"]["beats"].sum() > 0
    (lead,) = [one for name, one in record["members"].items() if name.startswith("lead@")]
    assert lead["command"][5:10] == ["--step", "^at ([0-9]+)$", "--ready", "^begin", "--"]
    assert lead["last_lines"][-1].startswith("at ")


@TWO_CPUS
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"ready_line": "never", "ready_within": 0.5},
            "was not ready within 0.5 s: no line of its output matched 'ready_line' (never)",
        ),
        (
            {"command": ["sh", "-c", "echo hello; sleep 1"]},
            "ended by itself with status 0 before it was ready: no line of its output matched",
        ),
        (
            {"command": "no-such", "package": "such"},
            "no program 'no-such'; install it (apt-get install such)",
        ),
    ],
)
def test_a_line_that_never_comes_is_a_sentence(cache, tmp_path, keys, said):
    record = followed(speaker(**keys), cache, tmp_path)
    assert record["status"] == "failed"
    assert said in record["reason"]
