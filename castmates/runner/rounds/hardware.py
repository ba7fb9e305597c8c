"""The hardware side of a launch: one allocator, one monitor, several collectors and counters, used as one."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from time import monotonic_ns
from typing import Protocol, runtime_checkable

from castmates.counters.choose import choose_collectors, choose_counters
from castmates.counters.edges import BetweenEdges
from castmates.linux.marks import is_ours
from castmates.machine.topology import read_topology
from castmates.protocols import (
    Allocator,
    Collector,
    Count,
    Counter,
    Edges,
    Held,
    Monitor,
    Sample,
    Say,
    ServesHelpers,
)
from castmates.rdt.choose import CacheRequest, NoAllocator, NoMonitor, choose
from castmates.rdt.resctrl.foreign_traffic import foreign_traffic
from castmates.rdt.resctrl.wanted_schemata import MASKS, parse
from castmates.runner.rounds.ledger_load import Surroundings, surroundings
from castmates.study.spec import Counting, Share

# The proof that a window's masks are those that were given: read back at both edges, and every thread in its group.

SOURCE = "masks"
SCHEMATA, CHANGED, MISPLACED = "schemata", "schemata_changed", "misplaced"  # metrics; the words stand in the note
Seen = tuple[dict[str, str], list[str]]  # masks in force, and threads in other groups


def number_of_ways(schemata: str) -> int | None:
    """Return how many ways a member may fill; None where there are no masks. On caches that it does not use it has all.

    With separate masks for code and data it is the ways of either, as it is in the effects' `lead_ways`.
    """
    masks = parse("\n".join(schemata.split()))
    filled: dict[int, int] = {}
    for line in MASKS:
        for domain, mask in masks.get(line, {}).items():
            filled[domain] = filled.get(domain, 0) | mask
    return min((mask.bit_count() for mask in filled.values()), default=None)


class MaskWitness(BetweenEdges[Seen]):
    """A collector; outermost, so that its looks lie outside the measured time."""

    name = SOURCE

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._former: dict[str, str] = {}

    def remember(self) -> None:
        """Remember what is in force now: it has just been written and proved."""
        self._former = self._allocator.read_back()

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002
        """Remember what is in force at the begin."""
        self.remember()

    def _look(self) -> Seen:
        return self._allocator.read_back(), self._allocator.misplaced()

    def _between(self, opening: Seen, closing: Seen) -> list[Sample]:
        """What is in force, and what differs from what was given."""
        (opened, astray), (closed, still), now = opening, closing, monotonic_ns()
        samples = [Sample(now, SOURCE, name, SCHEMATA, None, schemata) for name, schemata in closed.items()]
        for name, former in self._former.items():
            if strange := [f"'{seen.get(name, '')}'" for seen in (opened, closed) if seen.get(name) != former]:
                samples.append(Sample(now, SOURCE, name, CHANGED, 1.0, f"'{former}' was {strange[-1]}"))
        misplaced = dict.fromkeys([*astray, *still])
        return samples + [Sample(now, SOURCE, "host", MISPLACED, 1.0, words) for words in misplaced]

    def about(self) -> dict[str, str]:
        """Return how masks are proved."""
        return {"masks": "read back at both edges of every window, and every thread looked for in its group"}


LOOKS = 3  # of every series in a watched slice


@runtime_checkable
class HasLateSamples(Protocol):
    """A counter that needs time for its series, so that it is read after all edges."""

    def late_samples(self) -> list[Sample]:
        """Return the series of the window that was closed last."""


@runtime_checkable
class HasSeries(Protocol):
    """A counter that is also read between the edges, so many times a second; 0 turns that off."""

    series_rate: float
    worth_waiting: bool  # whether a watched slice is kept open so that its series has a few readings


@runtime_checkable
class HasOccupancies(Protocol):
    """A monitor that can be asked between series what lies in the caches."""

    def occupancies(self) -> dict[str, float | None]:
        """Return the bytes that each member has in the caches now; None where a part of them is not known."""


@runtime_checkable
class TakesTurns(Protocol):
    """A counter whose events take turns from round to round."""

    def take_turn(self, round_number: int) -> None:
        """Let the events of this round's turn count, and the others rest."""


def reads_every_slice(source: Edges) -> bool:
    """Check whether it is cheap enough to be read at the edges of every slice, and not of watched ones alone."""
    return bool(getattr(source, "every_slice", False))


