"""The paths of events that the processor counts, on the lab's emulated counters: they tick with time, 4 beside 3 fixed.

Their numbers mean nothing; that they come through whole, in turns that fit, and scaled where they do not, does.
"""

import os
import subprocess
from pathlib import Path

import pytest

from castmates.counters.events.budget import Budget, Rota, count_ourselves, probe
from castmates.counters.events.counting import Counters
from castmates.counters.events.resolving import resolve
from castmates.protocols import Held
from castmates.runner.processes.freezer import choose_freezer
from castmates.workloads import heartbeat
from tests.waiting import wait_for

# How often each counter ticks in a microsecond (tests/lab/kit/processor/rdt.c): the fixed ones, then any other.
TICKS = {"cycles": 2000, "instructions": 1600}
OTHERS = ("cache-references", "cache-misses", "branches", "branch-misses", "r0151", "r0124")
EVENTS = (*TICKS, *OTHERS)
GENERAL = 4
LEAD = "lead@1"


@pytest.fixture
def lead(state):
    """A process that spins in a shell, in its own control group.

    Something is handed down from the root first, as systemd does at boot: until then groups lack perf_event too, which
    is never listed among the controllers.
    """
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+pids")
    spinner = subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
    os.sched_setaffinity(spinner.pid, {1})
    freezer = choose_freezer("counters")
    freezer.adopt(LEAD, spinner.pid)
    yield Held(spinner.pid, (1,), str(freezer.group_of(LEAD)))
    freezer.close()
    spinner.wait()


def spent(lead):
    """CPU seconds of the lead so far."""
    return float(Path(f"/proc/{lead.pid}/schedstat").read_text().split()[0]) / 1e9


def windows(counters, lead, rounds, seconds=0.3):
    """What each round counted: event -> count."""
    counters.attach({LEAD: lead})
    found = []
    for number in range(1, rounds + 1):
        counters.get_ready([LEAD], number)
        counters.start([LEAD])
        end = spent(lead) + seconds
        wait_for(lambda end=end: spent(lead) >= end, "the lead has run for a while")
        counters.stop()
        found.append({one.name: one for one in counters.counts()})
    about = counters.about()
    counters.close()
    return found, about


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
@pytest.mark.parametrize("how", ["cgroup", "thread", "cpu"])
def test_the_fixed_counters_come_through_whole(lead, how):
    events = resolve([("basic", (*TICKS, "task-clock"))])
    budget = probe(events, [1])
    assert budget.turns == [tuple(TICKS)]
    (found,), about = windows(Counters(events, budget, Rota(), how), lead, 1)
    assert {(one.status, one.scope) for one in found.values()} == {("counted", how)}
    microseconds = found["task-clock"].value / 1e3
    for name, ticks in TICKS.items():
        # Emulation is slow: milliseconds pass between the reads of two groups. Another counter would show a fiftieth.
        assert 1 / 7 < found[name].value / (ticks * microseconds) < 7
    assert found["instructions"].value / found["cycles"].value == pytest.approx(0.8, rel=0.02)
    assert about["event cycles"].startswith("basic: type=0 config=0x0")
    assert about["NMI watchdog"].startswith("off")


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_what_does_not_fit_takes_turns_and_nothing_is_multiplexed(lead):
    events = resolve([("many", EVENTS)])
    budget = probe(events, [1])
    assert len(budget.turns) == 2
    assert all(len(set(turn) & set(OTHERS)) <= GENERAL for turn in budget.turns)
    found, _ = windows(Counters(events, budget, Rota()), lead, 4)
    for number, counts in enumerate(found):
        for name, one in counts.items():
            if name in budget.turns[number % 2]:
                assert one.status == "counted", one
                assert one.running >= 0.999, one
                assert one.value > 0
            else:
                assert (one.status, one.note[:14]) == ("not counted", "its turn comes")


@pytest.mark.machines("linux-6.1")
def test_without_turns_the_kernel_multiplexes_and_every_value_says_so(lead):
    events = resolve([("many", EVENTS)])
    assert any(share < 0.999 for share in count_ourselves(events).shares.values())
    (found,), _ = windows(Counters(events, Budget([EVENTS]), Rota()), lead, 1, seconds=0.5)
    partly = [one for one in found.values() if one.running is not None and one.running < 0.999]
    assert partly
    for one in partly:
        assert one.status == ("scaled" if one.running else "not counted")
        assert one.note


@pytest.mark.machines("cat-only")
def test_a_machine_without_counters_says_not_supported(lead):
    events = resolve([("basic", (*TICKS, "task-clock"))])
    budget = probe(events, [1])
    assert (budget.turns, set(budget.refused)) == ([], set(TICKS))
    (found,), _ = windows(Counters(events, budget, Rota()), lead, 1, seconds=0.1)
    assert found["task-clock"].status == "counted"
    assert {found[name].status for name in TICKS} == {"not supported"}


@pytest.mark.machines("obeying")
def test_progress_by_instructions_is_what_a_program_executes(state, tmp_path, compiled):
    counted = []
    for units in (20_000, 60_000):  # of 100 instructions each
        beats = tmp_path / f"beats-{units}"
        heartbeat.create(beats)
        command = [compiled / "loop", "--units", "2", "--reports", heartbeat.VARIABLE, "--"]
        command += [compiled / "count", "--instructions", "--", compiled / "known", "instructions", f"units={units}"]
        subprocess.run(command, env=os.environ | {heartbeat.VARIABLE: str(beats)}, check=True, capture_output=True)
        counted.append(heartbeat.Reader(beats).beats(0).records[-1][1])
    fewer, more = counted
    assert more - fewer == pytest.approx(2 * 40_000 * 100, rel=0.01), counted
