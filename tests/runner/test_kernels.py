"""The native kernels as real processes, and the compiler that makes them."""

import shutil
import signal
import subprocess
import sys
from itertools import pairwise

import psutil
import pytest

from castmates.errors import CastmatesError
from castmates.workloads.heartbeat import VARIABLE, Reader, State, create
from castmates.workloads.native import build as native
from tests.runner.kernel_cases import RUNS
from tests.runner.programs import PATIENCE, command, run, start, wait_until


def test_every_kernel_is_run():
    words = [getattr(one, "values", one)[0] for one in RUNS]  # some have marks
    assert {word.split()[0] for word in words} == {*native.KERNELS}.difference(native.KEEPERS)


@pytest.mark.parametrize(("words", "units"), RUNS)
def test_units_are_all_done_and_reported(kernels, beats, words, units):
    assert run(command(kernels, words, "--units", str(units)), beats) == (0, "", "")
    with Reader(beats) as reader:
        found = reader.beats(0)
        assert reader.state is State.FINISHED
    assert found.lost == 0
    assert found.records[-1][1] == units
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(found.records))


@pytest.mark.parametrize(("words", "units"), RUNS)
def test_runs_until_sigterm_and_is_right_then(kernels, beats, words, units):
    process = start(command(kernels, words), beats)
    with Reader(beats) as reader:
        wait_until(lambda: reader.state is State.READY and reader.head > 5)
        assert reader.pid == process.pid
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, "")
        assert reader.state is State.FINISHED


@pytest.mark.parametrize("words", ["stream --bytes 96K", "chase --bytes 64K", "spin"])
def test_runs_without_a_heartbeat(kernels, words):
    assert run(command(kernels, words, "--units", "30")) == (0, "", "")


def test_a_full_cycle_of_loads(kernels, beats):
    assert run([kernels / "chase", "--bytes", "1M", "--units", "16384"], beats) == (0, "", "")
    with Reader(beats) as reader:
        assert reader.beats(0).records[-1][1] == 16384


def test_a_chunk_is_fixed_work(kernels, beats):
    run([kernels / "compute", "--units", "20M"], beats)
    with Reader(beats) as reader:
        units = [units for _, units in reader.beats(0).records]
    chunks = {after - before for before, after in pairwise([0, *units[:-1]])}
    assert len(chunks) == 1


@pytest.mark.parametrize("kernel", native.KERNELS)
def test_help(kernels, kernel):
    status, out, err = run([kernels / kernel, "--help"])
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: {kernel} ")
    assert "A unit is one" in out


def test_too_much_memory_is_said(kernels, beats):
    status, _, err = run([kernels / "stream", "--bytes", "1000000G"], beats)
    assert status == 1
    assert "cannot have 1073741824000000 bytes of memory" in err
    with Reader(beats) as reader:
        assert reader.state is State.FAILED


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n" * 20])
def test_a_foreign_heartbeat_file_is_refused(kernels, tmp_path, content):
    foreign = tmp_path / "foreign"
    foreign.write_bytes(content)
    status, _, err = run([kernels / "spin", "--units", "10"], foreign)
    assert status == 2
    assert str(foreign) in err
    assert err.count("\n") == 1
    assert foreign.read_bytes() == content


RACER = """
#include "heartbeat.h"
int main(void)
{
    cm_heartbeat *hb = cm_heartbeat_open();
    cm_ready(hb);
    for (int i = 0; i < 2000000; i++)
        cm_beat(hb, 3);
    cm_finished(hb);
}
"""


def test_a_reader_beside_a_racing_c_writer_sees_no_torn_record(compiler, tmp_path):
    (tmp_path / "racer.c").write_text(RACER)
    native.compile_program(tmp_path / "racer.c", tmp_path / "racer", compiler, native.compile_flags(compiler))
    create(tmp_path / "beats", capacity=64)
    process = start([tmp_path / "racer"], tmp_path / "beats")
    seen = lost = since = 0
    with Reader(tmp_path / "beats") as reader:
        over = False
        while not over:
            over = process.poll() is not None
            found = reader.beats(since)
            numbers = range(since + found.lost, found.head)
            assert [units for _, units in found.records] == [3 * (number + 1) for number in numbers]
            seen, lost, since = seen + len(found.records), lost + found.lost, found.head
    assert process.returncode == 0
    assert seen + lost == since == 2_000_000