@dataclass(frozen=True)
class Hardware:
    """The hardware side of a launch."""

    allocator: Allocator
    monitor: Monitor
    collectors: Sequence[Collector]
    surroundings: Surroundings
    witness: MaskWitness | None = None  # None where nothing is allocated
    counters: Sequence[Counter] = ()

    @classmethod
    def choose(
        cls,
        cpus: Sequence[int],
        request: CacheRequest,
        say: Say,
        counting: Counting | None = None,
        rounds_before: int = 0,
    ) -> "Hardware":
        """Take what this machine gives for members on these CPUs, after so many rounds of earlier launches."""
        beside = surroundings(read_topology(), cpus)
        collectors = choose_collectors(cpus, beside.quiet, beside.neighbours, is_ours)
        allocator, monitor = choose(request, say)
        witness = MaskWitness(allocator) if request.shares else None
        traffic = foreign_traffic(monitor, beside.caches)
        outermost: list[Collector] = [each for each in (witness, traffic) if each is not None]
        counters = choose_counters(counting, cpus, say, rounds_before) if counting else ()
        return cls(allocator, monitor, [*outermost, *collectors], beside, witness, counters)

    @classmethod
    def none(cls) -> "Hardware":
        """Nothing that watches, and nothing that is shared out."""
        return cls(NoAllocator(), NoMonitor(), (), Surroundings())

    def attach(self, everyone: Mapping[str, Held], members: Collection[str], helpers: Collection[str] = ()) -> None:
        """Begin to watch everyone, and to serve members and those who empty caches, once, after their start."""
        served = {name: held for name, held in everyone.items() if name in members}
        self.allocator.prepare(served)
        if helpers and isinstance(self.allocator, ServesHelpers):
            self.allocator.serve([everyone[name] for name in helpers])
        self.monitor.attach(served)
        pids = {name: held.pid for name, held in everyone.items()}
        for collector in self.collectors:
            collector.attach(pids)
        for counter in self.counters:
            counter.attach(served)

    def apply_shares(self, shares: Sequence[Share]) -> bool:
        """Put these shares in force; True where a member has lost ways."""
        lost = self.allocator.apply(tuple(share for share in shares if share.of_cache))
        if self.witness is not None:
            self.witness.remember()
        return lost

    def occupancies(self) -> dict[str, float | None]:
        """Return the bytes that each member has in the caches now; None where that cannot be read."""
        return self.monitor.occupancies() if isinstance(self.monitor, HasOccupancies) else {}

    def occupied(self) -> float | None:
        """Return the bytes that all members have in the caches now; None where that of one cannot be read."""
        each = list(self.occupancies().values())
        known = [amount for amount in each if amount is not None]
        return sum(known) if known and len(known) == len(each) else None

    def begin_series(self, active: Sequence[str], round_number: int) -> None:
        """Watch occupancy from the change of scene on, so that it is seen to settle; let counters get ready."""
        self.monitor.start()
        for counter in self.counters:
            counter.get_ready(active, round_number)

    def open_window(self, active: Sequence[str]) -> None:
        """Mark the opening edge of a window in which these members run."""
        for collector in (*self.collectors, *self.counters):
            collector.start(active)

    def close_window(self) -> list[Sample]:
        """Mark the closing edge, end the series, and return all that was read; edges nest."""
        inside_out = (*reversed(self.counters), *reversed(self.collectors))
        samples = [sample for collector in inside_out for sample in collector.stop()]
        samples += self.monitor.stop()
        late = [counter for counter in self.counters if isinstance(counter, HasLateSamples)]
        return samples + [sample for counter in late for sample in counter.late_samples()]

    def counts(self) -> list[Count]:
        """Return what the counters saw in the window that was closed last."""
        return [count for counter in self.counters for count in counter.counts()]

    def begin_stretch(self, round_number: int) -> None:
        """Let the events of this round's turn count."""
        for counter in self.counters:
            if isinstance(counter, TakesTurns):
                counter.take_turn(round_number)

    def open_slice(self, active: Sequence[str]) -> None:
        """Mark the opening edge of a slice, for those alone that are cheap to read."""
        for collector in self._cheap:
            collector.start(active)

    def close_slice(self) -> list[Sample]:
        """Mark the closing edge of a slice, and return what was read."""
        return [sample for collector in reversed(self._cheap) for sample in collector.stop()]

    def counts_of_slice(self) -> list[Count]:
        """Return what the cheap counters saw in the slice that was closed last."""
        return [count for counter in self.counters if reads_every_slice(counter) for count in counter.counts()]

    @property
    def watch_s(self) -> float:
        """How long a watched slice is open, so that every series that is worth it has a few looks in it."""
        series = [counter for counter in self.counters if isinstance(counter, HasSeries)]
        rates = [counter.series_rate for counter in series if counter.worth_waiting]
        rates.append(self.monitor.rate)
        return max((LOOKS / rate for rate in rates if rate), default=0.0)

    @cached_property
    def _cheap(self) -> tuple[Edges, ...]:
        return tuple(part for part in (*self.collectors, *self.counters) if reads_every_slice(part))

    def release(self) -> None:
        """Put everything back and let go; safe to call twice."""
        with ExitStack() as exits:  # the last one first, and each of them whatever happens to the others
            exits.callback(self.allocator.restore)
            exits.callback(self.monitor.close)
            for collector in (*self.collectors, *self.counters):
                exits.callback(collector.close)

    def reading(self) -> list[str]:
        """Return the names of the collectors that read something on this machine."""
        return [part.name for part in self.collectors if getattr(part, "reads", True)]

    def about(self) -> dict[str, dict[str, str]]:
        """Return what each part is and does."""
        parts = {"allocator": self.allocator.about(), "monitor": self.monitor.about()}
        return parts | {part.name: part.about() for part in (*self.collectors, *self.counters)}
