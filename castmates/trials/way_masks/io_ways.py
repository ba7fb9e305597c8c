"""Does the processor give the ways that I/O fills too together only? A trial of one of them; the rule stands here.

Some processors do, and the kernel does not show it: a mask of one such way then has them all. So a chase, whose buffer
lies between the two sizes, runs under a mask of one I/O way, under as many ways elsewhere, and under as many as it
would have if they were tied. Its time and, where the machine shows it, its occupancy are compared with both.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

from castmates.study.cache import Cache
from castmates.study.partitions.sweeps import cuts_through
from castmates.trials.way_masks.verdict import ROUNDS, SEED, UNDECIDED, Subject, fewest, mask_of

TIED, SEPARATE = "tied", "separate"


@dataclass(frozen=True, slots=True)
class IoRule:
    """How the trial is made and judged."""

    looks: tuple[int, ...] = (16, 32, 64)  # triples of windows after which it may be decided
    level: float = 0.99  # of all looks and both comparisons together
    least_ratio: float = 1.1  # by which loads must be slower with the few ways than with all that may be tied
    occupancy: tuple[float, float] = (0.25, 0.75)  # of the way from the few to all: below it is separate, above tied


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
    cutting = [mask for mask in _side_by_side(cache, ways) if cuts_through(mask, cache.shareable)]
    if not cutting:
        return None
    io = max(cutting)
    few, joined = mask_of(cache, ways), mask_of(cache, min(cache.ways, (io | cache.shareable).bit_count()))
    return None if (few | joined) & cache.shareable else IoMasks(io, few, joined)


def io_times(subject: Subject, tried: IoMasks, seed: int = SEED) -> IoTimes:
    """Measure triples of windows in random order until a look decides."""
    order = random.Random(seed)
    by_mask: dict[int, list[float]] = {mask: [] for mask in (tried.io, tried.few, tried.joined)}
    for triples in IO_RULE.looks:
        while len(by_mask[tried.io]) < triples:
            for mask in order.sample(list(by_mask), len(by_mask)):
                subject.set_mask(mask)
                by_mask[mask].append(subject.ns_per_load())
        so_far = IoTimes(*(tuple(by_mask[mask]) for mask in (tried.io, tried.few, tried.joined)))
        if judge_times(so_far) != UNDECIDED:
            break
    return so_far


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
    """Return whether loads take as long as with the joined ways or as with the few; undecided if these are alike."""
    io, few, joined = (np.log(np.asarray(each)) for each in (times.io, times.few, times.joined))
    gain, _ = _interval(few - joined)
    low, high = _interval(io - (few + joined) / 2)
    if gain < math.log(IO_RULE.least_ratio):
        return UNDECIDED
    return TIED if high < 0 else SEPARATE if low > 0 else UNDECIDED


def judge_occupancy(occupied: Mapping[str, float | None]) -> str:
    """Return what occupancy shows; undecided where it is not known, or does not grow with the ways."""
    io, few, joined = (occupied.get(name) for name in ("io", "few", "joined"))
    if io is None or few is None or joined is None or joined <= few:
        return UNDECIDED
    place, (separate, tied) = (io - few) / (joined - few), IO_RULE.occupancy
    return TIED if place >= tied else SEPARATE if place <= separate else UNDECIDED


def judge_all(verdicts: Sequence[str]) -> str:
    """Return what all evidence shows: undecided where none decides, or two contradict each other."""
    decided = set(verdicts) - {UNDECIDED}
    return decided.pop() if len(decided) == 1 else UNDECIDED


def io_words(tried: IoMasks | None, verdict: str, cache: Cache) -> str:
    """Return the result, in a sentence; "" where there is no more than one such way."""
    if cache.shareable.bit_count() < 2:
        return ""
    shared = f"the ways {cache.shareable:#x} that I/O fills too"
    if tried is None:
        return f"Whether the processor ties {shared} was not tried: that takes three groups and enough other ways."
    one = f"A mask of {tried.io:x} alone, some of {shared},"
    return {
        TIED: f"{one} gives all of them on this machine: masks that have some of these ways only overlap.",
        SEPARATE: f"{one} gives no more than was asked on this machine.",
        UNDECIDED: f"Whether a mask of {tried.io:x} alone gives all of {shared} was not decided.",
    }[verdict]


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
        "by_time": judge_times(times),
        "occupancy": dict(occupied),
        "by_occupancy": judge_occupancy(occupied),
        "by_registers": held,
    }


def _side_by_side(cache: Cache, ways: int) -> list[int]:
    return [((1 << ways) - 1) << shift for shift in range(cache.ways - ways + 1)]


def _interval(values: "np.ndarray[Any, np.dtype[np.float64]]") -> tuple[float, float]:
    """Return Student's interval of the mean, with Bonferroni's share of the looks and of both comparisons."""
    wrong = (1 - IO_RULE.level) / len(IO_RULE.looks) / 2
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = float(stats.t.ppf(1 - wrong / 2, len(values) - 1)) * error
    return float(values.mean()) - half, float(values.mean()) + half
