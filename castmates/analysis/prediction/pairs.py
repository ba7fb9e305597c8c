"""The model of pairs: fitted to what was measured, in the shape that predicts best what it has not seen."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from castmates.analysis.prediction.conformal import FEWEST, Errors
from castmates.analysis.prediction.factors import SHAPES, Shape, fitted
from castmates.analysis.prediction.observed import Cell, Seen, mixes_of
from castmates.analysis.statistics.intervals import Floats

FEWEST_PAIRS = 6  # mixes of two, below which nothing is fitted
MOST_FITS = 150  # each without a mix; of larger studies each leaves out several


@dataclass(frozen=True)
class LeftOut:
    """What is predicted of a cell without the mixes that have its two workloads."""

    predicted: float  # logarithm of the slowdown
    measured: float


@dataclass(frozen=True)
class PairModel:
    """What pairs lose, by what was measured of some."""

    jobs: Sequence[str]
    neighbours: Sequence[str]
    shape: Shape
    logs: Floats  # predicted, by job and neighbour
    left_out: Mapping[Cell, LeftOut] = field(default_factory=dict)
    targets: Collection[str] = ()  # neighbours that predictions are asked of, dials left out

    def predicted(self, job: str, neighbour: str) -> float | None:
        """The logarithm of a slowdown; None for a workload of which nothing was measured in this place."""
        if job not in self._row or neighbour not in self._column:
            return None
        return float(self.logs[self._row[job], self._column[neighbour]])

    @cached_property
    def errors(self) -> Errors:
        """Of the predictions of measured pairs without their mixes; without those beside dials if there are enough."""
        every = list(self.left_out.items())
        ours = [each for (_, (name,)), each in every if name in self.targets]
        chosen = ours if len(ours) >= FEWEST else [each for _, each in every]
        return Errors.of(np.array([each.predicted for each in chosen]), np.array([each.measured for each in chosen]))

    @cached_property
    def _row(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.jobs)}

    @cached_property
    def _column(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.neighbours)}


def pair_model(seen: Iterable[Seen], targets: Collection[str] = ()) -> PairModel | None:
    """Fit it; None where too few mixes of two were measured. `targets`: neighbours that are asked of; none for all."""
    pairs = [each for each in seen if len(each.beside) == 1]
    groups = sorted({mixes_of(each.cell) for each in pairs})
    if len(groups) < FEWEST_PAIRS:
        return None
    jobs, neighbours = sorted({each.job for each in pairs}), sorted({each.beside[0] for each in pairs})
    table = _Table.of(pairs, jobs, neighbours)
    parts = [groups[place::MOST_FITS] for place in range(min(MOST_FITS, len(groups)))]
    without = np.stack([table.without(part, jobs, neighbours) for part in parts])
    fits = [(shape, *_tried(table, without, shape)) for shape in SHAPES]
    shape, whole, apart = min(fits, key=lambda fit: table.off(fit[2]))
    left_out: dict[Cell, LeftOut] = {
        (job, (name,)): LeftOut(float(apart[row, column]), float(table.logs[row, column]))
        for row, job in enumerate(jobs)
        for column, name in enumerate(neighbours)
        if table.known[row, column]
    }
    return PairModel(jobs, neighbours, shape, whole, left_out, targets or neighbours)


@dataclass(frozen=True)
class _Table:
    """The measured pairs by job and neighbour; what was measured twice is averaged by its precision."""

    logs: Floats
    variances: Floats  # infinite where nothing is known

    @classmethod
    def of(cls, pairs: Iterable[Seen], jobs: Sequence[str], neighbours: Sequence[str]) -> "_Table":
        sums, precision = (np.zeros((len(jobs), len(neighbours))) for _ in range(2))
        for each in pairs:
            place = jobs.index(each.job), neighbours.index(each.beside[0])
            weight = 1 / max(each.error, 1e-4) ** 2
            sums[place] += weight * each.log
            precision[place] += weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(np.where(precision > 0, sums / precision, 0.0), 1 / precision)

    @property
    def known(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.isfinite(self.variances)

    def weights(self, shape: Shape) -> Floats:
        return np.asarray(1 / (self.variances + shape.scatter**2))

    def without(self, mixes: Iterable[tuple[str, ...]], jobs: Sequence[str], neighbours: Sequence[str]) -> Floats:
        """0 where a cell has exactly the workloads of one of these mixes, 1 elsewhere."""
        kept = np.ones(self.logs.shape)
        for mix in mixes:
            for job, name in {mix, mix[::-1]}:
                if job in jobs and name in neighbours:
                    kept[jobs.index(job), neighbours.index(name)] = 0.0
        return kept

    def off(self, apart: Floats) -> float:
        """How far a shape is off: the mean error of the losses, in points."""
        return float(np.abs(np.exp(-apart) - np.exp(-self.logs))[self.known].mean())


def _tried(table: _Table, without: Floats, shape: Shape) -> tuple[Floats, Floats]:
    """The fit to everything, and each known cell by the fit without its mixes."""
    weights = table.weights(shape)
    every = fitted(table.logs, np.concatenate([weights[None], weights * without]), shape)
    return every[0], ((1 - without) * every[1:]).sum(axis=0)
