"""Programs that were patched for BenchCast: each call of call_barrier is a beat, however they were linked."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.runner.processes.starts import member_start
from castmates.study.model import Catalogue, Workload
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import State
from castmates.workloads.native.build import BARRIERS, BARRIERS_VARIABLE, SOURCES
from castmates.workloads.suites.expand import expanded
from tests.runner.stage import counter, measured, plan_of
from tests.unit.suites import trees
from tests.waiting import PATIENCE

HERE = Path(__file__).parent
BY_FILE = "with our file in place of BenchCast's"
BY_PROGRAM = "BenchCast's functions in the program"
BY_LIBRARY = "BenchCast's functions in a library"
WAYS = (BY_FILE, BY_PROGRAM, BY_LIBRARY)
LONG, RUNS = 7, 3


def compiled(compiler: list[str], folder: Path, way: str = BY_PROGRAM) -> Path:
    program, own = folder / "patched", [str(HERE / "patched.c")]
    theirs = str(HERE / "foreign_barrier.c")
    common = [*compiler, "-O1", "-pthread", "-w"]
    if way == BY_FILE:
        own += [f"-I{SOURCES}", str(SOURCES / "barriers.c")]
    elif way == BY_PROGRAM:
        own += [theirs, "-lrt"]
    else:
        library = folder / "libhooks.so"
        subprocess.run([*common, "-shared", "-fPIC", theirs, "-o", library, "-lrt"], check=True)
        own += [str(library), f"-Wl,-rpath,{folder}"]
    subprocess.run([*common, *own, "-o", program], check=True)
    return program


def looped(kernels: Path, folder: Path, *words: object, **variables: str) -> tuple[int, str, heartbeat.Reader]:
    """Run a command again and again as a launch does."""
    heartbeat.create(folder / "beats")
    command = [kernels / "loop", "--units", str(RUNS), "--", *map(str, words)]
    ours = {BARRIERS_VARIABLE: str(folder / "beats"), "LD_PRELOAD": str(kernels / f"{BARRIERS}.so")}
    environment = os.environ | ours | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stderr, heartbeat.Reader(folder / "beats")


@pytest.mark.parametrize("way", WAYS)
def test_its_beats_are_its_iterations_over_all_runs(compiler, kernels, tmp_path, way):
    log = tmp_path / "log"
    status, said, reader = looped(kernels, tmp_path, compiled(compiler, tmp_path, way), LONG, log)
    assert (status, reader.state) == (0, State.READY), said
    records = reader.beats(0).records
    assert [units for _, units in records] == list(range(1, LONG * RUNS + 1))
    began = np.array(log.read_text().split(), dtype=int)
    times = np.array([time for time, _ in records])
    assert (began <= times).all()
    assert (times[:-1] <= began[1:]).all()  # each call beats once, and between its neighbours


def test_a_static_program_takes_our_file(compiler, kernels, tmp_path):
    program = compiled([*compiler, "-static"], tmp_path, BY_FILE)
    status, said, reader = looped(kernels, tmp_path, program, LONG)
    assert (status, reader.head) == (0, LONG * RUNS), said


def forked(compiler, folder, word):
    """A program that is compiled with our file and calls from two processes: status, its words, and the heartbeat."""
    program = folder / "forking"
    own = [HERE / "forking.c", f"-I{SOURCES}", SOURCES / "barriers.c"]
    subprocess.run([*compiler, "-O1", "-pthread", "-w", *own, "-o", program], check=True)
    heartbeat.create(folder / "beats")
    environment = os.environ | {BARRIERS_VARIABLE: str(folder / "beats")}
    done = subprocess.run(
        [program, word], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stderr, heartbeat.Reader(folder / "beats")


def test_parent_and_child_that_call_one_after_the_other_lose_no_beat(compiler, tmp_path):
    status, said, reader = forked(compiler, tmp_path, "turns")
    assert (status, said, reader.state) == (0, "", State.READY)
    assert [units for _, units in reader.beats(0).records] == list(range(1, 21))


def test_two_living_processes_that_call_by_turns_fail_with_a_sentence(compiler, tmp_path):
    status, said, reader = forked(compiler, tmp_path, "both")
    assert (status, reader.state, reader.head) == (0, State.FAILED, 15)
    assert said.count("one process at a time may call it.") == len(said.splitlines()) == 1


def test_a_child_that_is_forked_within_a_call_does_not_wait_for_it_forever(compiler, tmp_path):
    status, said, reader = forked(compiler, tmp_path, "within")
    assert (status, reader.state) == (0, State.FAILED), said
    assert "one process at a time may call it" in said


def test_outside_a_launch_it_runs_freely(compiler, kernels, tmp_path):
    program = compiled(compiler, tmp_path)
    status, said, reader = looped(kernels, tmp_path, program, LONG, **{BARRIERS_VARIABLE: ""})
    assert (status, reader.head) == (0, 0), said
    assert subprocess.run([program, "3"], timeout=PATIENCE, check=False).returncode == 77  # as BenchCast has it


def test_in_a_launch_ours_is_preloaded_before_the_users(cache, tmp_path):
    keys = {"command": "true", "progress": "barriers", "unit": "iteration", "variables": {"LD_PRELOAD": "/of/mine.so"}}
    plan = plan_of({"lead": Workload.model_validate(keys), "other": counter()}, ["other"], cache)
    lead = plan.cohorts[0].lead
    start = member_start(lead, Path("/native"), tmp_path, cache)
    assert start.environment["LD_PRELOAD"] == "/native/barriers.so:/of/mine.so"
    for folder in ("/with a blank", "/with:colon"):
        with pytest.raises(CastmatesError, match="cannot be preloaded: its path must have no blank"):
            member_start(lead, Path(folder), tmp_path, cache)
    assert (start.channel, start.kept, start.reports) == (BARRIERS_VARIABLE, True, True)
    assert start.command == ["/native/loop", "--reports", BARRIERS_VARIABLE, "--", "true"]


@pytest.mark.needs("two-cpus")
def test_a_program_without_the_calls_is_a_sentence(cache, tmp_path):
    keys = {"command": "sleep 9", "progress": "barriers", "unit": "iteration", "ready_within": 0.5}
    plan = plan_of({"lead": Workload.model_validate(keys), "other": counter()}, ["other"], cache)
    assert "was not ready within 0.5 s: it made no call of call_barrier" in str(measured(plan, tmp_path, cache))


@pytest.mark.needs("two-cpus")
@pytest.mark.parametrize("role", ["lead", "antagonist"])
def test_in_a_launch_each_slice_has_the_iterations_that_the_program_saw(compiler, cache, tmp_path, role):
    log, launch = tmp_path / "log", tmp_path / "launch"
    words = [str(compiled(compiler, tmp_path)), "150", str(log)]
    patched = Workload.model_validate({"command": words, "progress": "barriers", "unit": "iteration"})
    lead, other = (patched, counter()) if role == "lead" else (counter(), patched)
    record = measured(plan_of({"lead": lead, "other": other}, ["other"], cache), launch, cache)
    assert record["status"] == "measured", record["reason"]
    began = np.array(log.read_text().split(), dtype=int)
    slices = pd.read_parquet(launch / "slices.parquet").query("role == @role and beats > 0")
    own = slices[slices["member"].str.startswith("lead@" if role == "lead" else "other@")]
    first, last = (np.searchsorted(began, own[edge].to_numpy(), side="right") for edge in ("first_ns", "last_ns"))
    assert len(own) > 3
    assert (own["beats"].to_numpy() == last - first + 1).all()
    assert (own["units"].to_numpy() == last - first).all()
    assert len(began) > 150  # it was run again


def test_a_patched_suite_beats_in_each_iteration_of_its_private_copy(compiler, cache, kernels, tmp_path):
    root = tmp_path / "npb"
    trees.npb_program(root)
    (root / "bin" / "cg.S.x").rename(root / "bin" / "verdict")
    program = compiled(compiler, tmp_path)
    trees.program(root / "bin" / "cg.S.x", f"{program} {LONG} && {root}/bin/verdict")
    suite = expanded(Catalogue.model_validate({"npb": {"root": str(root), "progress": "barriers"}}), "c.yaml")
    workload = suite.workloads["npb.cg"]
    assert (workload.progress, workload.unit) == ("barriers", "iteration")
    words = [word.replace("{python}", sys.executable) for word in workload.words]
    imports = {"PYTHONPATH": str(HERE.parents[1])}
    done, said, reader = looped(kernels, tmp_path, *words, "--units", "1", **imports)
    assert (done, reader.head) == (0, LONG * RUNS), said
