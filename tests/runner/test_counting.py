"""Counters of members, on real processes that do a known amount of work when asked; the events are the kernel's own."""

import gc
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from castmates.counters.events import groups
from castmates.counters.events.budget import Budget, Rota, probe
from castmates.counters.events.counting import Counters
from castmates.counters.events.resolving import Event, resolve
from castmates.linux.processes import Family, is_stopped
from castmates.protocols import Held
from castmates.runner.processes.freezer import SignalFreezer, choose_freezer
from castmates.study.counter_keys import SETS
from castmates.study.spec import Counting
from tests.needs import insist, lacks, why_not
from tests.runner.test_collectors import SLEEPS, TICKS_S, Worker, let_them_sleep, spent, threads_that_sleep
from tests.waiting import wait_for

pytestmark = pytest.mark.needs("events")
CPU = max(os.sched_getaffinity(0))
SOFTWARE = {name: SETS[name] for name in ("faults", "switches")} | {"clock": ("task-clock",)}
LEAD = f"lead@{CPU}"


class Pretended(Event):
    """An event of the kernel's own that is treated as if it took one of the processor's counters."""

    in_software = False


@pytest.fixture(params=["cgroup", "thread"])
def held(request):
    """A worker on one CPU, in its own control group or in none; a group's counters are those of whole CPUs."""
    if request.param == "cgroup":
        insist("whole-cpus")
    worker, freezer = Worker(), choose_freezer("counting")
    os.sched_setaffinity(worker.pid, {CPU})
    try:
        freezer.adopt(LEAD, worker.pid)
        group = freezer.group_of(LEAD)
        if request.param == "cgroup" and group is None:
            lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
        yield worker, Held(worker.pid, (CPU,), str(group) if request.param == "cgroup" else None), request.param
    finally:
        worker.end()
        freezer.close()


def counters(sets=SOFTWARE, how="auto", rate=0.0, turns=(), rota=None):
    events = resolve(list(sets.items()))
    if turns:
        events = [Pretended(**{field: getattr(one, field) for field in one.__dataclass_fields__}) for one in events]
    return Counters(events, Budget(list(turns)), rota or Rota(), how, rate)


def open_files():
    gc.collect()  # what others have let go of is closed now, and not in between
    return len(list(Path("/proc/self/fd").iterdir()))


def window(counting, active=(LEAD,), orders=(), worker=None, number=1):
    counting.get_ready(active, number)
    counting.start([*active, "placebo:1"])
    for order in orders:
        worker.do(order)
    samples = counting.stop()
    return {(one.subject, one.name): one for one in counting.counts()}, samples


@pytest.mark.parametrize("where", ["here", "thread", "child"])
def test_threads_and_children_are_counted_whole(held, where):
    worker, lead, scope = held
    counting = counters()
    counting.attach({LEAD: lead})
    orders = [f"touch 3000 {where}", f"sleep 300 {where}", f"burn 100 {where}"]
    before = spent(worker.pid)
    found, samples = window(counting, orders=orders, worker=worker)
    in_all = spent(worker.pid) - before
    about = counting.about()
    counting.close()
    assert {one.scope for one in found.values()} == {scope}
    assert {one.status for one in found.values()} == {"counted"}
    assert 3000 <= found[LEAD, "page-faults"].value < 4500
    assert found[LEAD, "context-switches"].value >= 280  # a sleep that is already over is none
    assert 0.1 <= found[LEAD, "task-clock"].value / 1e9 <= in_all + TICKS_S
    assert (found[LEAD, "major-faults"].value, found[LEAD, "major-faults"].running) == (0.0, 1.0)
    assert found[LEAD, "page-faults"].group == "faults"
    assert samples == []
    assert about["event page-faults"].startswith("faults: type=1 config=0x2 (")
    assert LEAD in about[f"counted by {scope}"]