def test_loop_counts_successful_runs(kernels, beats):
    assert run([kernels / "loop", "--units", "5", "--", "echo", "-n", "x"], beats) == (0, "xxxxx", "")
    with Reader(beats) as reader:
        assert [units for _, units in reader.beats(0).records] == [1, 2, 3, 4, 5]
        assert reader.state is State.FINISHED


def test_loop_needs_no_separator(kernels):
    assert run([kernels / "loop", "--units", "2", "sh", "-c", "echo $0", "--units"]) == (0, "--units\n" * 2, "")


def test_loop_reports_a_signal(kernels, beats):
    status, _, err = run([kernels / "loop", "sh", "-c", "kill -9 $$"], beats)
    assert (status, err) == (137, "castmates loop: sh was killed by signal 9\n")
    with Reader(beats) as reader:
        assert (reader.head, reader.state) == (0, State.FAILED)


@pytest.mark.parametrize(("mode", "status", "reason"), [(None, 127, "No such file"), (0o644, 126, "Permission")])
def test_loop_reports_a_command_that_cannot_run(kernels, beats, tmp_path, mode, status, reason):
    command = tmp_path / "program"
    if mode is not None:
        command.write_text("not executable")
        command.chmod(mode)
    found, _, err = run([kernels / "loop", command], beats)
    assert found == status
    assert err.startswith(f"castmates loop: cannot run {command}: {reason}")
    with Reader(beats) as reader:
        assert reader.state is State.FAILED


def test_loop_hides_its_heartbeat_and_gives_back_the_signals(kernels, beats):
    script = f"import os, signal; print(os.environ.get('{VARIABLE}'), len(signal.pthread_sigmask(0, [])))"
    assert run([kernels / "loop", "--units", "1", sys.executable, "-c", script], beats) == (0, "None 0\n", "")


def test_loop_sees_its_child_end_where_sigchld_was_ignored(kernels):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        command = [kernels / "loop", "--units", "1", "true"]
        process = subprocess.Popen(command, restore_signals=False)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert process.wait(PATIENCE) == 0


def child_of(pid: int) -> psutil.Process:
    wait_until(lambda: psutil.Process(pid).children())
    return psutil.Process(pid).children()[0]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.needs("cc")
def test_a_broken_compiler_is_passed_over(monkeypatch, tmp_path, compiler):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    assert native.find_compiler() not in (None, [str(broken)])
    monkeypatch.setenv("CC", "env A=1 cc")
    assert native.find_compiler() == ["env", "A=1", "cc"]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC")
    assert native.find_compiler() is None


def test_build_reports_the_first_error(monkeypatch, tmp_path, compiler):
    for name in native.KERNELS:
        (tmp_path / f"{name}.c").write_text("int main(void)\n{\n    return nonesuch;\n}\n")
    monkeypatch.setattr(native, "SOURCES", tmp_path)
    first = native.KERNELS[0]
    with pytest.raises(CastmatesError, match=rf"failed on {first}\.c: .*{first}\.c:3:.*error: .*nonesuch"):
        native.build(tmp_path / "bin", compiler)


def test_build_with_a_missing_compiler(tmp_path):
    with pytest.raises(CastmatesError, match="cannot be started"):
        native.build(tmp_path, [str(tmp_path / "nonesuch")])


def test_fingerprint_follows_the_sources(monkeypatch, tmp_path):
    before = native.fingerprint()
    assert before == native.fingerprint()
    assert len(before) == 64
    (tmp_path / "spin.c").write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr(native, "SOURCES", tmp_path)
    assert native.fingerprint() != before


def test_content_follows_a_kernel_and_what_it_includes_and_nothing_else(monkeypatch, tmp_path):
    for file in native.SOURCES.glob("*.[ch]"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(native, "SOURCES", tmp_path)

    def changed(file: str) -> set[str]:
        before = {kernel: native.content(kernel) for kernel in native.KERNELS}
        with (tmp_path / file).open("a") as text:
            text.write("extern int more;\n")
        return {kernel for kernel in native.KERNELS if native.content(kernel) != before[kernel]}

    assert changed("spin.c") == {"spin"}
    assert changed("heartbeat.h") == set(native.KERNELS)
    assert {"chase", "capacity"} <= changed("cycles.h") < set(native.KERNELS)
    assert changed("pace.h") == set(native.KERNELS).difference(native.KEEPERS)
    assert "mix" in changed("tree.c")  # which includes it as a part
