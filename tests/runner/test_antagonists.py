"""The kernels that are antagonists, one for each part of the machine, as real processes."""

import json
import re
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from castmates.study.catalogue import gather
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read
from castmates.workloads.heartbeat import Reader, State, create
from castmates.workloads.native import build as native
from tests.needs import insist
from tests.runner.programs import PATIENCE, run, start, wait_until

on_x86 = pytest.mark.needs("x86-64")  # only x86 locks words that lie in two lines

# Each with a small working set, and units that are no multiple of a usual chunk but one of the kernel's step.
RUNS = [
    ("gather --bytes 64K", 1_000_003),
    ("gather --bytes 64K --mode update", 1_000_003),
    ("stencil --bytes 64K", 512 * 1999),
    ("spmv --bytes 64K", 100_003),
    ("hashjoin --bytes 64K", 100_003),
    ("tree --bytes 64K", 100_003),
    ("search", 100_003),
    ("integer", 1_000_003),
    ("avx", 1024 * 1999),
    ("icache --bytes 64K", 64 * 9973),
    ("tlb --bytes 1M --parallel 3", 1_000_003),
    ("sharing --mode lock", 100_003),
    ("sharing --mode false", 1_000_003),
    ("sharing --mode true", 1_000_003),
    pytest.param("sharing --mode split", 10_003, marks=on_x86),
    ("pagefault --bytes 1M", 10_003),
    ("fileio --bytes 1M", 203),
    ("mix tree:20:64K icache:64:16K integer:100", 1003),
]


@pytest.fixture
def beats(tmp_path: Path) -> Path:
    path = tmp_path / "beats"
    create(path)
    return path


def command(kernels: Path, words: str, *more: str) -> list[str | Path]:
    name, *options = words.split()
    return [kernels / name, *options, *more]


@pytest.mark.parametrize(("words", "units"), RUNS)
def test_units_are_all_done_and_reported(kernels, beats, words, units):
    assert run(command(kernels, words, "--units", str(units)), beats) == (0, "", "")
    with Reader(beats) as reader:
        records = reader.beats(0).records
        assert reader.state is State.FINISHED
    assert records[-1][1] == units
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(records))


@pytest.mark.parametrize(("words", "units"), RUNS)
def test_runs_until_sigterm_and_is_right_then(kernels, beats, words, units):
    process = start(command(kernels, words), beats)
    with Reader(beats) as reader:
        wait_until(lambda: reader.state is State.READY and reader.head > 5)
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, "")
        assert reader.state is State.FINISHED


@pytest.mark.parametrize("file", ["kernels", "spec-like"])
def test_the_catalogue_says_what_the_kernels_understand(kernels, file):
    """The options are read before --help is answered."""
    path = Path(__file__).parents[2] / f"config/workloads/{file}.yaml"
    entries = read(Catalogue, path.read_text(encoding="utf-8"), str(path))
    workloads = gather([(str(path), entries)], Study(name="none"), "none", ["native"])
    for name, workload in workloads.items():
        status, out, err = run([kernels / workload.words[0], *workload.words[1:], "--help"])
        assert status == 0, f"{name}: {err}"
        assert out.startswith(f"usage: {workload.words[0]} ")
    if file == "kernels":
        assert {"true", "false", "split"} <= {word for one in workloads.values() for word in one.words}


def test_threads_share_the_working_set_and_the_units(kernels, beats):
    """Two of each kernel that a mix can have; their beats are one count."""
    words = "mix avx:1024 gather:100:128K hashjoin:9:128K search:9 spmv:9:128K stencil:512:128K tlb:9:1M tree:9:128K"
    assert run(command(kernels, words, "--threads", "2", "--units", "2001"), beats) == (0, "", "")
    with Reader(beats) as reader:
        assert reader.beats(0).records[-1][1] == 2001


@pytest.mark.parametrize(
    "words",
    [
        "gather --mode all",
        "gather --bytes 1K",
        "stencil --bytes 16K",
        "tlb --parallel 65",
        "integer --bytes 1M",
        "avx --threads 0",
        "sharing --mode maybe",
        "fileio --bytes 4K",
        "icache --units x",
        "mix",
        "mix tree",
        "mix tree:0",
        "mix trees:9",
        "mix tree.red:9",
        "mix avx:9",
        "mix avx:1024:4M",
        "mix tree:9:1",
        "mix a:1 --units 3",
        "mix stream.copy:3:4K --threads 8",
        "mix integer:9 tlb:9:256K --threads 16",
    ],
)
def test_bad_arguments_are_one_sentence_and_status_2(kernels, words):
    status, out, err = run(command(kernels, words))
    assert (status, out) == (2, "")
    assert f"{words.split()[0]}: " in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "what"),
    [("icache --bytes 1G", "of memory"), ("fileio --directory /nonesuch", "files in /nonesuch: No such")],
)
def test_what_cannot_be_had_is_said(kernels, beats, words, what):
    status, _, err = run(command(kernels, words), beats)
    assert status == 1
    assert what in err
    with Reader(beats) as reader:
        assert reader.state is State.FAILED


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_fileio_leaves_no_file_whatever_ends_it(kernels, beats, tmp_path, end):
    place = tmp_path / "files"
    place.mkdir()
    process = start(command(kernels, f"fileio --mode fsync --bytes 1M --directory {place}"), beats)
    with Reader(beats) as reader:
        wait_until(lambda: reader.head > 2)
    opened = [file.readlink() for file in Path(f"/proc/{process.pid}/fd").iterdir()]
    assert any(file.is_relative_to(place) for file in opened)
    assert list(place.iterdir()) == []
    process.send_signal(end)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == (0 if end is signal.SIGTERM else -end)
    assert list(place.iterdir()) == []