def test_threads_that_were_there_before_are_counted():
    counting = counters(how="thread")
    with threads_that_sleep(3) as member:
        os.sched_setaffinity(member.pid, {CPU})
        counting.attach({LEAD: Held(member.pid, (CPU,))})
        counting.start([LEAD])
        let_them_sleep(member, 3)
        counting.stop()
        switches = next(one for one in counting.counts() if one.name == "context-switches")
        counting.close()
    assert switches.value >= 0.9 * 3 * SLEEPS  # a sleep that is already over is none


def test_a_member_that_stands_still_is_not_counted_which_is_no_zero(held):
    worker, lead, _ = held
    counting = counters()
    counting.attach({LEAD: lead})
    os.kill(worker.pid, signal.SIGSTOP)
    wait_for(lambda: is_stopped(worker.pid), "the worker stands still")
    found, _ = window(counting)
    os.kill(worker.pid, signal.SIGCONT)
    counting.close()
    assert {(one.value, one.status) for one in found.values()} == {(None, "not counted")}
    assert "on no processor" in found[LEAD, "page-faults"].note


def test_rounds_take_turns_and_the_others_turn_is_no_zero(held):
    worker, lead, _ = held
    rota = Rota()
    turns = [("page-faults", "context-switches"), ("minor-faults",)]
    sets = {"mine": ("page-faults", "context-switches", "minor-faults")}
    counting = counters(sets, turns=turns, rota=rota)
    assert rota.join(1) == [2]  # somebody else has the third
    counting.attach({LEAD: lead})
    for number in range(1, 7):
        found, _ = window(counting, orders=["touch 500 thread", "touch 500 child"], worker=worker, number=number)
        now = turns[number % 3 - 1] if number % 3 else ()
        for event in sets["mine"]:
            one = found[LEAD, event]
            assert one.status == ("counted" if event in now else "not counted"), (number, one)
            if event in now and event != "context-switches":
                assert 1000 <= one.value < 4000
        if number % 3 == 1:
            assert found[LEAD, "minor-faults"].note == "its turn comes in round 2 of every 3"
    counting.close()


def test_the_series_leads_from_nought_to_what_the_window_came_to(held):
    worker, lead, _ = held
    counting = counters(rate=50.0)
    counting.attach({LEAD: lead})
    found, samples = window(counting, orders=["touch 300 here", "burn 50 here"] * 6, worker=worker)
    counting.close()
    faults = [one.value for one in samples if one.metric == "page-faults"]
    assert len(faults) > 3
    assert faults[0] == 0
    assert faults[-1] == found[LEAD, "page-faults"].value
    assert all(before <= after for before, after in pairwise(faults))
    assert {one.source for one in samples} == {"counters"}
    assert [one.t_ns for one in samples] == sorted(one.t_ns for one in samples)
    assert "ms of the runner's CPU time a second" in counting.about()["cost"]


