"""SPEC CPU2017 on an installation of the same shape: runs, copies, results, and what is missing."""

import signal

import pytest

from castmates.linux.processes import read_process
from castmates.workloads.heartbeat import Reader, State
from castmates.workloads.suites.spec2017 import Benchmark
from tests.unit.suites import trees
from tests.waiting import PATIENCE, wait_for


@pytest.fixture
def root(tmp_path):
    return trees.spec_root(tmp_path / "spec")


def words(root, run, **options):
    further = [word for name, value in options.items() for word in (f"--{name}", value)]
    return ["spec2017", "--root", root, "--at", run.relative_to(root), *further]


def test_runs_are_counted_and_their_results_compared_by_the_suite(root, tmp_path):
    run = trees.spec_benchmark(root)
    before = {file.name: file.read_text() for file in run.iterdir()}
    ended = trees.run(*words(root, run, units=3), place=tmp_path)
    assert (ended.status, ended.state, ended.beats) == (0, State.FINISHED, [1, 2, 3]), ended.said
    assert {file.name: file.read_text() for file in run.iterdir()} == before  # the copy was used
    assert not list((tmp_path / "scratch").iterdir())


def test_several_commands_in_order_are_one_unit(root, tmp_path):
    lines = "{exe} inp.in > half.out\n-o inp.out cat half.out > inp.out\n".replace("cat", "{exe} half.out && cat")
    body = 'case "$1" in half.out) test -s half.out;; *) ' + trees.DOUBLES + ";; esac"
    run = trees.spec_benchmark(root, body=body, lines=lines)
    ended = trees.run(*words(root, run, units=2), place=tmp_path)
    assert (ended.status, ended.beats) == (0, [1, 2]), ended.said


def test_variables_of_the_suite_hold_except_the_runners(root, tmp_path):
    body = f'test "$GREETING" = "two words" && test "$OMP_NUM_THREADS" = 1 && {trees.DOUBLES}'
    assert trees.run(*words(root, trees.spec_benchmark(root, body=body), units=1), place=tmp_path).status == 0


@pytest.mark.parametrize("compare", [True, False])
@pytest.mark.parametrize(
    ("body", "said"),
    [("echo 8; echo 43", "differ"), ("true", "inp.out"), ("rm -f inp.out; exec 1>&-", "inp.out")],
)
def test_a_wrong_result_is_a_failure(root, tmp_path, compare, body, said):
    run = trees.spec_benchmark(root, body=body, compare=compare)
    (run / "inp.out").write_text("8\n42\n")  # of an earlier run: it must not be taken for this one's
    ended = trees.run(*words(root, run, units=1), place=tmp_path)
    assert (ended.status, ended.state, ended.beats) == (3, State.FAILED, [])
    assert "the result is wrong" in ended.said
    assert said in ended.said


def test_only_the_first_run_is_compared_where_that_is_wanted(root, tmp_path):
    body = f"{trees.DOUBLES}; test -e {tmp_path}/again && echo wrong; touch {tmp_path}/again"
    run = trees.spec_benchmark(root, body=body)
    assert trees.run(*words(root, run, units=2, check="first"), place=tmp_path).status == 0
    (tmp_path / "beats").unlink()
    (tmp_path / "again").unlink()
    assert trees.run(*words(root, run, units=2, check="every"), place=tmp_path).status == 3


def test_every_run_finds_the_directory_as_it_was(root, tmp_path):
    body = (
        f"{trees.DOUBLES}; test -e trace && echo trace; touch trace; echo 5 > inp.in; mkdir -p new/deep || exit 1; "
        "mkdir new/only || exit 1; touch new/deep/file; rmdir empty || exit 1; rm swapped; mkdir swapped || exit 1"
    )
    run = trees.spec_benchmark(root, body=body)
    (run / "empty").mkdir()
    (run / "swapped").touch()
    ended = trees.run(*words(root, run, units=3), place=tmp_path)
    assert (ended.status, ended.beats) == (0, [1, 2, 3]), ended.said


