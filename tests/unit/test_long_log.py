"""The log of a long sweep stays readable: 500 launches, some of which fail, and more are added on the way."""

from logging import makeLogRecord
from pathlib import Path
from types import SimpleNamespace

import pytest

from castmates.project import Project
from castmates.runner import outcome
from castmates.terminal import display as showing
from castmates.terminal.display import ENDING, Display
from castmates.terminal.screens import LogLines
from tests.unit.makers import plan, study

MOST = 80  # lines of the whole log
LEADS, LAUNCHES = ["a", "b", "c", "d", "e"], 100
FIRST, STEP = 40, 46  # launches at first, and launches that each of ten looks adds


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A display over a plan of 500 launches, of which ten looks add most."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(outcome.VARIABLE, raising=False)
    one = study(LEADS, ["x"], budget={"launches": LAUNCHES, "rounds": 3})
    made = plan(one)
    wanted = list(made.launches[:FIRST])
    done = set()
    to_come = lambda *_: ([launch for launch in wanted if launch.path not in done], list(made.launches))  # noqa: E731
    monkeypatch.setattr(showing, "still_to_measure", to_come)
    display = Display(Project(Path("study.yaml"), one, {}, ""), made, lambda: 1, progress=True)
    yield SimpleNamespace(display=display, launches=made.launches, wanted=wanted, done=done)
    display.close()


def emit(sweep, event="", **facts):
    sweep.display.emit(makeLogRecord({"event": event, **facts}))


def begin(sweep, job, rule, **wildcards):
    emit(sweep, "job_info", jobid=job, rule_name=rule, wildcards=wildcards)


def play(sweep, number, launch):
    """Every third has failed for one of three reasons that its program gave, and every seventh as a job."""
    begin(sweep, number, "measure_launch", cohort=launch.cohort.id, number=str(launch.number))
    sweep.done.add(launch.path)
    if number % 7 == 0:
        log = Path(f"logs/{number}.log")
        log.parent.mkdir(exist_ok=True)
        log.write_text("".join(f"line {line}\n" for line in range(50)) + f"castmates: no {number % 5}.\n")
        emit(sweep, "job_error", jobid=number, rule_name="measure_launch", log=[str(log)])
        return
    status, reason = ("failed", f"ended with status {number % 9}") if number % 3 == 0 else ("measured", "")
    outcome.ended(SimpleNamespace(launch=launch, windows=[], rounds=3, status=status, reason=reason, total_seconds=1.0))
    emit(sweep, "job_finished", job_id=number)


def test_the_log_of_500_launches_has_fewer_than_80_lines(sweep, capsys):
    emit(sweep, "workflow_started")
    emit(sweep, "job_started")
    for number, launch in enumerate(sweep.launches, start=1):
        if len(sweep.done) == len(sweep.wanted):
            sweep.wanted += sweep.launches[len(sweep.wanted) : len(sweep.wanted) + STEP]
            begin(sweep, 1000 + number, "take_look", look="1")
            emit(sweep, "job_finished", job_id=1000 + number)
        play(sweep, number, launch)
    emit(sweep, msg="The sweep did not finish.", **{ENDING: False})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < MOST, "\n".join(lines)
    assert len(sweep.done) == 500
    assert sum("500/500" in line for line in lines) == 1, "the last launch has a line"
    for status in (0, 3, 6):
        assert any(f"failed: ended with status {status}" in line for line in lines)
    for reason in range(5):
        assert sum(line == f"     castmates: no {reason}." for line in lines) == 1
    assert f"{500 // 7} failed" in lines[-3]


@pytest.mark.parametrize("total", [1, 2, 39, 40])
def test_each_launch_of_a_short_sweep_has_a_line(total):
    lines = LogLines()
    assert [lines.wants(done, total) for done in range(1, total + 1)] == [True] * total


@pytest.mark.parametrize("total", [41, 79, 500, 9999])
def test_lines_of_a_long_sweep_are_spread_evenly_and_its_last_launch_has_one(total):
    lines = LogLines()
    shown = [done for done in range(1, total + 1) if lines.wants(done, total)]
    assert len(shown) in range(20, 41)
    assert shown[-1] == total
    steps = [after - before for before, after in zip([0, *shown], shown, strict=False)]
    assert max(steps) - min(steps[:-1]) <= 0
