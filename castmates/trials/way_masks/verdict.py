"""What a trial of way masks measured -> what it shows; the rule stands here, and results do not change it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from castmates.analysis.effects.mask_stamp import WORKS

NO_EFFECT = "no effect on time"
NOT_FOLLOWING = "occupancy does not follow"
NO_ALLOCATION = "no cache allocation here"
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a trial is made and judged."""

    looks: tuple[int, ...] = (16, 32, 64)  # pairs of windows after which it may be decided: few ways, and all
    level: float = 0.99  # of all looks together
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
    logs = np.log(np.asarray(times.few) / np.asarray(times.all))
    mean = float(logs.mean())
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    wrong = (1 - rule.level) / len(rule.looks)  # Bonferroni's share of each look
    half = float(stats.t.ppf(1 - wrong / 2, len(logs) - 1)) * error
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def follows(plateaus: Sequence[Plateau], rule: Rule = RULE) -> bool | None:
    """Check whether occupancy follows the masks: near ways x way size, more with more ways; None where not known."""
    known = sorted((p.ways, p.measured, p.measured / p.expected) for p in plateaus if p.measured is not None)
    if len(known) < 2:
        return None
    low, high = rule.plateau
    rising = all(before[1] < after[1] for before, after in pairwise(known))
    return rising and all(low <= share <= high for _, _, share in known)


def judge(ratio: Ratio, followed: bool | None, rule: Rule = RULE) -> str:
    """Return the verdict."""
    if ratio.high < rule.least_ratio:
        return NO_EFFECT
    if ratio.low < rule.least_ratio:
        return UNDECIDED
    return NOT_FOLLOWING if followed is False else WORKS


def in_words(verdict: str, ratio: Ratio, pairs: int, plateaus: Sequence[Plateau], rule: Rule = RULE) -> str:
    """Return the result, in one paragraph."""
    sentence = {
        WORKS: "Way masks work on this machine.",
        NO_EFFECT: "Way masks are taken by this machine but have no effect on time.",
        NOT_FOLLOWING: "Way masks change the time of loads on this machine, but occupancy does not follow them.",
        UNDECIDED: "Whether way masks work on this machine was not decided: the times differ too much from window to "
        "window; try again when nothing else runs.",
    }[verdict]
    time = (
        f"A chase through half the last-level cache takes {ratio.value:.2f} times as long per load with the fewest "
        f"ways as with all ({100 * rule.level:g} % interval {ratio.low:.2f} to {ratio.high:.2f}, {pairs} pairs of "
        f"windows in random order; {rule.least_ratio:g} or more was asked for, before it was measured)."
    )
    return f"{sentence} {time} {_occupancy(plateaus)}"


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
