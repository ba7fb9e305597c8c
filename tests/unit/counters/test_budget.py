"""How many events fit, shown by a kernel that the test makes up: it lends out so many counters, and not always."""

import pytest

from castmates.counters.events.budget import Tried, influences, kinds_of_cores, probe
from castmates.counters.events.groups import NO_COUNTER
from castmates.counters.events.resolving import Event
from castmates.linux.perf_event import Attr


def event(name, kind=0, config=0):
    return Event(name, name, "set", (Attr(kind, config),), "perf")


EVENTS = [event(name) for name in ("cycles", "instructions", "cache-references", "cache-misses", "LLC-loads")]


def kernel(counters, missing=(), seen=None):
    """A made-up answer: with more events than counters each is counted for its share of the time."""

    def attempt(events):
        names = [one.name for one in events if one.name not in missing]
        if seen is not None:
            seen.append(names)
        share = min(1.0, counters / len(names)) if names else 0.0
        refused = {name: NO_COUNTER for name in missing if name in {one.name for one in events}}
        return Tried(dict.fromkeys(names, share), refused)

    return attempt


def test_events_are_split_into_turns_that_are_never_multiplexed(tmp_path):
    budget = probe(EVENTS, [0], tmp_path, kernel(4))
    assert budget.turns == [
        ("cycles", "instructions", "cache-references", "cache-misses"),
        ("cycles", "instructions", "LLC-loads"),
    ]
    assert budget.about()["events that fit at once"] == "4"
    assert budget.about()["turn 2"] == "cycles, instructions, LLC-loads"
    assert probe(EVENTS, [0], tmp_path, kernel(5)).turns == [tuple(one.name for one in EVENTS)]


def test_what_has_no_counter_is_refused_with_its_reason_and_the_others_are_counted(tmp_path):
    budget = probe(EVENTS, [0], tmp_path, kernel(8, missing=("LLC-loads",)))
    assert budget.refused == {"LLC-loads": NO_COUNTER}
    assert budget.turns == [("cycles", "instructions", "cache-references", "cache-misses")]
    nothing = probe(EVENTS, [0], tmp_path, kernel(8, missing=[one.name for one in EVENTS]))
    assert (nothing.turns, len(nothing.refused), nothing.about()) == ([], 5, {})


def test_an_event_that_must_share_its_counter_with_strangers_has_its_own_turn_and_is_named(tmp_path):
    budget = probe(EVENTS[:3], [0], tmp_path, kernel(0.5))
    assert budget.turns == [("cache-references",), ("cycles",), ("instructions",)] or sorted(budget.turns) == [
        ("cache-references",), ("cycles",), ("instructions",)]  # fmt: skip
    assert budget.tight == ["cycles", "instructions", "cache-references"]
    assert "not counted all the time even alone" in budget.about()


def test_software_events_take_no_counter(tmp_path):
    seen = []
    assert probe([event("task-clock", 1, 1), event("sched", 2, 7)], [0], tmp_path, kernel(1, seen=seen)).turns == []
    assert seen == []


@pytest.fixture
def hybrid(tmp_path):
    """A made-up sysfs: CPUs 0-3 of one kind, 4-7 of another, siblings 0-1; the watchdog is on."""
    for name, cpus in (("cpu_core", "0-3"), ("cpu_atom", "4-7")):
        (tmp_path / "sys/bus/event_source/devices" / name).mkdir(parents=True)
        (tmp_path / "sys/bus/event_source/devices" / name / "cpus").write_text(cpus + "\n")
    for cpu, siblings in ((0, "0-1"), (5, "5")):
        (tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology").mkdir(parents=True)
        (tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").write_text(siblings + "\n")
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/nmi_watchdog").write_text("1\n")
    return tmp_path


def test_each_kind_of_core_is_tried(hybrid):
    assert kinds_of_cores([1, 2, 5, 6], hybrid) == [1, 5]
    seen = []
    assert probe(EVENTS[:1], [0, 5], hybrid, kernel(1, seen=seen)).turns == [("cycles",)]
    assert seen.count(["cycles"]) >= 3  # alone on each kind, and in a turn


def test_the_watchdog_and_siblings_are_told(hybrid):
    told = influences([0], hybrid)
    assert told["NMI watchdog"].startswith("on: it holds a counter")
    assert told["SMT"].startswith("siblings share")
    (hybrid / "proc/sys/kernel/nmi_watchdog").write_text("0\n")
    told = influences([5], hybrid)
    assert told["NMI watchdog"].startswith("off")
    assert told["SMT"].startswith("no siblings")