def test_fileio_says_that_the_disk_takes_no_more(kernels, tmp_path):
    insist("prlimit")
    words = ["prlimit", "--fsize=131072", kernels / "fileio", "--directory", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, restore_signals=False, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr


# Programs around the real sources: fresh states, some work, one value spoilt, and the verdict.
DAMAGES = [
    ("gather", "random", "", "right"),
    ("gather", "random", "s->pass.sum += 1", "not that of its passes"),
    ("gather", "random", "s->pass.at -= 1", "not that of its passes"),
    ("gather", "random", "s->table[5] ^= 1", "has changed"),
    ("gather", "update", "", "right"),
    ("gather", "update", "s->table[5] ^= 1", "missing, was made twice"),
    ("gather", "update", "s->pass.at += 1", "missing, was made twice"),
    ("gather", "update", "s->pass.passes += 1", "missing, was made twice"),
    ("stencil", None, "", "right"),
    ("stencil", None, "s->into[700] += 1", "grid that is written"),
    ("stencil", None, "s->from[700] += 1", "grid that is read"),
    ("stencil", None, "s->at += 1", "grid that is written"),
    ("spmv", None, "", "right"),
    ("spmv", None, "s->y[3] += 1", "not that of its last pass"),
    ("spmv", None, "s->value[8] += 1; spmv_work(s, s->rows)", "not that of its last pass"),
    ("spmv", None, "s->column[9] ^= 1; spmv_work(s, s->rows)", "not that of its last pass"),
    ("spmv", None, "s->at += 1", "not that of its last pass"),
    ("hashjoin", None, "", "right"),
    ("hashjoin", None, "s->pass.sum ^= 1", "sum of the matches"),
    ("hashjoin", None, "s->slots[hashjoin_slot(s, hashjoin_key(7))].load += 1", "has changed"),
    ("hashjoin", None, "s->slots[hashjoin_slot(s, hashjoin_key(7))].key = 0", "has not the rows"),
    ("tree", None, "", "right"),
    ("tree", None, "s->pass.sum ^= 1", "what the lookups found"),
    ("tree", None, "s->root->load ^= 1", "not the one that was planted"),
    ("tree", None, "s->root->child[0] = NULL", "not the one that was planted"),
    ("tree", None, "s->root->child[1] = (struct node *)s", "not the one that was planted"),
    ("tree", None, "s->root->child[1] = s->root", "not the one that was planted"),
    ("search", None, "", "right"),
    ("search", None, "s->pass.at += 1", "places found"),
    ("search", None, "s->keys[9] += 1", "has changed"),
    ("integer", None, "", "right"),
    ("integer", None, "s->linear[2] ^= 1", "chain of multiplications"),
    ("integer", None, "s->shifted[3] ^= 1", "chain of shifts"),
    ("integer", None, "s->done += 1", "does not stand"),
    ("avx", None, "", "right"),
    ("avx", None, "s->sum ^= 1", "plain numbers"),
    ("avx", None, "s->blocks += 1", "plain numbers"),
    ("icache", None, "", "right"),
    ("icache", None, "s->pass.sum ^= 1", "another sum"),
    (
        "icache",
        None,
        "mprotect(s->code, s->lines * 64, PROT_READ | PROT_WRITE);"
        "unsigned char *at = s->code + 64 * (uint64_t)s->order[70] + (sizeof(long) == 8 && s->code[0] == 0x48 ? 3 : 1);"
        "*at ^= 4; mprotect(s->code, s->lines * 64, PROT_READ | PROT_EXEC);"
        "__builtin___clear_cache((char *)s->code, (char *)s->code + s->lines * 64); icache_work(s, s->lines)",
        "another sum",
    ),
    ("tlb", None, "", "right"),
    ("tlb", None, "s->loads[0] += 1", "does not stand"),
    ("tlb", None, "*tlb_line(s, 9) = tlb_line(s, 0)", "closed before|does not stand"),
    ("tlb", None, "*tlb_line(s, 9) = s->memory + 8", "leads out"),
    ("sharing", "lock", "", "right"),
    ("sharing", "lock", "sharing_all.locked -= 1", "sum of what they counted"),
    ("sharing", "true", "sharing_all.common -= 1", "sum of what they counted"),
    ("sharing", "split", "sharing_all.split[60] -= 1", "sum of what they counted"),
    ("sharing", "false", "*s->own -= 1", "not what it counted"),
    ("pagefault", None, "", "right"),
    ("pagefault", None, "*(uint64_t *)s->memory += 1", "lost what was written"),
    ("pagefault", None, "s->faults = s->touched - 1", "fewer page faults"),
    ("fileio", "write", "", "right"),
    ("fileio", "write", "s->wrong += pwrite(s->file, s, 8, 700) != 8", "not what had been written"),
    ("fileio", "write", "close(s->file); fileio_work(s, 1)", "Bad file descriptor"),
]

SPOILER = """
#define CM_PART
%(sources)s
#define CASE(NUMBER, KERNEL, MODE, DAMAGE)                                  \\
    case NUMBER: {                                                          \\
        cm_options options = cm_default_options(&KERNEL##_kernel);          \\
        options.mode = MODE;                                                \\
        options.bytes = 1 << 18;                                            \\
        struct KERNEL *s = KERNEL##_prepare(&options, 0);                   \\
        KERNEL##_work(s, 3 * KERNEL##_kernel.step);                         \\
        KERNEL##_restart(s);                                                \\
        for (unsigned i = 0; i < 3; i++)                                    \\
            KERNEL##_work(s, 333 * KERNEL##_kernel.step);                   \\
        DAMAGE;                                                             \\
        wrong = KERNEL##_verify(s);                                         \\
        break;                                                              \\
    }
int main(int argc, char **argv)
{
    const char *wrong = NULL;
    switch (atoi(argv[argc - 1])) {
%(cases)s
    }
    puts(wrong == NULL ? "right" : wrong);
    return 0;
}
"""


@pytest.fixture(scope="module")
def spoiler(compiler: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One program for all damages: compiled once."""
    folder = tmp_path_factory.mktemp("spoiler")
    sources = "\n".join(f'#include "{kernel}.c"' for kernel in dict.fromkeys(kernel for kernel, *_ in DAMAGES))
    cases = [
        f"CASE({number}, {kernel}, {json.dumps(mode) if mode else 'NULL'}, {damage})"
        for number, (kernel, mode, damage, _) in enumerate(DAMAGES)
    ]
    (folder / "spoiler.c").write_text(SPOILER % {"sources": sources, "cases": "\n".join(cases)})
    native.compile_program(folder / "spoiler.c", folder / "spoiler", compiler, ("-std=gnu11", "-O1", "-pthread"))
    return folder / "spoiler"


@pytest.mark.parametrize("number", range(len(DAMAGES)), ids=[f"{kernel}: {what}" for kernel, _, what, _ in DAMAGES])
def test_verification_notices_damage(spoiler, number):
    if DAMAGES[number][1] == "split":
        insist("x86-64")  # only x86 locks words that lie in two lines
    status, out, _ = run([spoiler, str(number)])
    assert status == 0
    assert re.search(DAMAGES[number][3], out), out


@pytest.mark.parametrize("instead", [";", "s->table[0] ^= cm_mix(i + 1);"], ids=["nowhere", "one place"])
@pytest.mark.parametrize("units", ["1", "1000003"])
def test_updates_that_go_to_no_or_a_wrong_place_are_noticed(compiler, tmp_path, instead, units):
    right = "s->table[gather_place(s, i)] ^= cm_mix(i + 1);"
    source = (native.SOURCES / "gather.c").read_text(encoding="utf-8")
    assert source.count(right) == 1
    (tmp_path / "gather.c").write_text(source.replace(right, instead), encoding="utf-8")
    native.compile_program(tmp_path / "gather.c", tmp_path / "gather", compiler, ("-std=gnu11", "-O1", "-pthread"))
    status, _, err = run([tmp_path / "gather", "--bytes", "64K", "--mode", "update", "--units", units])
    assert (status, err.count("\n")) == (3, 1)
    assert "wrong place" in err


@on_x86
def test_sharing_says_that_the_system_forbids_split_locks(kernels, beats):
    process = start(command(kernels, "sharing --mode split"), beats)
    with Reader(beats) as reader:
        wait_until(lambda: reader.head > 0)
    process.send_signal(signal.SIGBUS)  # as the system does it with split_lock_detect=fatal
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.count("\n")) == (1, 1)
    assert "split_lock_detect=fatal" in err


def code_of(program: Path, function: str) -> str:
    insist("objdump", "x86-64")
    words = ["objdump", f"--disassemble={function}", program]
    code = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "ret" in code
    return code


def test_kernels_have_the_instructions_that_they_are_about(kernels):
    """What a compiler could do away with: scalar integers, branches, fused multiply-adds."""
    integer = code_of(kernels / "integer", "integer_work")
    assert "mul" in integer
    assert not any(wide in integer for wide in ("%xmm", "%ymm", "%zmm"))
    search = code_of(kernels / "search", "search_many")
    assert "cmov" not in search
    if re.search(r"\bfma\b", Path("/proc/cpuinfo").read_text()):
        assert code_of(kernels / "avx", "avx_block").count("vfmadd") >= 12
