"""Do masks change what a chase holds that runs alone? The rule stands here, and results do not change it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, Protocol

from castmates.study.cache import Cache
from castmates.study.masks import runs, union
from castmates.study.partitions.sweeps import cut_ways
from castmates.study.rdt_trial import NOT_TRIED, UNDECIDED, WORKS, Masks
from castmates.trials.rdt.looks import SEED, Interval, Looks, logs, windows

NO_EFFECT: Final = "no effect on time"
NOT_FOLLOWING: Final = "occupancy does not follow"
NO_ALLOCATION: Final = "no cache allocation here"


PAIRS = Looks((16, 32, 64))  # of windows after which it may be decided: few ways, and all


@dataclass(frozen=True, slots=True)
class Rule:
    """How a trial is made and judged."""

    looks: Looks = PAIRS
    least_ratio: float = 1.1  # a chase through half the cache must be slower by so much with the fewest ways
    plateau: tuple[float, float] = (0.5, 1.3)  # occupancy over ways x way size, where the buffer is larger


RULE = Rule()


@dataclass(frozen=True, slots=True)
class Times:
    """Nanoseconds per load, window by window; those of one pair stand at the same place."""

    few: tuple[float, ...]
    all: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Plateau:
    """What was occupied under a mask of so many ways."""

    ways: int
    expected: int  # bytes
    measured: float | None  # bytes; None where the machine does not show it


@dataclass(frozen=True, slots=True)
class Ratio:
    """How much slower a load is with few ways than with all, with its interval."""

    value: float
    low: float
    high: float


def slowdown(times: Times, rule: Rule = RULE) -> Ratio:
    """Return the mean of the pairs' log ratios, with Student's interval."""
    return _ratio(rule.looks.interval(logs(times.few) - logs(times.all)))


def _ratio(found: Interval) -> Ratio:
    return Ratio(math.exp(found.mean), math.exp(found.low), math.exp(found.high))


def follows(plateaus: Sequence[Plateau], rule: Rule = RULE) -> bool | None:
    """Check whether occupancy follows the masks: near ways x way size, more with more ways; None where not known."""
    known = sorted((p.ways, p.measured, p.measured / p.expected) for p in plateaus if p.measured is not None)
    if len(known) < 2:
        return None
    low, high = rule.plateau
    rising = all(before[1] < after[1] for before, after in pairwise(known))
    return rising and all(low <= share <= high for _, _, share in known)


def judge(ratio: Ratio, followed: bool | None, rule: Rule = RULE) -> Masks:
    """Return the verdict."""
    if ratio.high < rule.least_ratio:
        return NO_EFFECT
    if ratio.low < rule.least_ratio:
        return UNDECIDED
    return NOT_FOLLOWING if followed is False else WORKS


SENTENCES: Mapping[Masks, str] = {
    WORKS: "A mask limits what a program alone can fill.",
    NO_EFFECT: "Way masks are taken by this machine but have no effect on time.",
    NOT_FOLLOWING: "Way masks change the time of loads, but occupancy does not follow them.",
    UNDECIDED: "Whether way masks do something was not decided: the times differ too much from window to window; try "
    "again when nothing else runs.",
    NO_ALLOCATION: "There is no cache allocation here, so no mask could be tried.",
    NOT_TRIED: "That takes two groups, one of the program that is timed and one of what evicts its lines; fewer can be "
    "made here.",
}


def in_words(verdict: Masks, ratio: Ratio, pairs: int, plateaus: Sequence[Plateau], rule: Rule = RULE) -> str:
    """Return the result, in one paragraph."""
    time = (
        f"A chase through half the last-level cache takes {ratio.value:.2f} times as long per load with the fewest "
        f"ways as with all ({100 * rule.looks.level:g} % interval {ratio.low:.2f} to {ratio.high:.2f}, {pairs} pairs "
        f"of windows in random order; {rule.least_ratio:g} or more was asked for, before it was measured)."
    )
    return f"{SENTENCES[verdict]} {time} {_occupancy(plateaus)}"


def _occupancy(plateaus: Sequence[Plateau]) -> str:
    known = [p for p in plateaus if p.measured is not None]
    if not known:
        return "This machine does not show occupancy, so time alone was judged."
    each = ", ".join(f"{p.ways} ways: {p.measured / p.expected:.2f}" for p in known if p.measured is not None)
    state = "follows" if follows(plateaus) else "does not follow"
    return f"Occupancy {state} the masks (measured over ways x way size; {each})."


def figures(times: Times, ratio: Ratio, plateaus: Sequence[Plateau], rule: Rule = RULE) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "rule": asdict(rule),
        "ns_per_load": asdict(times),
        "slowdown": asdict(ratio),
        "occupancy": [asdict(plateau) for plateau in plateaus],
    }


# The order of a trial: pairs of windows with the fewest ways and with all, then occupancy under several masks.

ROUNDS = 2  # up and down the masks, so that what an earlier mask left is not taken for the mask's own


class Subject(Protocol):
    """A chase through half of a last-level cache, under a mask that can be set."""

    def set_mask(self, mask: int) -> None:
        """Put a mask in force for the chase, evict what it has elsewhere, and let it fill these ways."""

    def ns_per_load(self) -> float:
        """Let the chase run for one window."""

    def occupied(self) -> float | None:
        """Let the chase run until its occupancy stays, and return it in bytes; None where it is not known."""


def times(subject: Subject, cache: Cache, rule: Rule = RULE, seed: int = SEED) -> Times:
    """Measure pairs until a look decides; a coin decides which of the two windows comes first."""
    narrow = mask_of(cache, fewest(cache))

    def so_far(found: Mapping[int, Sequence[float]]) -> Times:
        return Times(tuple(found[narrow]), tuple(found[cache.full]))

    def decided(found: Mapping[int, Sequence[float]]) -> bool:
        return judge(slowdown(so_far(found), rule), None, rule) != UNDECIDED

    return so_far(windows([narrow, cache.full], lambda mask: _window(subject, mask), rule.looks, decided, seed))


def _window(subject: Subject, mask: int) -> float:
    subject.set_mask(mask)
    return subject.ns_per_load()


def plateaus(subject: Subject, cache: Cache, way_bytes: int) -> tuple[Plateau, ...]:
    """Measure what is occupied under masks that are narrower than the chase's buffer."""
    steps = steps_of(cache)
    occupancies: dict[int, list[float]] = {ways: [] for ways in steps}
    for number in range(ROUNDS):
        for ways in steps if number % 2 == 0 else reversed(steps):
            subject.set_mask(mask_of(cache, ways))
            occupied = subject.occupied()
            if occupied is not None:
                occupancies[ways].append(occupied)
    return tuple(Plateau(ways, ways * way_bytes, median(seen) if seen else None) for ways, seen in occupancies.items())


