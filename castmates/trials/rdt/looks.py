"""Windows under several conditions in random order, until a look decides; and the intervals of what they show."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import stats

Condition = TypeVar("Condition")
Window = TypeVar("Window")
Numbers = np.ndarray[Any, np.dtype[np.float64]]
SEED = 20240607


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and Student's interval of it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Looks:
    """After how many rounds it may be decided, and how sure all looks and comparisons together are."""

    at: tuple[int, ...]
    comparisons: int = 1
    level: float = 0.99

    def interval(self, values: Sequence[float] | Numbers) -> Interval:
        """Return the interval, with Bonferroni's share of the looks and comparisons."""
        wrong = (1 - self.level) / len(self.at) / self.comparisons
        mean = float(np.mean(values))
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        half = float(stats.t.ppf(1 - wrong / 2, len(values) - 1)) * error
        return Interval(mean, mean - half, mean + half)


def windows(
    conditions: Sequence[Condition],
    measure: Callable[[Condition], Window],
    looks: Looks,
    decided: Callable[[dict[Condition, list[Window]]], bool],
    seed: int = SEED,
    before: Mapping[Condition, Sequence[Window]] | None = None,
) -> dict[Condition, list[Window]]:
    """Measure rounds of windows, each with all conditions in random order, until a look decides or was the last.

    `before` are the rounds that were measured already.
    """
    found = {condition: list(before[condition]) if before else list[Window]() for condition in conditions}
    done = min(map(len, found.values()))
    order = random.Random(seed + done)
    for rounds in looks.at:
        while done < rounds:
            for condition in order.sample(list(conditions), len(conditions)):
                found[condition].append(measure(condition))
            done += 1
        if decided(found):
            break
    return found


def logs(values: Sequence[float]) -> Numbers:
    """Return the logarithms, of which differences are compared."""
    return numbers(np.log(numbers(values)))


def numbers(values: Sequence[float] | Numbers) -> Numbers:
    """Return them as an array, of which differences are taken."""
    return np.asarray(values, dtype=float)
