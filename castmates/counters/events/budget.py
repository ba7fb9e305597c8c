"""How many events the processor counts at once: tried on each kind of core before anything is measured.

A group that the kernel takes may still wait for a counter that the NMI watchdog or another user of perf holds; only a
try on the CPU itself shows.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from castmates.counters.events.groups import open_groups
from castmates.counters.events.resolving import Event
from castmates.counters.events.scopes import ELSEWHERE, core_units, counting_on, cpus_in, kinds_of_cores
from castmates.linux.host import sysctl
from castmates.linux.kernel_files import CPU_DIR
from castmates.linux.perf_event import Target
from castmates.protocols import Refusal

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