def test_what_was_counted_for_part_of_the_time_is_scaled_and_says_so(held, monkeypatch):
    worker, lead, _ = held
    read = groups.read_group

    def halved(fd, events):
        enabled, running, *counts = read(fd, events)
        return [enabled, running // 2, *counts]

    counting = counters()
    counting.attach({LEAD: lead})
    monkeypatch.setattr(groups, "read_group", halved)
    found, _ = window(counting, orders=["touch 1000 here"], worker=worker)
    counting.close()
    assert found[LEAD, "page-faults"].status == "scaled"
    assert found[LEAD, "page-faults"].running == pytest.approx(0.5, abs=0.01)
    assert 2000 <= found[LEAD, "page-faults"].value < 6000
    assert "counted for 50" in found[LEAD, "page-faults"].note


def test_events_of_the_processor_are_counted_or_say_why_not(held):
    worker, lead, _ = held
    events = resolve([("basic", SETS["basic"]), ("mine", ("no-such-event",))])
    counting = Counters(events, probe(events, [CPU]), Rota())
    counting.attach({LEAD: lead})
    found, _ = window(counting, orders=["burn 50 here"], worker=worker)
    counting.close()
    assert found[LEAD, "task-clock"].status == "counted"
    assert found[LEAD, "no-such-event"].status == "not supported"
    for name in ("cycles", "instructions"):
        one = found[LEAD, name]
        if one.status in ("counted", "scaled"):
            assert one.value > 1e6
        else:
            assert (one.value, bool(one.note)) == (None, True)


def test_a_scope_that_cannot_be_had_is_told_and_all_others_are_as_asked(held):
    worker, lead, _ = held
    nothing = counters(how="cgroup")
    nothing.attach({LEAD: Held(lead.pid, lead.cpus)})
    found, _ = window(nothing, orders=["touch 10 here"], worker=worker)
    nothing.close()
    assert {(one.status, one.scope) for one in found.values()} == {("not supported", "")}
    assert "no separate control group" in found[LEAD, "page-faults"].note
    if not why_not("whole-cpus"):
        whole = counters(how="cpu")
        whole.attach({LEAD: lead})
        found, _ = window(whole, orders=["touch 1000 here", "burn 30 here"], worker=worker)
        whole.close()
        assert found[LEAD, "page-faults"].value >= 1000
        assert found[LEAD, "context-switches"].value > 0
        assert found[LEAD, "page-faults"].scope == "cpu"


@pytest.mark.parametrize("kind", ["signals", "cgroup"])
def test_a_frozen_member_is_neither_let_go_nor_waited_for(kind):
    worker, freezer = Worker(), SignalFreezer() if kind == "signals" else choose_freezer("counting")
    counting = counters(how="thread")
    try:
        freezer.adopt(LEAD, worker.pid)
        group = freezer.group_of(LEAD)
        freezer.freeze(LEAD)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Family, "stop", lambda *_: pytest.fail("it was stopped, and let go again"))
            counting.attach({LEAD: Held(worker.pid, (CPU,), str(group) if group else None)})
        assert freezer.is_frozen(LEAD)
        freezer.thaw(LEAD)
        found, _ = window(counting, orders=["touch 1000 thread"], worker=worker)
        assert "stand still" not in found[LEAD, "page-faults"].note
        assert found[LEAD, "page-faults"].value >= 1000
    finally:
        counting.close()
        worker.end()
        freezer.close()


def test_everything_is_let_go_of(held):
    _, lead, _ = held
    before = open_files()
    counting = counters()
    counting.attach({LEAD: lead})
    assert open_files() > before
    counting.close()
    counting.close()
    assert open_files() == before


@pytest.mark.parametrize("how", ["auto", "thread"])
def test_who_has_ended_is_not_counted(how):
    counting = counters(how=how)
    counting.attach({"gone": Held(2**22 + 1, (CPU,))})
    found, _ = window(counting, active=("gone",))
    counting.close()
    assert {(one.status, one.scope) for one in found.values()} == {("not counted", "")}
    assert "had ended" in found["gone", "page-faults"].note


def test_a_study_without_events_counts_nothing():
    assert Counters.choose(Counting(), [CPU], Rota(), print) is None


def test_an_unprivileged_user_gets_his_own_threads_and_no_false_zeros():
    script = """
import os, subprocess, time
import psutil
from castmates.counters.events.counting import Counters
from castmates.counters.events.budget import Budget
from castmates.counters.events.resolving import resolve
from castmates.counters.events.budget import Rota
from castmates.protocols import Held
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
child = subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
counting = Counters(resolve([("x", ("page-faults", "context-switches"))], lambda _: None), Budget(), Rota())
counting.attach({"me": Held(child.pid, (0,))})
counting.start(["me"])
before = sum(psutil.Process(child.pid).cpu_times()[:2])
while sum(psutil.Process(child.pid).cpu_times()[:2]) < before + 0.05:
    time.sleep(0.01)
counting.stop()
child.kill()
for one in counting.counts(): print(one.name, one.status, one.scope, one.note, sep="|")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    faults, switches = done.stdout.splitlines()
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) >= 2:
        assert faults == "page-faults|counted|thread|user mode only"
        assert switches.startswith("context-switches|not counted|thread|perf is refused")
    else:
        assert faults.startswith("page-faults|counted|thread|")
