"""Effects -> what was measured of each job beside others: as the lead of a mix, or as an antagonist in it.

Intervals of predictions come from the errors that were made where the truth was measured, relative to the loss. With n
such errors, each from a fit without the mix that it is of, the k-th smallest holds a further one with the probability k
/ (n + 1) if they are exchangeable (Vovk, Gammerman and Shafer 2005; Barber and others 2021). So 95 % need 19 errors;
with fewer there is no interval.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import CONFIDENCE, Floats, quantile
from castmates.study.class_names import plain_workload_of, without_class
from castmates.study.spec import UNMANAGED
from castmates.study.wanted import place_of

LEAD, ANTAGONIST = "as lead", "as antagonist"
RATE = "rate"  # the metric of effects that losses are of; services are judged by latency instead
USUAL_ERROR = 0.01  # of a logarithm, where no interval of the study says more
Cell = tuple[str, tuple[str, ...]]  # a job, and those beside it in the order of their names
FEWEST = math.ceil(CONFIDENCE / (1 - CONFIDENCE))  # errors that an interval needs


@dataclass(frozen=True)
class Seen:
    """A loss that was measured: of a job beside others, against running alone."""

    job: str
    beside: tuple[str, ...]
    log: float  # of the slowdown
    error: float  # standard error of `log` over launches
    pct: float  # of the rate
    low: float  # 95 % between launches; NaN below three
    high: float
    launches: int
    how: str  # LEAD or ANTAGONIST

    @property
    def cell(self) -> Cell:
        """What it is a loss of."""
        return self.job, self.beside


def seen_in(effects: pd.DataFrame) -> list[Seen]:
    """What the rows of one platform and class show, without partitions.

    Mixes of a given distance are left out, and latencies of services: their ratio is no loss of a rate.
    """
    known = effects[
        (effects["partition"] == UNMANAGED)
        & (effects["metric"] == RATE)
        & (effects["baseline"] == "alone")
        & np.isfinite(effects["slowdown"])
        & ~effects["mix"].map(lambda mix: bool(place_of(mix)))
    ]
    rows = [{str(key): value for key, value in row.items()} for row in known.to_dict("records")]
    errors = [_error(row) for row in rows]
    usual = _usual(errors)
    return [_seen(row, usual if math.isnan(error) else error) for row, error in zip(rows, errors, strict=True)]


def best(seen: Iterable[Seen]) -> dict[Cell, Seen]:
    """One for each cell: what it lost as a lead, where that was measured."""
    found: dict[Cell, Seen] = {}
    for each in sorted(seen, key=lambda one: (one.how != LEAD, one.error)):
        found.setdefault(each.cell, each)
    return found


def mixes_of(cell: Cell) -> tuple[str, ...]:
    """Everybody in it, whoever is the lead."""
    job, beside = cell
    return tuple(sorted([job, *beside]))


def _seen(row: dict[str, Any], error: float) -> Seen:
    lead = without_class(row["lead"])
    members = [lead, *without_class(row["antagonists"]).split("+")]
    job = lead if row["role"] == "lead" else plain_workload_of(row["member"])
    return Seen(
        job=job,
        beside=tuple(sorted(_without(members, job))),
        log=math.log(row["slowdown"]),
        error=error,
        pct=row["loss_pct"],
        low=row["loss_low"],
        high=row["loss_high"],
        launches=int(row["launches"]),
        how=LEAD if row["role"] == "lead" else ANTAGONIST,
    )


def _without(members: Sequence[str], job: str) -> Iterator[str]:
    """All but one of that name."""
    place = list(members).index(job)
    yield from (name for number, name in enumerate(members) if number != place)


def _error(row: dict[str, Any]) -> float:
    """The standard error behind an interval; NaN where there is none."""
    low, high, freedom = row["slowdown_low"], row["slowdown_high"], row["freedom"]
    if not (low > 0 and high > low and freedom > 0):
        return math.nan
    return float(math.log(high / low) / 2 / quantile(np.array([freedom]))[0])


def _usual(errors: Sequence[float]) -> float:
    known = [error for error in errors if math.isfinite(error)]
    return float(np.median(known)) if known else USUAL_ERROR


@dataclass(frozen=True)
class Errors:
    """How far predictions were off, in units of their own size."""

    floor: float  # that is added to each size: a loss of nothing is predicted with an error too
    sizes: Floats  # ascending

    @classmethod
    def of(cls, predicted: Floats, measured: Floats) -> "Errors":
        """The errors of these logarithms."""
        floor = float(np.median(np.abs(predicted))) if len(predicted) else 0.0
        floor = max(floor, 0.005)
        off = np.abs(measured - predicted) / (floor + np.abs(predicted))
        return cls(floor, np.sort(off))

    def half_width(self, predicted: float) -> float:
        """Of the 95 % interval around a predicted logarithm; NaN where there are too few errors."""
        count = len(self.sizes)
        place = math.ceil(CONFIDENCE * (count + 1))
        if place > count:
            return math.nan
        return float(self.sizes[place - 1]) * (self.floor + abs(predicted))
