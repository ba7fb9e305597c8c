"""Joins the requests that services recorded to the windows and slices they were due in, by CLOCK_MONOTONIC.

A request belongs to the slice in which it was due. What was not answered when the slice ended is not left out: it took
longer than until then.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from castmates.analysis.statistics.censored import Quantile, quantile
from castmates.runner.rounds.slices import Slice

Whole = npt.NDArray[np.int64]
Records = npt.NDArray[np.uint64]  # a row per request: due, sent, answered
SHARES = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
JUDGED = "p99_s"  # by this quantile a service is judged: its speed is one over it


@dataclass(frozen=True)
class Requests:
    """Requests that were due in some time, as far as they were looked at."""

    due: Whole  # ns
    took: npt.NDArray[np.float64]  # seconds until the answer, or until nobody looked any more
    is_answered: npt.NDArray[np.bool_]
    seconds: float  # in which they were due
    answers: int  # in that time, to requests that were due before it too

    def quantile(self, share: float) -> Quantile:
        """A quantile of their latency in seconds."""
        return quantile(self.took[self.is_answered], self.took[~self.is_answered], share)

    def speed(self, at_most: bool = False) -> float:
        """One over the quantile by which a service is judged; where that is a bound, none, or what it is `at_most`."""
        found = self.quantile(SHARES[JUDGED])
        return 1 / found.value if found.value > 0 and (at_most or not found.is_bound) else math.nan

    @property
    def columns(self) -> dict[str, float]:
        """What a window has of them; nothing where it has no slice."""
        if not self.seconds:
            return {}
        due = float(len(self.due))
        per_second = {"requests": due, "offered": due / self.seconds, "answered": self.answers / self.seconds}
        unanswered = float((~self.is_answered).mean()) if len(self.due) else math.nan
        found = {name: self.quantile(share) for name, share in SHARES.items()}
        values = {name: math.nan if each.is_bound else each.value for name, each in found.items()}
        return per_second | {"unanswered": unanswered} | values


@dataclass(frozen=True)
class Recorded:
    """Everything that a service recorded."""

    records: Records

    def within(self, spans: Iterable[tuple[int, int, int]]) -> Requests:
        """Those that were due from the first to before the second time of a span, looked at up to the third."""
        parts, seconds, answers = [_NONE], 0.0, 0
        for begin, end, close in spans:
            first, last = np.searchsorted(self._due, [begin, max(begin, end)])
            due, answered = self._due[first:last], self._answered[first:last]
            in_time = (answered > 0) & (answered <= close)
            parts.append((due, (np.where(in_time, answered, close) - due) / 1e9, in_time))
            seconds += max(0, end - begin) / 1e9
            answers += int(np.diff(np.searchsorted(self._answers, [begin, max(begin, end)]))[0])
        due, took, in_time = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Requests(due, took, in_time, seconds, answers)

    def of_slices(self, name: str, slices: Iterable[Slice]) -> Requests:
        """Those of a member in these slices."""
        return self.within(_span(each, name) for each in slices)

    def later(self, name: str, slices: Iterable[Slice]) -> float:
        """Its speed in the later halves of slices over that in the earlier ones."""
        spans = [_span(each, name) for each in slices]
        middles = [(begin + end) // 2 for begin, end, _ in spans]
        early = self.within((begin, middle, close) for (begin, _, close), middle in zip(spans, middles, strict=True))
        late = self.within((middle, end, close) for (_, end, close), middle in zip(spans, middles, strict=True))
        before = early.speed(at_most=True)
        return late.speed(at_most=True) / before if before > 0 else math.nan

    @cached_property
    def _order(self) -> Whole:
        order: Whole = np.argsort(self.records[:, 0], kind="stable")
        return order

    @cached_property
    def _due(self) -> Whole:
        due: Whole = self.records[self._order, 0].astype(np.int64)
        return due

    @cached_property
    def _answered(self) -> Whole:
        answered: Whole = self.records[self._order, 2].astype(np.int64)
        return answered

    @cached_property
    def _answers(self) -> Whole:
        """When an answer came, in order of time."""
        return np.sort(self._answered[self._answered > 0])


def _span(each: Slice, name: str) -> tuple[int, int, int]:
    """From when to when requests are due that count, and until when their answers are looked for."""
    end_ns = each.close_ns if each.end_ns is None else min(each.end_ns, each.close_ns)
    return each.begin_ns(name), end_ns, each.close_ns


_NONE = (np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool))
