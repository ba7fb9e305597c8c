"""The order of a trial: pairs of windows with the fewest ways and with all, then occupancy under several masks."""

import random
from collections.abc import Sequence
from statistics import median
from typing import Protocol

from castmates.study.cache import Cache
from castmates.trials.way_masks.verdict import RULE, UNDECIDED, Plateau, Rule, Times, judge, slowdown

SEED = 20240607
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
    narrow, order = mask_of(cache, fewest(cache)), random.Random(seed)
    by_mask: dict[int, list[float]] = {narrow: [], cache.full: []}
    for pairs in rule.looks:
        while len(by_mask[narrow]) < pairs:
            for mask in order.sample([narrow, cache.full], 2):
                subject.set_mask(mask)
                by_mask[mask].append(subject.ns_per_load())
        so_far = Times(tuple(by_mask[narrow]), tuple(by_mask[cache.full]))
        if judge(slowdown(so_far, rule), None, rule) != UNDECIDED:
            break
    return so_far


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
