"""All that is known of losses on one machine: measured where there is a measurement, else predicted.

What a job loses beside several others comes from what it loses beside each of them.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from castmates.analysis.prediction.losses import Loss
from castmates.analysis.prediction.observed import Cell, Errors, Seen, best, mixes_of, seen_in
from castmates.analysis.prediction.pairs import PairModel, pair_model
from castmates.analysis.statistics.intervals import Floats

ADDED = 1.0  # the extra time beside each of them adds up
POWERS = (0.7, 0.8, 0.9, ADDED, 1.1, 1.25, 1.5, 2.0, 3.0)  # below 1 they hurt more together, above it less
FEWEST_MIXES = 8  # measured, before anything but adding up is believed


def combined_loss(logs: Sequence[float], power: float = ADDED) -> float:
    """The logarithm of the slowdown beside all of them; who makes a job faster makes nobody else's harm less."""
    extra = np.maximum(np.expm1(np.asarray(logs, dtype=float)), 0.0)
    return float(np.log1p((extra**power).sum() ** (1 / power)))


@dataclass(frozen=True)
class Combined:
    """How losses beside several others come about in a study."""

    power: float = ADDED
    errors: Errors | None = None  # None where too little was measured
    left_out: Mapping[Cell, float] = field(default_factory=dict)  # predicted by the power that the other mixes give

    @classmethod
    def of(cls, measured: Mapping[Cell, tuple[Sequence[float], float]]) -> "Combined":
        """From jobs' logarithms beside each of several others, and beside all of them."""
        if not measured:
            return cls()
        truth = np.array([whole for _, whole in measured.values()])
        guesses = np.array([[combined_loss(each, one) for each, _ in measured.values()] for one in POWERS])
        off = np.abs(np.exp(-guesses) - np.exp(-truth))
        mixes = [mixes_of(cell) for cell in measured]
        others = np.array([[mix != other for other in mixes] for mix in mixes], dtype=float)
        apart = [_best(off @ kept, int(kept.sum())) for kept in others]
        predicted = guesses[apart, np.arange(len(truth))]
        left_out = dict(zip(measured, map(float, predicted), strict=True))
        return cls(POWERS[_best(off.sum(axis=1), len(truth))], Errors.of(predicted, truth), left_out)


def _best(off: Floats, count: int) -> int:
    """Which of the powers is least off, over so many losses."""
    return int(off.argmin()) if count >= FEWEST_MIXES else POWERS.index(ADDED)


@dataclass(frozen=True)
class Guess:
    """A prediction: the logarithm of a slowdown, and half of its 95 % interval (NaN where there is none)."""

    log: float
    half: float

    @property
    def loss(self) -> Loss:
        """The same in per cent of the rate."""
        low, high = self.log - self.half, self.log + self.half
        return Loss(_percent(self.log), _percent(low), _percent(high), "predicted")


@dataclass(frozen=True)
class PredictedLosses:
    """The losses of the jobs of a study on one platform and class of nodes."""

    seen: Mapping[Cell, Seen]
    model: PairModel | None  # None where too few pairs were measured
    combined: Combined

    @classmethod
    def from_effects(
        cls,
        effects: pd.DataFrame,
        leads: Collection[str] = (),
        targets: Collection[str] = (),
        dials: Collection[str] = (),
        hidden: Iterable[tuple[str, str]] = (),
    ) -> "PredictedLosses":
        """From the effects of one platform and class; `hidden` are pairs that are kept from the fit, both ways.

        `leads` and `targets`: the jobs and the antagonists that are asked for, if not all. `dials` hold their rate:
        what they lose themselves is known, but shows nothing of others.
        """
        apart = {mixes_of((lead, (name,))) for lead, name in hidden}
        seen = [each for each in seen_in(effects) if mixes_of(each.cell) not in apart]
        known, model = best(seen), pair_model([each for each in seen if each.job not in dials], leads, targets)
        several = {
            cell: (logs, each.log)
            for cell, each in known.items()
            if len(each.beside) > 1
            and each.job not in dials
            and (logs := _each(each.job, each.beside, known, model)) is not None
        }
        return cls(known, model, Combined.of(several))

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What the job loses beside these; None where nothing is known. With `ways` nothing is predicted."""
        others = tuple(sorted(beside))
        if ways is not None:
            return None
        if not others:
            return Loss(0.0, 0.0, 0.0, "measured")  # alone, by definition
        if (seen := self.seen.get((job, others))) is not None:
            return Loss(seen.pct, seen.low, seen.high, "measured")
        guess = self.guess(job, others)
        return None if guess is None else guess.loss

    def guess(self, job: str, beside: Sequence[str]) -> Guess | None:
        """The prediction of what was not measured; None where the model does not know one of them."""
        if self.model is None:
            return None
        if len(beside) == 1:
            log = self.model.predicted(job, beside[0])
            return None if log is None else Guess(log, self.model.errors.half_width(log))
        return self._several(job, beside)

    def without(self, cell: Cell) -> Guess | None:
        """What was predicted of a measured cell before its mix was known."""
        if (combined := self.combined.left_out.get(cell)) is not None:
            return self._beside_several(combined)
        if self.model is None or cell not in self.model.left_out:
            return None
        log = self.model.left_out[cell].predicted
        return Guess(log, self.model.errors.half_width(log))

    def _several(self, job: str, beside: Sequence[str]) -> Guess | None:
        logs = _each(job, beside, self.seen, self.model)
        if logs is None:
            return None
        return self._beside_several(combined_loss(logs, self.combined.power))

    def _beside_several(self, log: float) -> Guess:
        return Guess(log, math.nan if self.combined.errors is None else self.combined.errors.half_width(log))


def _each(job: str, beside: Sequence[str], seen: Mapping[Cell, Seen], model: PairModel | None) -> list[float] | None:
    """The job's logarithm beside each alone, measured or predicted; None where one is not known."""
    logs = []
    for name in beside:
        known = seen.get((job, (name,)))
        log = known.log if known is not None else model.predicted(job, name) if model is not None else None
        if log is None:
            return None
        logs.append(log)
    return logs


def _percent(log: float) -> float:
    return 100 * (1 - math.exp(-log)) if math.isfinite(log) else math.nan
