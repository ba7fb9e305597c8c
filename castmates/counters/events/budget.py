"""How many events the processor counts at once: tried on each kind of core before anything is measured.

A group that the kernel takes may still wait for a counter that the NMI watchdog or another user of perf holds; only a
try on the CPU itself shows.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from castmates.counters.events.groups import ENDED, NO_COUNTER, open_groups
from castmates.counters.events.resolving import Event
from castmates.linux import cgroups
from castmates.linux.host import sysctl
from castmates.linux.kernel_files import CPU_DIR, read_text
from castmates.linux.perf_event import (
    CLOEXEC,
    HARDWARE,
    HW_CACHE,
    OF_CGROUP,
    PERF_DEVICES,
    SOFTWARE,
    Attr,
    Opener,
    Target,
    open_event,
)
from castmates.linux.processes import Family, is_stopped
from castmates.protocols import Held, Refusal
from castmates.study.cpus import parse

TRY_S = 0.006  # longer than the 4 ms after which the kernel lets other events have the counters
NO_COUNT = Refusal("not counted", "the kernel gave no count")
FULL = 0.999  # of the time that an event was wanted for

Kept = TypeVar("Kept")


class Tried(NamedTuple):
    """What a try came to."""

    shares: dict[str, float]  # event -> the share of its time for which it was counted
    refused: dict[str, Refusal]


Try = Callable[[Sequence[Event]], Tried]


@dataclass(frozen=True)
class Budget:
    """What can be counted on these CPUs, and in how many turns; of events that take the processor's counters."""

    turns: list[tuple[str, ...]] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)  # events that are counted nowhere
    tight: list[str] = field(default_factory=list)  # events that were not counted all the time even alone
    influences: dict[str, str] = field(default_factory=dict)

    def about(self) -> dict[str, str]:
        """Describe it."""
        if not self.turns:
            return self.influences
        facts = {"events that fit at once": str(max(map(len, self.turns)))}
        if len(self.turns) > 1:
            facts |= {f"turn {number}": ", ".join(turn) for number, turn in enumerate(self.turns, start=1)}
        if self.tight:
            facts["not counted all the time even alone"] = ", ".join(self.tight)
        return facts | self.influences


def probe(events: Sequence[Event], cpus: Sequence[int], root: Path = Path("/"), attempt: "Try | None" = None) -> Budget:
    """Split these events into turns that fit on every kind of core among the CPUs."""
    attempt = attempt or count_ourselves
    wanted = {event.name: event for event in events if event.attrs and not event.in_software}
    kinds, known = kinds_of_cores(cpus, root), core_units(root)
    counts_here = {event.name for event in counting_on(wanted.values(), cpus, known)}
    alone: dict[int, Tried] = {}
    for cpu in kinds:
        with _on(cpu):
            each = [attempt([event]) for event in counting_on(wanted.values(), [cpu], known)]
        alone[cpu] = Tried(_merged(trial.shares for trial in each), _merged(trial.refused for trial in each))
    countable = [name for name in wanted if any(name in tried.shares for tried in alone.values())]
    tight = [name for name in countable if any(tried.shares.get(name, 1.0) < FULL for tried in alone.values())]

    def fits(names: Sequence[str]) -> bool:
        for cpu in kinds:
            here = counting_on((wanted[name] for name in names if name in alone[cpu].shares), [cpu], known)
            with _on(cpu):
                shares = attempt(here).shares if here else {}
            if any(shares.get(event.name, 0.0) < FULL for event in here):
                return False
        return True

    refused = {
        name: next(
            (tried.refused[name] for tried in alone.values() if name in tried.refused),
            NO_COUNT if name in counts_here else ELSEWHERE,
        )
        for name in wanted
        if name not in countable
    }
    return Budget(split(countable, fits), refused, tight, influences(cpus, root) if countable else {})


def count_ourselves(events: Sequence[Event]) -> Tried:
    """Count these together while we spin for a moment on the CPU where we are."""
    opened = open_groups(events, [Target(0)])
    try:
        end = time.thread_time() + TRY_S
        while opened.groups and time.thread_time() < end:
            pass
        readings = opened.read()
    finally:
        opened.close()
    shares = {name: reading.running / reading.enabled if reading.enabled else 0.0 for name, reading in readings.items()}
    return Tried(shares, opened.refused)


