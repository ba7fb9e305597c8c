"""The kernels that are antagonists, one for each part of the machine, as real processes."""

import signal
import subprocess
from pathlib import Path

import pytest

from castmates.study.catalogue import gather_catalogue
from castmates.study.memory_peak import Peak, at_peak
from castmates.study.model import Catalogue, Study
from castmates.study.placement.layout import Cpu, Layout
from castmates.study.reading import read_keys
from castmates.workloads.heartbeat import Reader, State
from castmates.workloads.native import build as native
from tests.needs import insist
from tests.runner.programs import PATIENCE, command, run, start, wait_until

PEAK = Peak("2026-11-23", ((1, {"read": 15e9, "triad": 10e9}),))
on_x86 = pytest.mark.needs("x86-64")  # only x86 locks words that lie in two lines


@pytest.mark.parametrize("file", ["kernels", "spec-like"])
def test_the_catalogue_says_what_the_kernels_understand(kernels, file):
    """The options are read before --help is answered."""
    path = Path(__file__).parents[2] / f"config/workloads/{file}.yaml"
    entries = read_keys(Catalogue, path.read_text(encoding="utf-8"), str(path))
    workloads = gather_catalogue([(str(path), entries)], Study(name="none"), "none", ["native"])
    workloads = at_peak(workloads, [[name, name] for name in workloads], Layout((Cpu(0, 0, package=0),)), PEAK)
    for name, workload in workloads.items():
        words = [word.replace("{cpus}", "2") for word in workload.words[1:]]
        status, out, err = run([kernels / workload.words[0], *words, "--help"])
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


@pytest.mark.parametrize("instead", [";", "s->table[0] ^= cm_mix(i + 1);"], ids=["nowhere", "one place"])
@pytest.mark.parametrize("units", ["1", "1000003"])
def test_updates_that_go_to_no_or_a_wrong_place_are_noticed(compiler, tmp_path, instead, units):
    right = "*gather_at(s, i) ^= cm_mix(i + 1);"
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
