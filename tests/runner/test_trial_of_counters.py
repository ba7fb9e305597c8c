"""Counts of tasks with known answers: the project's own are right here, and counters that are not are found out."""

import io
import itertools
import os
import platform
from dataclasses import replace
from functools import partial

import pytest
from rich.console import Console

from castmates.counters.events.budget import Budget, Rota
from castmates.counters.events.counting import Counters
from castmates.counters.events.resolving import resolve
from castmates.errors import CastmatesError
from castmates.inside import papi
from castmates.inside.events import event_of
from castmates.inside.readings import Reading
from castmates.linux.perf_event import EXCLUDE_KERNEL, Target, open_event
from castmates.machine.topology import read_topology
from castmates.protocols import Count
from castmates.trials.counters import methods, table
from castmates.trials.counters.program import MIB, SOFTWARE, CannotHere, known, trials
from castmates.trials.counters.table import as_table
from tests.needs import insist
from tests.runner.single_step import visits_of
from tests.waiting import wait_for

ELSEWHERE = () if platform.machine() in ("x86_64", "aarch64") else ("instructions", "branches", "cycles")
HARDWARE = [
    trial
    for trial in trials(read_topology(), 4096)
    if trial.account is None and trial.task not in ("migrate", *ELSEWHERE)
]
countable = pytest.mark.needs("events")


def trial_of(task):
    return next(trial for trial in SOFTWARE if trial.task == task)


def undisturbed(trial, program, folder, engine=methods.own_engine, perf_stat=True):
    """What comes of a trial in which nobody else made the task count more: on a busy machine one has to wait for it."""

    def tried():
        outcome = table.try_one(trial, program, folder, engine, perf_stat)
        return None if any("disturbed" in one.why for one in outcome[1:] if one) else outcome

    return wait_for(tried, f"{trial.name} is not disturbed")


@pytest.fixture
def judged(kernels, tmp_path):
    def judge(task, engine=methods.own_engine, scope="thread"):
        trial = replace(trial_of(task), scope=scope)
        return undisturbed(trial, kernels / "known", tmp_path, engine, perf_stat=False)[1]

    return judge


@countable
@pytest.mark.parametrize("task", ["kernel-touch", "crew-touch", "pingpong", "migrate"])
def test_the_projects_own_counts_are_right(judged, task):
    if task == "migrate":
        insist("two-cpus")
    found = judged(task)
    assert found.verdict == "verified", found


@countable
@pytest.mark.parametrize("task", ["crew-touch", "pingpong"])
def test_counts_by_control_group_are_right_too_where_there_is_one(judged, task):
    found = judged(task, scope="cgroup")
    if found.verdict == "not checked" and found.measured is None:
        pytest.skip(found.why)
    assert found.verdict == "verified", found


class OnePerCentMore(Counters):
    """A counter that counts a little too much."""

    def counts(self):
        return [replace(count, value=count.value * 1.01) for count in super().counts()]


class OneThread:
    """A counter of the first thread only, which claims to count all."""

    def __init__(self, event, *_):
        self._event = event_of(event)

    def attach(self, members):
        self._fd = open_event(self._event.attr, Target(members[methods.MEMBER].pid))

    def start(self, _active):
        self._begin = self._read()

    def stop(self):
        self._value = self._read() - self._begin

    def counts(self):
        return [Count(methods.MEMBER, self._event.name, float(self._value), "counted", "made wrong")]

    def close(self):
        os.close(self._fd)

    def _read(self):
        return int.from_bytes(os.read(self._fd, 32)[24:], "little")


def scaled(event, cpus, scope):
    return OnePerCentMore(resolve([("", (event,))]), Budget(), Rota(), how=scope)


def user_mode(event, cpus, scope):
    wanted = resolve([("", (event,))])
    attrs = [tuple(attr._replace(exclude=EXCLUDE_KERNEL) for attr in one.attrs) for one in wanted]
    blind = [replace(one, attrs=own) for one, own in zip(wanted, attrs, strict=True)]
    return Counters(blind, Budget(), Rota(), how=scope)