def influences(cpus: Sequence[int], root: Path = Path("/")) -> dict[str, str]:
    """Return what of the machine's state takes counters away."""
    watchdog = sysctl("kernel/nmi_watchdog", root) not in (None, "0")
    shared = any(len(cpus_in(root / CPU_DIR / f"cpu{cpu}/topology/thread_siblings_list")) > 1 for cpu in cpus)
    return {
        "NMI watchdog": "on: it holds a counter of each CPU (`machine.prepare.nmi_watchdog: off` frees it)"
        if watchdog
        else "off: it holds no counter",
        "SMT": "siblings share their core: Intel's processors before Ice Lake have half the counters for each, which "
        "the try above has seen"
        if shared
        else "no siblings: each CPU has its core's counters",
    }


def _merged(parts: Iterable[Mapping[str, Kept]]) -> dict[str, Kept]:
    return {name: value for part in parts for name, value in part.items()}


@contextmanager
def _on(cpu: int) -> Iterator[None]:
    """Be on this CPU for a moment, where we may."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# Turns at the processor's counters, where not everything fits there at once: who is in which, and when each comes.
#
# Each round of a launch belongs to one turn, the same for all its scenes, so that a scene and its baseline are compared
# by the same events of the same round. Turns go on from launch to launch: a launch of fewer rounds than turns would
# always count the same ones.

ANCHORS = ("cycles", "instructions")  # what most others are compared with: in every turn, where they fit


class Rota:
    """Deals out turns to those who want the counters, and knows whose turn a round is."""

    def __init__(self, rounds_before: int = 0) -> None:
        self.turns = 0
        self._before = rounds_before  # in the launches before this one

    def join(self, turns: int) -> list[int]:
        """Take so many turns; the first to join has the first ones."""
        numbers = list(range(self.turns, self.turns + turns))
        self.turns += turns
        return numbers

    def turn(self, round_number: int) -> int:
        """Return the turn of a round; rounds are counted from 1."""
        return (self._before + round_number - 1) % max(self.turns, 1)

    def first_round(self, turn: int) -> int:
        """Return the first round in which a turn comes."""
        return (turn - self._before) % max(self.turns, 1) + 1

    def when(self, turn: int) -> str:
        """Describe in which rounds a turn comes."""
        return f"in round {self.first_round(turn)} of every {self.turns}" if self.turns > 1 else "in every round"


def split(
    events: Sequence[str], fits: Callable[[Sequence[str]], bool], anchors: Sequence[str] = ANCHORS
) -> list[tuple[str, ...]]:
    """Put every event into the first turn that still has room for it, and the anchors into every turn that has.

    An event that does not even fit alone has a turn to itself: how long it counted stands beside its value.
    """
    everywhere = _growing((), [name for name in anchors if name in events], fits)
    turns: list[tuple[str, ...]] = []
    for name in events:
        if name in everywhere:
            continue
        for place, turn in enumerate(turns):
            if fits((*turn, name)):
                turns[place] = (*turn, name)
                break
        else:
            beside = (*everywhere, name)
            turns.append(beside if everywhere and fits(beside) else (name,))
    if everywhere and not any(set(everywhere) <= set(turn) for turn in turns):
        turns.insert(0, everywhere)
    return turns


def _growing(turn: tuple[str, ...], names: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """As many of these, in their order, as fit together."""
    for name in names:
        if fits((*turn, name)):
            turn = (*turn, name)
    return turn


# How a member can be counted here: its control group, its threads with all that they start, or all of its CPUs.

ScopeName = Literal["cgroup", "thread", "cpu"]
SCOPES: tuple[ScopeName, ...] = ("cgroup", "thread", "cpu")  # in the order in which they are preferred
STILL_S = 5.0
MAY_LACK = "the member did not stand still while its counters were opened: threads may be missing"
_TRIED = Event("task-clock", "task-clock", "", (Attr(SOFTWARE, 1),))  # which every kernel counts
IN_WORDS = {
    "cgroup": "everything in its control group, on each of its CPUs",
    "thread": "each of its threads and all that they start; opened while they stood still",
    "cpu": "everything that runs on its CPUs, the kernel's and others' work too",
    "": "nothing",
}


@dataclass
class Scope:
    """How a member is counted, and whom its counters are opened on."""

    name: ScopeName | Literal[""] = ""
    targets: list[Target] = field(default_factory=list)
    why_not: dict[str, Refusal] = field(default_factory=dict)  # by scope
    lacks: str = ""  # what may be in no count
    folder: int = -1  # descriptor of the control group

    def close(self) -> None:
        """Let go of the control group; its counters hold it themselves."""
        if self.folder >= 0:
            os.close(self.folder)
            self.folder = -1


@contextmanager
def scope_of(held: Held, how: str, opener: Opener = open_event) -> Iterator[Scope]:
    """Find the first scope that works; a member that is counted by threads stands still meanwhile.

    So no thread is born between the look at its threads and the opening of their counters: those that are born
    later inherit them.
    """
    scope = Scope()
    family: Family | None = None
    try:
        for name in SCOPES if how == "auto" else [how]:
            if name == "thread" and not _stands_still(held):
                family = Family(held.pid)
                still_runs = family.stop(STILL_S)
                scope.lacks = MAY_LACK if still_runs else ""
            try:
                targets = _targets(scope, name, held)
            except OSError as error:
                scope.why_not[name] = Refusal("not supported", error.strerror or "it cannot be opened")
                continue
            if why := _refusal(name, targets, opener):
                scope.why_not[name] = why
                if why == ENDED:
                    break  # what runs on its CPUs now is not its own
                continue
            scope.name, scope.targets = next(known for known in SCOPES if known == name), targets
            break
        yield scope
    finally:
        if family is not None:
            family.resume()
        scope.close()


def _stands_still(held: Held) -> bool:
    """Check whether another process has frozen the member, so that we neither need to stop it nor may let it go on."""
    if held.cgroup is not None:
        with suppress(OSError):
            return cgroups.event(Path(held.cgroup), "frozen")
    living = Family(held.pid).living()
    return bool(living) and all(is_stopped(process.pid) for process in living)


def _targets(scope: Scope, name: str, held: Held) -> list[Target]:
    if name == "cgroup":
        if held.cgroup is None:
            raise OSError(0, "the member has no separate control group")
        scope.folder = os.open(held.cgroup, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        return [Target(scope.folder, cpu, CLOEXEC | OF_CGROUP) for cpu in held.cpus]
    if name == "thread":
        return [Target(tid, inherit=True) for tid in sorted(Family(held.pid).threads())]
    return [Target(-1, cpu) for cpu in held.cpus]


def _refusal(scope: str, targets: Sequence[Target], opener: Opener) -> Refusal | None:
    """Explain why nothing can be counted on these; None where it can."""
    opened = open_groups([_TRIED], targets, opener=opener)
    opened.close()
    refusal = opened.refused.get(_TRIED.name)
    if scope == "cgroup" and refusal == NO_COUNTER:
        # Version 1 has it there, or no controller was handed down from the root since the machine was started.
        return Refusal("not supported", "the hierarchy of its control group has no perf_event controller")
    return refusal


# Which of the processor's units counts on which CPUs: hybrid processors have one for each kind of core.

ELSEWHERE = Refusal(
    "not supported", "this event is one of the processor's other kind of core, on which the member does not run"
)

Units = Mapping[int, frozenset[int]]  # the number that events name a unit by -> the CPUs that it counts on


def core_units(root: Path = Path("/")) -> Units:
    """The units of cores, which list their CPUs; those of whole packages list none."""
    found = {}
    for file in (root / PERF_DEVICES).glob("*/cpus"):
        number = read_text(file.parent / "type")
        if number and number.strip().isdigit():
            found[int(number)] = frozenset(cpus_in(file))
    return found


def counting_on(events: Iterable[Event], cpus: Sequence[int], known: Units) -> list[Event]:
    """The events that can count on any of these CPUs, each as the units of these CPUs know it."""
    here = (replace(event, attrs=tuple(attr for attr in event.attrs if _counts(attr, cpus, known))) for event in events)
    return [event for event in here if event.attrs]


def kinds_of_cores(cpus: Sequence[int], root: Path = Path("/")) -> list[int]:
    """Return one CPU for each set of units that count on these CPUs; processors with one kind of core have one."""
    by_unit = {file.parent.name: cpus_in(file) for file in (root / PERF_DEVICES).glob("*/cpus")}
    first_cpus: dict[frozenset[str], int] = {}
    for cpu in cpus:
        first_cpus.setdefault(frozenset(name for name, counted in by_unit.items() if cpu in counted), cpu)
    return list(first_cpus.values())


def cpus_in(file: Path) -> list[int]:
    """The CPUs that a file of the kernel lists."""
    word = read_text(file)
    return parse(word, file.name) if word else []


def _counts(attr: Attr, cpus: Sequence[int], known: Units) -> bool:
    if attr.kind in (HARDWARE, HW_CACHE) and not attr.config >> 32:
        return True  # it names no unit: the kernel takes the one of the CPU
    return attr.unit not in known or not known[attr.unit].isdisjoint(cpus)
