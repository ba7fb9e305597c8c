"""The keeper of finite commands: the next run waits while one lasts, and what lies between two runs is known."""

import ctypes
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pandas as pd
import psutil
import pytest

from castmates.linux import cgroups
from castmates.linux.processes import Family, read_process
from castmates.runner.processes import restarts
from castmates.runner.processes.freezer import CgroupFreezer, SignalFreezer
from castmates.runner.processes.restarts import Restarts
from castmates.study.model import Workload
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import State
from tests.needs import lacks
from tests.runner.stage import counter, measured, plan_of
from tests.waiting import PATIENCE, wait_for

AHEAD = ["exec", "fork"]

# Reports that it has begun, leaves a child in its own session, works, and ends when it is asked to.
PATIENT = """
echo $$ >> began
setsid sh -c 'while kill -0 $0 2> /dev/null; do echo >> child-$0; sleep 0.002; done' $$ &
while [ ! -e go-$$ ]; do echo >> work-$$; done
"""
# Fails where two runs overlap.
EXCLUSIVE = "mkdir held || exit 9; echo >> runs; rmdir held"


class Keeper:
    """A keeper at work in a folder, with a heartbeat and a file for its restarts."""

    def __init__(self, program: Path, folder: Path, *words: str, **options: object) -> None:
        self.folder = folder
        heartbeat.create(folder / "beats")
        self.beats = heartbeat.Reader(folder / "beats")
        self.restarts = Restarts.create(folder / "restarts")
        channels = {heartbeat.VARIABLE: str(folder / "beats")} | self.restarts.variables
        self.process = subprocess.Popen(
            [program, *words],
            cwd=folder,
            env=os.environ | channels,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        self.family = Family(self.process.pid)

    def wait_ready(self) -> None:
        wait_for(lambda: self.beats.state is State.READY, "the keeper is ready")

    def end(self) -> tuple[int, str]:
        """Wait until it has ended; returns its status and its output."""
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def began(self) -> list[int]:
        """The runs that have executed at least one instruction of theirs, in order."""
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.folder / "began").read_text().split()]
        return []

    def lines(self, name: str) -> int:
        with suppress(FileNotFoundError):
            return (self.folder / name).stat().st_size
        return 0

    def runs(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def waiting(self) -> psutil.Process:
        """The run that has not begun."""
        wait_for(lambda: len(self.runs()) == 2, "there are two runs")
        (one,) = [run for run in self.runs() if run.pid not in self.began()]
        return one

    def descendants(self) -> list[int]:
        return [process.pid for process in self.family.living()]


@pytest.fixture
def keep(kernels, tmp_path) -> Iterator[Callable[..., Keeper]]:
    keepers = []

    def start(*words: str, **options: object) -> Keeper:
        keepers.append(Keeper(kernels / "loop", tmp_path, *words, **options))
        return keepers[-1]

    yield start
    for keeper in keepers:
        left = keeper.family.kill(5)
        keeper.process.communicate()
        assert left == []


@pytest.fixture(params=["cgroup", "signals"])
def freezer(request):
    home = cgroups.find_home()
    if request.param == "cgroup" and home is None:
        lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    made = CgroupFreezer(home, "test") if request.param == "cgroup" else SignalFreezer()
    yield made
    made.close()


@pytest.mark.parametrize("ahead", AHEAD)
def test_the_next_run_waits_without_a_step_until_the_first_has_ended(keep, ahead):
    keeper = keep("--ahead", ahead, "sh", "-c", PATIENT)
    keeper.wait_ready()
    wait_for(keeper.began, "the first run has begun")
    for number in range(1, 4):
        (running,) = keeper.began()[-1:]
        next_one = keeper.waiting()
        if ahead == "exec":
            wait_for(lambda one=next_one: one.status() == psutil.STATUS_TRACING_STOP, "the next run has not begun")
            assert Path(next_one.exe()).samefile("/bin/sh")
            assert next_one.cmdline()[:2] == ["sh", "-c"]
        else:
            assert Path(next_one.exe()).name == "loop"
        taken = next_one.cpu_times()
        done = keeper.lines(f"work-{running}")
        wait_for(lambda running=running, done=done: keeper.lines(f"work-{running}") > done + 500, "the run goes on")
        assert next_one.cpu_times() == taken
        assert len(keeper.began()) == keeper.beats.head + 1 == number
        (keeper.folder / f"go-{running}").touch()
        wait_for(lambda number=number: len(keeper.began()) == number + 1, "the next run has begun")
        assert keeper.began()[-1] == next_one.pid


@pytest.mark.parametrize("ahead", AHEAD)
def test_no_freeze_and_no_thaw_lets_the_waiting_run_go(keep, freezer, ahead):
    keeper = keep("--ahead", ahead, "sh", "-c", PATIENT)
    freezer.adopt("beside", keeper.process.pid)
    keeper.wait_ready()
    wait_for(keeper.began, "the first run has begun")
    (running,) = keeper.began()
    workers = f"work-{running}", f"child-{running}"
    wait_for(lambda: all(map(keeper.lines, workers)), "the run and its child work")
    next_one = keeper.waiting()
    for _ in range(5):
        freezer.freeze("beside")
        assert freezer.is_frozen("beside")
        before = [keeper.lines(name) for name in workers]
        time.sleep(0.02)
        assert [keeper.lines(name) for name in workers] == before
        freezer.thaw("beside")
        wait_for(lambda before=before: all(map(int.__gt__, map(keeper.lines, workers), before)), "they go on")
        assert not freezer.is_frozen("beside")
        assert keeper.began() == [running]
    (keeper.folder / f"go-{running}").touch()
    wait_for(lambda: keeper.began() == [running, next_one.pid], "the next run has begun")
    freezer.kill("beside")
    assert freezer.stragglers("beside") == []
    assert keeper.descendants() == []


@pytest.mark.parametrize("ahead", [*AHEAD, "no"])
def test_freezes_at_any_moment_neither_overlap_runs_nor_stop_them(keep, freezer, ahead):
    keeper = keep("--ahead", ahead, "sh", "-c", EXCLUSIVE)
    freezer.adopt("beside", keeper.process.pid)
    keeper.wait_ready()
    for _ in range(40):
        done = keeper.beats.head
        wait_for(lambda done=done: keeper.beats.head > done or keeper.process.poll() is not None, "another run")
        assert keeper.process.poll() is None, keeper.end()
        freezer.freeze("beside")
        assert freezer.is_frozen("beside")
        done = keeper.beats.head
        time.sleep(0.002)
        assert keeper.beats.head == done
        freezer.thaw("beside")
    assert keeper.lines("runs") >= keeper.beats.head >= 40


@pytest.mark.parametrize("ahead", [*AHEAD, "no"])
def test_nothing_is_left_when_the_keeper_is_killed(keep, ahead):
    keeper = keep("--ahead", ahead, "sleep", "100")
    keeper.wait_ready()
    wait_for(lambda: len(keeper.runs()) == (1 if ahead == "no" else 2), "the runs are started")
    runs = keeper.runs()
    keeper.process.kill()
    keeper.process.wait()
    wait_for(lambda: not any((found := read_process(run.pid)) and found.alive for run in runs), "no run is alive")
    assert not keeper.began()


@pytest.mark.parametrize("ahead", [*AHEAD, "no"])
def test_a_run_that_fails_ends_it_and_the_next_never_begins(keep, ahead):
    keeper = keep("--ahead", ahead, "sh", "-c", "echo $$ >> began; test $(wc -l < began) -lt 3 || exit 7")
    assert keeper.end() == (7, "castmates loop: sh ended with status 7\n")
    assert (keeper.beats.head, keeper.beats.state) == (2, State.FAILED)
    assert len(keeper.began()) == 3
    assert keeper.descendants() == []


def test_a_run_that_is_killed_while_it_waits_is_reported_when_its_turn_comes(keep):
    keeper = keep("sh", "-c", PATIENT)
    keeper.wait_ready()
    wait_for(keeper.began, "the first run has begun")
    wait_for(lambda: keeper.waiting().status() in (psutil.STATUS_TRACING_STOP, psutil.STATUS_SLEEPING), "a run waits")
    killed = keeper.waiting().pid
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(killed), "the keeper has seen its end")
    (keeper.folder / f"go-{keeper.began()[0]}").touch()
    assert keeper.end() == (137, "castmates loop: sh was killed by signal 9 before its turn\n")
    assert keeper.beats.state is State.FAILED


