"""The model of pairs: fitted to what was measured, in the shape that predicts best what it has not seen.

It is sensitivity times pressure, by alternating least squares: the logarithm of a pair's slowdown is taken for the sum
of a few products, each of a sensitivity of the job and a pressure of its antagonist. Everything here takes many sets of
weights at once, because leaving out one mix after the other is what shows how good it is.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.statistics.intervals import CONFIDENCE, Floats, quantile
from castmates.study.class_names import plain_workload_of, without_class
from castmates.study.mitigations import place_of
from castmates.study.placement_keys import FEWEST_PAIRS
from castmates.study.spec import UNMANAGED

# Effects -> what was measured of each job beside others: as the lead of a mix, or as an antagonist in it.
#
# Intervals of predictions come from the errors that were made where the truth was measured, relative to the loss. With
# n such errors, each from a fit without the mix that it is of, the k-th smallest holds a further one with the
# probability k / (n + 1) if they are exchangeable (Vovk, Gammerman and Shafer 2005; Barber and others 2021). So 95 %
# need 19 errors; with fewer there is no interval.

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


STEPS = 60
LEAST_MEAN = 0.05  # of the losses' size, so that a study of hardly any losses has a scale
BEGIN = 0.3  # how far from each other, of the losses' size, further factors begin
_HELD = ((1, 1.0, 1.0), (1, 0.3, 1.0), (2, 1.0, 1.0), (2, 0.3, 3.0), (2, 0.1, 1.0), (3, 0.3, 3.0))
Flags = npt.NDArray[np.bool_]
MOST_FITS = 150  # each without a mix; of larger studies each leaves out several


@dataclass(frozen=True)
class Shape:
    """How many factors there are, and how firmly each is held to what is usual."""

    rank: int
    common: float  # the first one to a sensitivity and a pressure that are alike for all
    further: float  # the others to none
    scatter: float  # of a logarithm: what no product explains


SHAPES = tuple(Shape(*held, scatter) for held in _HELD for scatter in (0.02, 0.04))


def fitted_factors(logs: Floats, weights: Floats, shape: Shape) -> Floats:
    """All pairs' logarithms (row: job, column: antagonist) for each set of weights; what has no weight is not known."""
    known = np.where(weights.any(axis=0), logs, 0.0)
    total = np.maximum(weights.sum(axis=(1, 2)), 1e-12)
    size = np.sqrt(np.maximum((weights * known**2).sum(axis=(1, 2)) / total, 1e-8))
    usual = np.sqrt(np.maximum((weights * known).sum(axis=(1, 2)) / total, LEAST_MEAN * size))
    centre = np.zeros((len(weights), 1, shape.rank))
    centre[:, 0, 0] = usual
    held = np.array([shape.common, *[shape.further] * (shape.rank - 1)]) / size[:, None]
    rows, columns = (_begin(centre, size, count) for count in logs.shape)
    turned, weighed = weights.swapaxes(1, 2), weights * known
    for _ in range(STEPS):
        rows = _half(weights, weighed, columns, held, centre)
        columns = _half(turned, weighed.swapaxes(1, 2), rows, held, centre)
    return np.asarray(rows @ columns.swapaxes(1, 2))


def _half(weights: Floats, weighed: Floats, other: Floats, held: Floats, centre: Floats) -> Floats:
    """The best rows for these columns, or the other way round."""
    count, lines, rank = other.shape
    squares = (other[..., :, None] * other[..., None, :]).reshape(count, lines, rank * rank)
    normal = (weights @ squares).reshape(count, -1, rank, rank) + held[:, None, :, None] * np.eye(rank)
    target = weighed @ other + held[:, None] * centre
    return np.asarray(np.linalg.solve(normal, target[..., None])[..., 0])


def _begin(centre: Floats, size: Floats, count: int) -> Floats:
    """Factors that are alike in the first place, and different in the others: a fixed sequence, no chance."""
    ranks = centre.shape[2]
    places = np.arange(count)[:, None] * np.sqrt([2.0, 3.0, 5.0, 7.0][: ranks - 1])
    apart = np.zeros((count, ranks))
    apart[:, 1:] = np.sin(places + 1.0)
    return np.asarray(centre + BEGIN * np.sqrt(size)[:, None, None] * apart)


@dataclass(frozen=True)
class LeftOut:
    """What is predicted of a cell without the mixes of its two workloads."""

    predicted: float  # logarithm of the slowdown
    measured: float