def fewest(cache: Cache) -> int:
    """Return how few ways a mask may have here."""
    return max(1, cache.least_ways)


def steps_of(cache: Cache) -> Sequence[int]:
    """List the numbers of ways that the chase, whose buffer is half of the cache, fills entirely."""
    few = fewest(cache)
    numbers = {few, 2 * few, cache.ways // 4, cache.ways // 2 - 1}
    return sorted(ways for ways in numbers if few <= ways < cache.ways / 2)


def mask_of(cache: Cache, ways: int) -> int:
    """Return the mask of so many ways side by side, away from those that I/O uses too if there is room."""
    masks = [((1 << ways) - 1) << shift for shift in range(cache.ways - ways + 1)]
    return min(masks, key=lambda mask: (mask & cache.shareable).bit_count())


# Does the processor give the ways that I/O fills too together only? A trial of one of them; the rule stands here.
#
# Some processors do, and the kernel does not show it: a mask of one such way then has them all. So a chase, whose
# buffer lies between the two sizes, runs under a mask of one I/O way, under as many ways elsewhere, and under as many
# as it would have if they were tied. Its time and, where the machine shows it, its occupancy are compared with both.

TIED, SEPARATE = "tied", "separate"


TRIPLES = Looks((16, 32, 64), comparisons=3)  # of windows after which it may be decided


@dataclass(frozen=True, slots=True)
class IoRule:
    """How the trial is made and judged."""

    looks: Looks = TRIPLES
    least_ratio: float = 1.1  # by which loads must be slower with the few ways than with all that may be tied
    occupancy: tuple[float, float] = (0.25, 0.75)  # of the way from the few to all: below it is separate, above tied
    emptier: float = -0.25  # on the same scale: below it devices take so much that tied ways would look separate


IO_RULE = IoRule()


@dataclass(frozen=True, slots=True)
class IoMasks:
    """The masks that are compared."""

    io: int  # of ways that I/O fills too, and not all of these
    few: int  # as many ways elsewhere
    joined: int  # as many ways elsewhere as the first one has if they are tied

    def buffer(self, way_bytes: int) -> int:
        """Return the size of a buffer that fits into the joined ways, and not into the few."""
        return (self.few.bit_count() + self.joined.bit_count()) * way_bytes // 2


@dataclass(frozen=True, slots=True)
class IoTimes:
    """Nanoseconds per load, window by window; those of one triple stand at the same place."""

    io: tuple[float, ...]
    few: tuple[float, ...]
    joined: tuple[float, ...]


def io_masks(cache: Cache) -> IoMasks | None:
    """Choose the masks; None where no mask can have some of these ways only, or there is no room elsewhere."""
    ways = fewest(cache)
    cutting = [mask for mask in _side_by_side(cache, ways) if cut_ways(mask, cache.shareable)]
    if not cutting:
        return None
    io = max(cutting)
    few, joined = mask_of(cache, ways), mask_of(cache, (io | cut_ways(io, cache.shareable)).bit_count())
    return None if (few | joined) & cache.shareable else IoMasks(io, few, joined)


def io_times(subject: Subject, tried: IoMasks, seed: int = SEED) -> IoTimes:
    """Measure triples of windows in random order until a look decides."""
    masks = (tried.io, tried.few, tried.joined)

    def so_far(found: Mapping[int, Sequence[float]]) -> IoTimes:
        return IoTimes(*(tuple(found[mask]) for mask in masks))

    def decided(found: Mapping[int, Sequence[float]]) -> bool:
        return judge_times(so_far(found)) != UNDECIDED

    return so_far(windows(masks, lambda mask: _window(subject, mask), IO_RULE.looks, decided, seed))


def io_occupancy(subject: Subject, tried: IoMasks) -> dict[str, float | None]:
    """Measure what a chase that is larger than all of them occupies under each mask."""
    found: dict[str, float | None] = {}
    for name, mask in asdict(tried).items():
        seen = []
        for _ in range(ROUNDS):
            subject.set_mask(mask)
            occupied = subject.occupied()
            seen += [occupied] if occupied is not None else []
        found[name] = median(seen) if seen else None
    return found


def judge_times(times: IoTimes) -> str:
    """Return whether loads take as long as with the joined ways or as with the few.

    It is undecided if these are alike, and where devices write: they may take what tied ways give.
    """
    io, few, joined = (logs(each) for each in (times.io, times.few, times.joined))
    if IO_RULE.looks.interval(few - joined).low < math.log(IO_RULE.least_ratio) or devices_write(times):
        return UNDECIDED
    place = IO_RULE.looks.interval(io - (few + joined) / 2)
    return TIED if place.high < 0 else SEPARATE if place.low > 0 else UNDECIDED


def devices_write(times: IoTimes) -> bool:
    """Check whether loads are slower in one of the ways of I/O than in as many others."""
    return io_slowdown(times).low > IO_RULE.least_ratio


def io_slowdown(times: IoTimes) -> Ratio:
    """Return how many times as long a load takes in one of the ways of I/O as in as many others."""
    return _ratio(IO_RULE.looks.interval(logs(times.io) - logs(times.few)))


def judge_occupancy(occupied: Mapping[str, float | None]) -> str:
    """Return what occupancy shows; undecided where it is not known, does not grow with the ways, or devices take it."""
    io, few, joined = (occupied.get(name) for name in ("io", "few", "joined"))
    if io is None or few is None or joined is None or joined <= few:
        return UNDECIDED
    place, (separate, tied) = (io - few) / (joined - few), IO_RULE.occupancy
    return TIED if place >= tied else SEPARATE if IO_RULE.emptier <= place <= separate else UNDECIDED


def judge_all(verdicts: Sequence[str]) -> str:
    """Return what all evidence shows: undecided where none decides, or two contradict each other."""
    decided = set(verdicts) - {UNDECIDED}
    return decided.pop() if len(decided) == 1 else UNDECIDED


def io_words(tried: IoMasks | None, verdict: str, cache: Cache, times: IoTimes | None = None) -> str:
    """Return the result, in a sentence or two; "" where there is no more than one such way."""
    beside = union(run for run in runs(cache.shareable) if run.bit_count() > 1)
    if not beside:
        return ""
    shared = f"the ways {beside:#x} that I/O fills too"
    if tried is None:
        return f"Whether the processor ties {shared} was not tried: that takes three groups and enough other ways."
    one = f"A mask of {tried.io:x} alone, some of {shared},"
    said = {
        TIED: f"{one} gives all of them on this machine: masks that have some of these ways only overlap.",
        SEPARATE: f"{one} gives no more than was asked on this machine.",
        UNDECIDED: f"Whether a mask of {tried.io:x} alone gives all of {shared} was not decided.",
    }[verdict]
    if times is None or not devices_write(times):
        return said
    slower = io_slowdown(times).value
    return f"{said} A load takes {slower:.2f} times as long there as in as many other ways: devices write there."


def io_figures(
    tried: IoMasks,
    verdict: str,
    times: IoTimes,
    occupied: Mapping[str, float | None],
    held: str,
) -> dict[str, Any]:
    """Return everything that was measured; `held` is what the processor's registers showed."""
    return {
        "verdict": verdict,
        "masks": {name: f"{mask:x}" for name, mask in asdict(tried).items()},
        "rule": asdict(IO_RULE),
        "ns_per_load": asdict(times),
        "slowdown": asdict(io_slowdown(times)),
        "devices_write": devices_write(times),
        "by_time": judge_times(times),
        "occupancy": dict(occupied),
        "by_occupancy": judge_occupancy(occupied),
        "by_registers": held,
    }


def _side_by_side(cache: Cache, ways: int) -> list[int]:
    return [((1 << ways) - 1) << shift for shift in range(cache.ways - ways + 1)]