def test_a_command_that_fails_is_told_with_its_words(root, tmp_path):
    lines = "{exe} inp.in\n"
    run = trees.spec_benchmark(root, body="echo no such node >&2; exit 7", lines=lines)
    ended = trees.run(*words(root, run, units=1), place=tmp_path)
    assert (ended.status, ended.state) == (1, State.FAILED)
    assert "mcf_r_base.mine-m64 inp.in` ended with status 7" in ended.said
    assert "no such node" in ended.said


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("speccmds.cmd", "speccmds.cmd cannot be read"),
        ("mcf_r_base.mine-m64", "the program 'mcf_r_base.mine-m64' of speccmds.cmd is neither there nor in"),
    ],
)
def test_what_is_missing_is_named(root, tmp_path, gone, said):
    run = trees.spec_benchmark(root)
    (run / gone).unlink()
    ended = trees.run(*words(root, run, units=1), place=tmp_path)
    assert ended.status == 1
    assert said in ended.said
    assert "Traceback" not in ended.said


def test_a_program_that_lies_in_exe_alone_is_found(root, tmp_path):
    run = trees.spec_benchmark(root)
    exe = run.parent.parent / "exe"
    exe.mkdir()
    (run / "mcf_r_base.mine-m64").rename(exe / "mcf_r_base.mine-m64")
    ended = trees.run(*words(root, run, units=2), place=tmp_path)
    assert (ended.status, ended.beats) == (0, [1, 2]), ended.said


def test_a_submit_that_would_bind_the_benchmark_is_refused(root, tmp_path):
    run = trees.spec_benchmark(root, lines="numactl --physcpubind=$BIND {exe} inp.in > inp.out\n")
    ended = trees.run(*words(root, run, units=1), place=tmp_path)
    assert ended.status == 1
    assert "a command begins with 'numactl'" in ended.said
    assert "without one" in ended.said


def test_the_suites_own_specinvoke_is_asked_where_it_is(root, tmp_path):
    run = trees.spec_benchmark(root)
    asked = (
        'echo "# Starting run for copy #0"; echo "../run_base_test_mine-m64.0000/mcf_r_base.mine-m64 inp.in > inp.out"'
    )
    trees.program(root / "bin" / "specinvoke", f'test "$1 $2" = "-n speccmds.cmd" || exit 1; {asked}')
    (line,) = [step.command[-1] for step in prepared(root, run, tmp_path).steps()]
    assert line == "exec ../run_base_test_mine-m64.0000/mcf_r_base.mine-m64 inp.in > inp.out"


def prepared(root, run, tmp_path):
    benchmark = Benchmark(root, run.relative_to(root))
    (tmp_path / "copy").mkdir()
    benchmark.prepare(tmp_path / "copy")
    return benchmark


def test_the_digest_covers_programs_and_commands(root, tmp_path):
    run = trees.spec_benchmark(root)
    digest = Benchmark(root, run.relative_to(root)).digest()
    assert trees.run(*words(root, run, units=1, digest=digest), place=tmp_path).status == 0
    trees.program(run / "mcf_r_base.mine-m64", trees.DOUBLES + " # rebuilt")
    (tmp_path / "beats").unlink()
    ended = trees.run(*words(root, run, units=1, digest=digest), place=tmp_path)
    assert ended.status == 1
    assert "changed since it was planned" in ended.said


def test_two_instances_run_at_once_each_in_its_own_copy(root, tmp_path):
    body = f'echo $$ > mine; sleep 0.02; test "$(cat mine)" = $$ && {trees.DOUBLES}'
    run = trees.spec_benchmark(root, body=body)
    scratch, files = tmp_path / "scratch", [tmp_path / "one", tmp_path / "two"]
    running = [trees.start(*words(root, run), beats=file, scratch=scratch) for file in files]
    try:
        wait_for(lambda: all(Reader(file).head >= 3 for file in files), "both have run three times")
        for process in running:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(PATIENCE) for process in running] == [0, 0]
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert [Reader(file).state for file in files] == [State.FINISHED] * 2
    assert not list(scratch.iterdir())


def test_of_a_line_with_several_commands_no_program_goes_on_after_sigterm(root, tmp_path):
    body = f"test $1 = inp.in || exit 0; echo $$ > {tmp_path}/begun; mv {tmp_path}/begun {tmp_path}/pid; exec sleep 60"
    run = trees.spec_benchmark(root, body=body, lines="{exe} none; {exe} inp.in; {exe} none\n")
    process = trees.start(*words(root, run), beats=tmp_path / "beats", scratch=tmp_path / "scratch")
    try:
        wait_for((tmp_path / "pid").exists, "the program has begun")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
    program = read_process(int((tmp_path / "pid").read_text()))
    assert program is None or not program.alive
    assert Reader(tmp_path / "beats").state is State.FINISHED
    assert not list((tmp_path / "scratch").iterdir())
