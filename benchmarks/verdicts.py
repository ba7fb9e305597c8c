"""The verdict on a figure against its aim: met, missed or unresolved, by its interval; without one, none.

An interval is over launches, rounds or repetitions, and a claim holds if every repetition of the benchmark shows it.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from pydantic import BaseModel, ConfigDict, computed_field

from benchmarks.precision import Floats, Mean, mean_of

FEWEST = 3  # launches, rounds or repetitions; fewer give no interval


class Verdict(StrEnum):
    """A verdict."""

    MET = "met"
    MISSED = "missed"
    UNRESOLVED = "unresolved"
    NONE = "one run, no verdict"


class Aim(BaseModel):
    """Where a figure is to lie; an end that is None is open."""

    model_config = ConfigDict(frozen=True)
    least: float | None = None
    most: float | None = None

    def holds(self, low: float, high: float) -> bool:
        """Check whether all of an interval lies inside."""
        return (self.least is None or low >= self.least) and (self.most is None or high <= self.most)

    def excludes(self, low: float, high: float) -> bool:
        """Check whether all of an interval lies outside, on one side."""
        return (self.least is not None and high < self.least) or (self.most is not None and low > self.most)

    def words(self, unit: str) -> str:
        """The aim as people write it."""
        if self.least is None or self.most is None:
            end, number = ("at most", self.most) if self.least is None else ("at least", self.least)
            return "none" if number is None else f"{end} {number:g} {unit}"
        if self.least == -self.most:
            return f"within ±{self.most:g} {unit}"
        return f"{self.least:g} to {self.most:g} {unit}"


class Finding(BaseModel):
    """A key figure of a benchmark: an estimate, its 95 % interval if it has one, and the aim if there is one."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    count: int
    of: str  # what is counted: launches, rounds …
    aim: Aim | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the aim, by the ends and by their printed digits; None without an aim.

        Readers see the digits; an interval that decides only by those behind them decides nothing.
        """
        if self.aim is None:
            return None
        found = verdict(self.low, self.high, self.aim)
        if self.low is None or self.high is None:
            return found
        low, high = map(float, self._printed(self.low, self.high))
        return found if verdict(low, high, self.aim) == found else Verdict.UNRESOLVED

    def figures(self) -> str:
        """The estimate with its interval, to the digits that the interval leaves."""
        if self.low is None or self.high is None:
            return f"{self.value:.{_digits(abs(self.value))}f} {self.unit}"
        value, low, high = self._printed(self.value, self.low, self.high)
        return f"{value} {self.unit} ({low} to {high})"

    def _printed(self, *values: float) -> list[str]:
        """These with the digits that the interval leaves."""
        assert self.low is not None
        assert self.high is not None
        return [f"{one:.{_digits((self.high - self.low) / 2)}f}" for one in values]

    def judged(self) -> tuple[str, str]:
        """The aim and the verdict; nothing without an aim."""
        return ("", "") if self.aim is None else (self.aim.words(self.unit), f"**{self.verdict}**")

    def counted(self) -> str:
        """What the interval is over."""
        if self.count != 1:
            return f"{self.count} {self.of}"
        return f"1 {self.of[:-2] if self.of.endswith(('ches', 'sses')) else self.of.removesuffix('s')}"


def verdict(low: float | None, high: float | None, aim: Aim) -> Verdict:
    """Judge an interval against an aim."""
    if low is None or high is None:
        return Verdict.NONE
    if aim.holds(low, high):
        return Verdict.MET
    return Verdict.MISSED if aim.excludes(low, high) else Verdict.UNRESOLVED


def mean(what: str, values: Sequence[float] | Floats, unit: str, of: str, aim: Aim | None = None) -> Finding:
    """The mean of a value from each launch (round, repetition), which are the sample."""
    known = _finite(values)
    found = mean_of(known) if len(known) >= 2 else Mean(float(known[0]), math.nan, 0.0)
    return of_mean(what, found, unit, of, aim)


def ratio(what: str, ratios: Sequence[float] | Floats, of: str, aim: Aim | None = None) -> Finding:
    """The geometric mean of a ratio from each launch (round, repetition)."""
    found = mean(what, np.log(_finite(ratios)), "×", of)
    low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return found.model_copy(update={"value": math.exp(found.value), "low": low, "high": high, "aim": aim})


def of_mean(what: str, found: Mean, unit: str, of: str, aim: Aim | None = None) -> Finding:
    """An estimate that has its standard error already; `freedom` is one less than there are units."""
    count = round(found.freedom) + 1
    low, high = found.value - found.half_width, found.value + found.half_width
    if count < FEWEST or not math.isfinite(high - low):
        return Finding(what=what, value=found.value, unit=unit, count=count, of=of, aim=aim)
    return Finding(what=what, value=found.value, unit=unit, low=low, high=high, count=count, of=of, aim=aim)


def _finite(values: Sequence[float] | Floats) -> Floats:
    known = np.asarray(values, dtype=float)
    return np.asarray(known[np.isfinite(known)])


def _digits(scale: float) -> int:
    """Decimals that leave two digits of this scale."""
    return min(6, max(0, 1 - math.floor(math.log10(scale)))) if scale > 0 else 1
