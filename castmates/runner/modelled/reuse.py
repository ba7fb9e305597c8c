"""How much of a cache a workload fills, and how often it misses, when lines are evicted at a given age.

The age is counted in the workload's own accesses since a line was last used. With many ways it is nearly the same for
all sets of the cache (Che, Tung and Wang 2002); with few it scatters, which a gamma distribution of as many degrees as
there are ways shows exactly for a stream and nearly for everything else (docs/modelled-machine.md).
"""

import math
from dataclasses import dataclass

NEWTON = 200  # steps at most; a handful is usual


@dataclass(frozen=True)
class Reuse:
    """A mixture of working sets, every line of one used equally often, and a stream that uses no line twice."""

    sets: tuple[tuple[float, float], ...] = ()  # (lines, share of accesses)
    streaming: float = 0.0  # share of accesses

    @property
    def everything(self) -> float:
        """All lines that it can ever use."""
        return math.inf if self.streaming else sum(lines for lines, _ in self.sets)

    def misses(self, age: float, ways: int) -> float:
        """Return the share of accesses that miss."""
        if math.isinf(age):
            return self.streaming
        return self.streaming + sum(share * _gone(share * age / lines, ways) for lines, share in self.sets)

    def lines(self, age: float, ways: int) -> float:
        """Return the lines that are in the cache."""
        if math.isinf(age):
            return self.everything
        held = sum(lines * (1.0 - _gone(share * age / lines, ways)) for lines, share in self.sets)
        return self.streaming * age + held

    def slope(self, age: float, ways: int) -> float:
        """Return how fast `lines` grows with the age."""
        terms = (
            share * _gone(share * age / lines, ways) / (1 + share * age / lines / ways) for lines, share in self.sets
        )
        return self.streaming + sum(terms)

    def age_of(self, lines: float, ways: int) -> float:
        """Return the age at which it holds so many lines; infinite where it never needs so many."""
        return common_age([(self, 1.0, ways)], lines)


def common_age(users: list[tuple[Reuse, float, int]], lines: float) -> float:
    """Return the time after which lines are evicted where these users, at these speeds, together hold so many lines.

    Newton's method: what they hold grows ever more slowly with that time, so that from below every step stays below.
    """
    if lines <= 0 or sum(reuse.everything for reuse, _, _ in users) <= lines * (1 + 1e-9):
        return 0.0 if lines <= 0 else math.inf
    time = lines / sum(speed for _, speed, _ in users)
    for _ in range(NEWTON):
        missing = lines - sum(reuse.lines(speed * time, ways) for reuse, speed, ways in users)
        if missing <= 1e-9 * lines:
            break
        time += missing / sum(speed * reuse.slope(speed * time, ways) for reuse, speed, ways in users)
    return time


def _gone(uses: float, ways: int) -> float:
    """Return the chance that a line which is used so often in the mean age is evicted before it is used again."""
    return math.exp(-ways * math.log1p(uses / ways))
