"""PARSEC and NPB on installations of the same shape."""

import os

import pytest

from castmates.workloads.heartbeat import State
from tests.unit.suites import trees


def parsec(home, root, **options):
    further = [word for name, value in options.items() for word in (f"--{name}", value)]
    at = home.relative_to(root)
    return ["parsec", "--root", root, "--at", at, "--build", "amd64-linux.gcc", "--size", "simsmall", *further]


def test_a_package_runs_as_its_run_configuration_says(tmp_path):
    root = tmp_path / "parsec-3.0"
    home = trees.parsec_package(root)
    threads = len(os.sched_getaffinity(0))
    trees.archive(home / "outputs" / "output_simsmall.tar", {"out 1.txt": f"3 threads {threads} of {threads}\nfour\n"})
    ended = trees.run(*parsec(home, root, units=3, check="every"), place=tmp_path)
    assert (ended.status, ended.state, ended.beats) == (0, State.FINISHED, [1, 2, 3]), ended.said


def test_an_output_that_differs_from_the_archive_is_wrong(tmp_path):
    root = tmp_path / "parsec-3.0"
    home = trees.parsec_package(root)
    trees.archive(home / "outputs" / "output_simsmall.tar", {"out 1.txt": "five\n"})
    ended = trees.run(*parsec(home, root, units=1), place=tmp_path)
    assert ended.status == 3
    assert "out 1.txt differs (output_simsmall.tar)" in ended.said


def test_exported_variables_and_the_platform_reach_the_program(tmp_path):
    root = tmp_path / "parsec-3.0"
    runconf = 'run_exec="bin/freqmine"\nexport OMP_NUM_THREADS=${NTHREADS}\nrun_args="kosarak.dat"\n'
    body = 'test "$OMP_NUM_THREADS" = "$NTHREADS" && test "$PARSECPLAT" = amd64-linux.gcc && test -d "$PARSECDIR/pkgs"'
    home = trees.parsec_package(root, "freqmine", body, runconf)
    assert trees.run(*parsec(home, root, units=1), place=tmp_path).status == 0


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("inst/amd64-linux.gcc/bin/blackscholes", "build it (parsecmgmt -a build -p blackscholes)"),
        ("parsec/simsmall.runconf", "simsmall.runconf is not there"),
    ],
)
def test_what_a_package_lacks_is_named(tmp_path, gone, said):
    root = tmp_path / "parsec-3.0"
    home = trees.parsec_package(root)
    (home / gone).unlink()
    ended = trees.run(*parsec(home, root, units=1), place=tmp_path)
    assert ended.status == 1
    assert said in ended.said
    assert "Traceback" not in ended.said


def npb(root, file="bin/cg.S.x"):
    return ["npb", "--root", root, "--at", file, "--units", 2]


def test_npb_judges_itself(tmp_path):
    trees.npb_program(tmp_path / "npb")
    ended = trees.run(*npb(tmp_path / "npb"), place=tmp_path)
    assert (ended.status, ended.beats) == (0, [1, 2]), ended.said


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("UNSUCCESSFUL", "Verification = UNSUCCESSFUL"), ("NOT PERFORMED", "NOT PERFORMED"), ("", "no line")],
)
def test_any_other_verdict_is_a_failure(tmp_path, verdict, said):
    trees.npb_program(tmp_path / "npb", verdict)
    ended = trees.run(*npb(tmp_path / "npb"), place=tmp_path)
    assert (ended.status, ended.beats, ended.state) == (3, [], State.FAILED)
    assert said in ended.said


def test_a_program_that_is_not_there_is_named(tmp_path):
    (tmp_path / "npb").mkdir()
    ended = trees.run(*npb(tmp_path / "npb"), "--digest", "x", place=tmp_path)
    assert ended.status == 1
    assert "cg.S.x is not there; build it" in ended.said
