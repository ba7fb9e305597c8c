"""Members on one kind of a hybrid processor's cores are counted by its unit, and events of the others are named."""

from contextlib import contextmanager

import pytest

from castmates.counters.events import budget as budget_module
from castmates.counters.events import counting
from castmates.counters.events.budget import ELSEWHERE, Budget, Rota, Scope, Tried, core_units, counting_on, probe
from castmates.counters.events.counting import Counters
from castmates.counters.events.groups import Opened
from castmates.counters.events.resolving import Event
from castmates.linux.perf_event import HARDWARE, SOFTWARE, Attr, Target
from castmates.protocols import Held

CORE, ATOM = 4, 10


def event(name, *attrs):
    return Event(name, name, "set", attrs, "perf")


CYCLES = event("cycles", Attr(HARDWARE, CORE << 32), Attr(HARDWARE, ATOM << 32))
ON_CORE = event("mem_load_retired.l3_miss", Attr(CORE, 0x20D1))
ON_ATOM = event("mem_load_uops_retired.dram_hit", Attr(ATOM, 0x80D1))
CLOCK = event("task-clock", Attr(SOFTWARE, 1))
UNNAMED = event("instructions", Attr(HARDWARE, 1))  # without perf nobody knows the units
EVENTS = [CYCLES, ON_CORE, ON_ATOM, CLOCK, UNNAMED]


@pytest.fixture
def hybrid(tmp_path):
    """A made-up sysfs: CPUs 0-3 are performance cores, 4-7 efficient ones; a package's unit lists no CPUs."""
    devices = tmp_path / "sys/bus/event_source/devices"
    for name, number, cpus in (("cpu_core", CORE, "0-3"), ("cpu_atom", ATOM, "4-7"), ("uncore_imc", 14, "")):
        (devices / name).mkdir(parents=True)
        (devices / name / "type").write_text(f"{number}\n")
        if cpus:
            (devices / name / "cpus").write_text(f"{cpus}\n")
    return tmp_path


def test_an_event_counts_on_the_cpus_of_its_unit(hybrid):
    known = core_units(hybrid)
    assert known == {CORE: frozenset(range(4)), ATOM: frozenset(range(4, 8))}
    on_core, on_atom, on_both = (counting_on(EVENTS, cpus, known) for cpus in ([0, 1], [5], [3, 4]))
    assert [one.name for one in on_core] == ["cycles", "mem_load_retired.l3_miss", "task-clock", "instructions"]
    assert [one.name for one in on_atom] == ["cycles", "mem_load_uops_retired.dram_hit", "task-clock", "instructions"]
    assert (on_core[0].attrs, on_atom[0].attrs) == (CYCLES.attrs[:1], CYCLES.attrs[1:])
    assert on_both == EVENTS
    assert counting_on(EVENTS, [0], {}) == EVENTS, "a processor with one kind of core"


@pytest.fixture
def attempt(hybrid, monkeypatch):
    """A kernel that counts on a CPU what the CPU's own unit knows, and the rest never."""
    here, known = [], core_units(hybrid)

    @contextmanager
    def on(cpu):
        here.append(cpu)
        yield

    monkeypatch.setattr(budget_module, "_on", on)

    def attempt(events):
        def counts(attr):
            unnamed = attr.kind == HARDWARE and not attr.config >> 32
            return unnamed or here[-1] in known.get(attr.unit, ())

        return Tried({one.name: float(any(map(counts, one.attrs))) for one in events}, {})

    return attempt


def test_events_of_both_kinds_share_a_turn_because_each_core_counts_its_own(hybrid, attempt):
    found = probe(EVENTS, [0, 5], hybrid, attempt)
    assert found.turns == [tuple(one.name for one in (CYCLES, UNNAMED, ON_CORE, ON_ATOM))]
    assert (found.tight, found.refused) == ([], {})


def test_a_launch_on_one_kind_alone_says_of_the_others_events_that_they_are_elsewhere(hybrid, attempt):
    found = probe(EVENTS, [0, 1], hybrid, attempt)
    assert found.refused == {ON_ATOM.name: ELSEWHERE}
    assert found.turns == [tuple(one.name for one in (CYCLES, UNNAMED, ON_CORE))]


def test_each_member_is_counted_by_its_own_kind_of_core(hybrid, monkeypatch):
    opened = []

    def open_groups(events, targets, **_):
        opened.append({one.name: one.attrs for one in events})
        return Opened()

    @contextmanager
    def scope_of(*_):
        yield Scope("thread", [Target(1)])

    monkeypatch.setattr(counting, "open_groups", open_groups)
    monkeypatch.setattr(counting.scopes, "scope_of", scope_of)
    monkeypatch.setattr(counting, "core_units", lambda: core_units(hybrid))
    turn = tuple(one.name for one in (CYCLES, ON_CORE, ON_ATOM))
    counters = Counters([CYCLES, ON_CORE, ON_ATOM, CLOCK], Budget([turn]), Rota())
    counters.attach({"fast@0": Held(1, [0, 1]), "slow@4": Held(2, [4]), "both@3": Held(3, [3, 4])})
    _, fast, _, slow, _, both = opened
    assert fast == {CYCLES.name: CYCLES.attrs[:1], ON_CORE.name: ON_CORE.attrs}
    assert slow == {CYCLES.name: CYCLES.attrs[1:], ON_ATOM.name: ON_ATOM.attrs}
    assert both == {one.name: one.attrs for one in (CYCLES, ON_CORE, ON_ATOM)}
    counters.start(["fast@0", "slow@4"])
    counters.stop()
    said = {(one.subject, one.name): (one.status, one.note) for one in counters.counts()}
    assert said["fast@0", ON_ATOM.name] == said["slow@4", ON_CORE.name] == ELSEWHERE
    assert said["fast@0", ON_CORE.name] != ELSEWHERE
