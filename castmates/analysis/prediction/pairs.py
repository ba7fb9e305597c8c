"""The model of pairs: fitted to what was measured, in the shape that predicts best what it has not seen."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from castmates.analysis.prediction.conformal import FEWEST, Errors
from castmates.analysis.prediction.factors import SHAPES, Shape, fitted_factors
from castmates.analysis.prediction.observed import Cell, Seen, mixes_of
from castmates.analysis.statistics.intervals import Floats
from castmates.study.predict_keys import FEWEST_PAIRS

Flags = npt.NDArray[np.bool_]
MOST_FITS = 150  # each without a mix; of larger studies each leaves out several


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