@countable
@pytest.mark.parametrize(
    ("task", "engine"),
    [
        ("pingpong", scaled),
        ("crew-touch", scaled),
        ("crew-touch", OneThread),
        ("pingpong", OneThread),
        ("kernel-touch", user_mode),
        ("pingpong", user_mode),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_counter_that_is_wrong_is_found_out(judged, task, engine):
    found = judged(task, engine)
    assert found.verdict == "wrong", found


class Told:
    """Counts as a processor would that has all counters: made up, because there may be none here."""

    def __init__(self, trial, factor):
        self._values = itertools.cycle(1000 + units * trial.per_unit * factor for units in (trial.short, trial.long))
        self._event = trial.event

    def attach(self, _members):
        self.start = self.stop = lambda *_: None
        self.close = lambda: None

    def counts(self):
        return [Count(methods.MEMBER, self._event, next(self._values), "counted", "synthetic")]


@pytest.mark.parametrize("trial", HARDWARE, ids=lambda trial: trial.name)
def test_tasks_for_the_processors_counters_run_and_are_judged_like_the_others(kernels, tmp_path, trial):
    small = replace(trial, bytes=MIB if trial.bytes < 0 else min(trial.bytes, MIB), pairs=2)
    for factor, verdict in ((1, "verified"), (1.01 if trial.high < 1.006 * trial.per_unit else 3, "wrong")):
        engine = partial(lambda factor, *_: Told(small, factor), factor)
        found = table.try_one(small, kernels / "known", tmp_path, engine, perf_stat=False).judged
        assert found.verdict == (verdict if trial.per_unit else "verified"), found


@countable
def test_what_cannot_be_done_here_is_not_checked_and_says_why(kernels, judged, monkeypatch, tmp_path):
    disk = trial_of("disk")
    place = "/dev/shm"
    if not os.access(place, os.W_OK):
        pytest.skip("there is no memory file system to try it on")
    with (
        pytest.raises(CannotHere, match="stay in memory"),
        known([str(kernels / "known"), "disk", f"directory={place}"]) as process,
    ):
        process.go(100)
    found = table.try_one(disk, kernels / "known", tmp_path / "nowhere", perf_stat=False).judged
    assert found.verdict == "not checked"
    assert found.why == "no file can be written there"


@countable
def test_perf_stat_is_asked_too_and_the_record_says_what_is_wrong(kernels, tmp_path):
    touch = trial_of("touch")
    outcomes = [undisturbed(touch, kernels / "known", tmp_path)]
    record = table.record_of(outcomes)
    _, both, theirs, _ = outcomes[0]
    assert both.verdict == "verified", both
    assert record["events"] == {"page-faults": "verified"}
    table.raise_if_wrong(record)
    assert theirs is None or theirs.verdict == "verified", theirs
    found = undisturbed(touch, kernels / "known", tmp_path, scaled)[1]
    with pytest.raises(CastmatesError, match="wrong counts: page-faults"):
        table.raise_if_wrong(table.record_of([table.Outcome(touch, found)]))


@pytest.mark.parametrize(("task", "instructions"), [("instructions", 100), ("branches", 11)])
def test_the_loops_have_as_many_instructions_as_they_say(kernels, task, instructions):
    """The processor's single steps show it."""
    units = 97
    visits = visits_of([str(kernels / "known"), task], units)
    assert sum(times == units for times in visits.values()) in (instructions, instructions + 1)  # one more by chance


class LikePapi:
    """PAPI's interface over the kernel's own counters: of every thread that it is given, inherited; times `factor`."""

    source, notes, misses = "PAPI", {}, ""
    factor = 1.0

    def __init__(self, events, threads):
        (self._event,) = events
        attr = event_of(self._event).attr
        self._fds = [open_event(attr, Target(tid, inherit=True)) for tid in threads()]
        self.names, self.refused = (self._event,), {}

    def readings(self):
        total = sum(int.from_bytes(os.read(fd, 32)[24:], "little") for fd in self._fds)
        return (Reading(int(self.factor * total), 0, 0),)

    def close(self):
        for fd in self._fds:
            os.close(fd)


@countable
@pytest.mark.parametrize("factor", [1.0, 1.02])
def test_papi_is_judged_too_where_it_is_and_what_it_counts_wrong_is_an_error(kernels, tmp_path, monkeypatch, factor):
    monkeypatch.setattr(methods, "PapiCounters", LikePapi)
    monkeypatch.setattr(LikePapi, "factor", factor)
    monkeypatch.setattr(papi, "why_not", lambda: None)
    crew = trial_of("crew-touch")
    outcome = undisturbed(crew, kernels / "known", tmp_path, perf_stat=False)
    record = table.record_of([outcome])
    assert outcome.judged.verdict == "verified", "our own counts are judged by themselves"
    assert outcome.papi.verdict == ("verified" if factor == 1 else "wrong"), outcome.papi
    assert record["papi"] == {"why": "", "events": {"page-faults": outcome.papi.verdict}}
    console = Console(file=io.StringIO(), width=200)
    console.print(as_table(record))
    printed = console.file.getvalue()
    assert "PAPI" in printed.splitlines()[1]
    if factor == 1:
        table.raise_if_wrong(record)
        assert "By PAPI 1 of 1 are verified, 0 wrong." in printed
    else:
        assert "wrong by PAPI: page-faults, crew-touch" in printed
        with pytest.raises(CastmatesError, match=r"wrong counts: page-faults \(by PAPI\)"):
            table.raise_if_wrong(record)


def test_without_papi_the_record_says_why_and_nothing_is_tried(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(papi, "why_not", lambda: papi.NOWHERE)
    outcome = table.try_one(replace(trial_of("touch"), pairs=1), kernels / "known", tmp_path, perf_stat=False)
    assert outcome.papi is None
    assert table.record_of([outcome])["papi"] == {"why": papi.NOWHERE, "events": {}}


@pytest.mark.skipif(bool(papi.why_not()), reason=str(papi.why_not()))
def test_the_papi_that_is_here_counts_a_crew_or_says_why_it_cannot(kernels, tmp_path):
    judged = methods.try_by_papi(trial_of("crew-touch"), kernels / "known", tmp_path, None)
    assert judged.verdict != "wrong", judged
    assert judged.verdict == "verified" or "another process" in judged.why or "disturbed" in judged.why, judged