@pytest.mark.parametrize("ahead", [*AHEAD, "no"])
def test_every_gap_is_recorded_in_order(keep, ahead):
    keeper = keep("--ahead", ahead, "--units", "20", "--", "sleep", "0.003")
    assert keeper.end() == (0, "")
    keeper.restarts.read()
    beats = [ns for ns, _ in keeper.beats.beats().records]
    gaps = keeper.restarts.inside(0, time.monotonic_ns())
    assert keeper.restarts.waits == restarts.WAITS[1 + [*AHEAD, "no"].index(ahead)]
    assert (len(beats), len(gaps), keeper.restarts.lost) == (20, 19, 0)
    assert all(ended <= resumed for ended, resumed in gaps)
    assert all(before[1] < after[0] for before, after in pairwise(gaps))
    assert all(ended <= beat for (ended, _), beat in zip(gaps, beats, strict=False))


# Refuse ptrace to what follows, as a strict container does: load its number, compare, refuse with EPERM or allow.
NO_PTRACE = [(0x20, 0, 0, 0), (0x15, 0, 1, {"x86_64": 101, "aarch64": 117}.get(platform.machine(), -1))]
NO_PTRACE += [(0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]


def forbid_ptrace() -> None:
    class Program(ctypes.Structure):
        _fields_ = (("count", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in NO_PTRACE))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    assert libc.prctl(22, 2, ctypes.byref(Program(len(NO_PTRACE), ctypes.addressof(code))), 0, 0) == 0


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the filter knows two processors")
def test_where_ptrace_is_forbidden_it_says_so_and_waits_before_exec(keep):
    keeper = keep("--units", "3", "true", preexec_fn=forbid_ptrace)
    status, said = keeper.end()
    assert status == 0
    assert said.startswith("castmates loop: ptrace is not permitted (Operation not permitted)")
    assert keeper.restarts.waits == "the next run waits before its exec"
    assert keeper.beats.head == 3


def test_a_launch_records_the_restarts_of_its_antagonist(shared_launch):
    assert json.loads((shared_launch / "launch.json").read_text())["status"] == "measured"
    read = pd.read_parquet(shared_launch / "samples.parquet").query("source == 'keeper'")
    windows = pd.read_parquet(shared_launch / "windows.parquet").query("member == 'finite@1'").set_index("window")
    assert set(read["subject"]) == {"finite@1"}
    assert set(read["window"]) == set(windows.index)
    for number, found in read.groupby("window"):
        if not windows.loc[number, "valid"]:  # what else runs on this machine may cost windows
            continue
        value = found.drop_duplicates("metric").set_index("metric")["value"]
        begun = found.query("metric == 'run_begins_after_s'")
        assert abs(value["restarts"] - windows.loc[number, "beats"]) <= windows.loc[number, "slices"]
        assert len(begun) == value["restarts"] > 0
        assert 0 < value["longest_restart_gap_s"] <= value["restart_gap_s"] < 0.4
        assert begun["t_ns"].between(windows.loc[number, "open_ns"], windows.loc[number, "close_ns"]).all()


@pytest.mark.needs("two-cpus")
def test_a_run_that_fails_ends_the_launch_with_its_reason(cache, tmp_path):
    script = f"echo >> {tmp_path}/runs; test $(wc -l < {tmp_path}/runs) -lt 9 || {{ echo no input >&2; exit 3; }}"
    plan = plan_of({"lead": counter(), "bad": Workload(command=["sh", "-c", script])}, ["bad"], cache)
    record = str(measured(plan, tmp_path, cache))
    for words in ("bad@1 ended by itself with status 3", "no input", "sh ended with status 3"):
        assert words in record


def test_sigterm_ends_both_runs(keep):
    keeper = keep("sleep", "100")
    keeper.wait_ready()
    wait_for(lambda: len(keeper.runs()) == 2, "there are two runs")
    keeper.process.send_signal(signal.SIGTERM)
    assert keeper.end() == (0, "")
    assert keeper.beats.state is State.FINISHED
    assert keeper.descendants() == []


# Programs that report their steps, and end.

STEPS = """
import sys
from castmates.workloads.heartbeat import Writer
beats = Writer.from_environment()
beats.ready()
for _ in range(int(sys.argv[1])):
    beats.beat()
getattr(beats, sys.argv[2])()
"""
REPORTS = ("--reports", heartbeat.VARIABLE)


def stepping(steps: int, state: str = "finished") -> list[str]:
    return [sys.executable, "-c", STEPS, str(steps), state]


def test_a_program_that_reports_its_steps_goes_on_in_another_run_and_its_count_too(keep):
    keeper = keep("--units", "3", *REPORTS, "--", *stepping(7))
    assert keeper.end() == (0, "")
    assert [units for _, units in keeper.beats.beats(0).records] == list(range(1, 22))
    assert keeper.beats.state is State.STARTING, "no run is ready: that is how the runner sees a gap"
    assert keeper.restarts.about() == {"runs": 3, "fewest_units": 7, "most_units": 7}
    keeper.restarts.read()
    gaps, times = keeper.restarts.inside(0, time.monotonic_ns()), [t_ns for t_ns, _ in keeper.beats.beats(0).records]
    assert len(gaps) == 2
    for number, (ended, resumed) in enumerate(gaps, start=1):
        assert times[7 * number - 1] < ended < resumed < times[7 * number]


@pytest.mark.parametrize("command", [stepping(0), stepping(3, "failed")], ids=["no step", "a wrong result"])
def test_a_run_without_a_step_or_with_a_wrong_result_is_the_last(keep, command):
    assert keep(*REPORTS, "--", *command).end() == (0, "")


def test_it_ends_as_a_program_that_reports_its_steps_does(keep):
    assert keep(*REPORTS, "--", "sh", "-c", "exit 3").end()[0] == 3


def test_it_is_killed_by_the_signal_that_killed_its_program(keep):
    assert keep(*REPORTS, "--", "sh", "-c", "kill -SEGV $$").end()[0] == -signal.SIGSEGV


def test_sigterm_is_passed_on_to_a_program_that_reports_its_steps(keep, tmp_path):
    script = "trap 'echo asked > told; exit 0' TERM; echo $$ > began; while :; do sleep 0.01; done"
    keeper = keep(*REPORTS, "--", "sh", "-c", script)
    wait_for(lambda: keeper.lines("began"), "it runs")
    keeper.process.send_signal(signal.SIGTERM)
    assert keeper.end() == (0, "")
    assert (tmp_path / "told").read_text() == "asked\n"


ENDS = """
import sys, time
time.sleep(float(sys.argv[1]))
for step in range(400):
    sum(range(60_000))
    print("step", step, flush=True)
"""


@pytest.mark.needs("two-cpus")
def test_a_program_that_ends_after_its_steps_leads_a_launch(cache, tmp_path):
    lead = Workload.model_validate(
        {"command": [sys.executable, "-c", ENDS, "0.1"], "progress": "output", "step_line": r"step (\d+)"}
    )
    plan = plan_of({"lead": lead.model_copy(update={"unit": "step"}), "other": counter()}, ["other"], cache)
    record = measured(plan, tmp_path, cache)
    kept = record["members"]["lead@0"]["kept_alive"]
    assert kept["runs"] > 0
    assert (kept["fewest_units"], kept["most_units"]) == (399, 399), "the first number of each run is where it begins"
    assert "lead@0" not in set(pd.read_parquet(tmp_path / "samples.parquet").query("source == 'keeper'")["subject"])