@dataclass(frozen=True)
class PairModel:
    """What pairs lose, by what was measured of some."""

    jobs: Sequence[str]
    antagonists: Sequence[str]
    shape: Shape
    logs: Floats  # predicted, by job and antagonist
    left_out: Mapping[Cell, LeftOut] = field(default_factory=dict)
    leads: Collection[str] = ()  # jobs whose losses are asked for, reporters left out; empty for all
    targets: Collection[str] = ()  # antagonists that predictions are asked of, dials left out; empty for all

    def predicted(self, job: str, antagonist: str) -> float | None:
        """The logarithm of a slowdown; None for a workload of which nothing was measured in this place."""
        if job not in self._row or antagonist not in self._column:
            return None
        return float(self.logs[self._row[job], self._column[antagonist]])

    @cached_property
    def errors(self) -> Errors:
        """Of the predictions of measured pairs without their mixes; those beside dials show nothing of these."""
        ours = self._of_leads if self.are_of_leads else list(self._of_targets.values())
        return Errors.of(np.array([each.predicted for each in ours]), np.array([each.measured for each in ours]))

    @property
    def are_of_leads(self) -> bool:
        """Whether the errors are those of the jobs that are asked for; else there are too few, and others count too."""
        return len(self._of_leads) >= min(FEWEST, len(self._of_targets))

    @cached_property
    def _of_targets(self) -> dict[Cell, LeftOut]:
        return {cell: each for cell, each in self.left_out.items() if not self.targets or cell[1][0] in self.targets}

    @cached_property
    def _of_leads(self) -> list[LeftOut]:
        return [each for (job, _), each in self._of_targets.items() if not self.leads or job in self.leads]

    @cached_property
    def _row(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.jobs)}

    @cached_property
    def _column(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.antagonists)}


def pair_model(seen: Iterable[Seen], leads: Collection[str] = (), targets: Collection[str] = ()) -> PairModel | None:
    """Fit it; None where too few mixes of two were measured. `leads` and `targets` are what is asked for."""
    pairs = [each for each in seen if len(each.beside) == 1]
    groups = sorted({mixes_of(each.cell) for each in pairs})
    if len(groups) < FEWEST_PAIRS:
        return None
    jobs, antagonists = sorted({each.job for each in pairs}), sorted({each.beside[0] for each in pairs})
    table = _Table.of(pairs, jobs, antagonists)
    parts = [groups[place::MOST_FITS] for place in range(min(MOST_FITS, len(groups)))]
    without = np.stack([table.without(part, jobs, antagonists) for part in parts])
    comparable = table.comparable(without)
    fits = [(shape, *_tried(table, without, shape)) for shape in SHAPES]
    shape, whole, apart = min(fits, key=lambda fit: table.off(fit[2], comparable))
    left_out: dict[Cell, LeftOut] = {
        (jobs[row], (antagonists[column],)): LeftOut(float(apart[row, column]), float(table.logs[row, column]))
        for row, column in np.argwhere(comparable)
    }
    return PairModel(jobs, antagonists, shape, whole, left_out, leads, targets)


@dataclass(frozen=True)
class _Table:
    """The measured pairs by job and antagonist; what was measured twice is averaged by its precision."""

    logs: Floats
    variances: Floats  # infinite where nothing is known

    @classmethod
    def of(cls, pairs: Iterable[Seen], jobs: Sequence[str], antagonists: Sequence[str]) -> "_Table":
        sums, precision = (np.zeros((len(jobs), len(antagonists))) for _ in range(2))
        for each in pairs:
            place = jobs.index(each.job), antagonists.index(each.beside[0])
            weight = 1 / max(each.error, 1e-4) ** 2
            sums[place] += weight * each.log
            precision[place] += weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(np.where(precision > 0, sums / precision, 0.0), 1 / precision)

    @property
    def known(self) -> Flags:
        return np.isfinite(self.variances)

    def weights(self, shape: Shape) -> Floats:
        return np.asarray(1 / (self.variances + shape.scatter**2))

    def without(self, mixes: Iterable[tuple[str, ...]], jobs: Sequence[str], antagonists: Sequence[str]) -> Floats:
        """0 where a cell has exactly the workloads of one of these mixes, 1 elsewhere."""
        kept = np.ones(self.logs.shape)
        for mix in mixes:
            for job, name in {mix, mix[::-1]}:
                if job in jobs and name in antagonists:
                    kept[jobs.index(job), antagonists.index(name)] = 0.0
        return kept

    def comparable(self, without: Floats) -> Flags:
        """Cells that are predicted, when left out, as others are: of a job and an antagonist that are still known."""
        kept: Flags = self.known & (without > 0)
        supported = kept.any(axis=2, keepdims=True) & kept.any(axis=1, keepdims=True)
        return np.asarray((self.known & (without == 0) & supported).any(axis=0))

    def off(self, apart: Floats, comparable: Flags) -> float:
        """How far a shape is off: the mean error of the losses."""
        compared = comparable if comparable.any() else self.known
        return float(np.abs(np.exp(-apart) - np.exp(-self.logs))[compared].mean())


def _tried(table: _Table, without: Floats, shape: Shape) -> tuple[Floats, Floats]:
    """The fit to everything, and each known cell by the fit without its mixes."""
    weights = table.weights(shape)
    every = fitted_factors(table.logs, np.concatenate([weights[None], weights * without]), shape)
    return every[0], ((1 - without) * every[1:]).sum(axis=0)
