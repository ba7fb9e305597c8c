"""All that is known of losses on one machine: measured where there is a measurement, else predicted.

What a job loses beside several others comes from what it loses beside each of them.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from castmates.analysis.partitions.held import BEYOND, OTHERWISE, SHARED
from castmates.analysis.prediction.pairs import Cell, Errors, PairModel, Seen, best, mixes_of, pair_model, seen_in
from castmates.analysis.statistics.intervals import Floats
from castmates.analysis.statistics.power import log_of, loss_pct
from castmates.study.class_names import plain_workload_of
from castmates.study.curves import mask_of, overlap
from castmates.study.masks import popcount
from castmates.study.mitigations import place_of
from castmates.study.spec import REST, UNMANAGED, Mix, Partition, Plan

# What a job loses beside others, whoever knows it: measured, or predicted from what was measured.


@dataclass(frozen=True)
class Loss:
    """Of the rate when alone, in per cent, with its 95 % interval (NaN where none)."""

    pct: float
    low: float
    high: float
    source: Literal["measured", "predicted"]


class Losses(Protocol):
    """Knows losses of jobs."""

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What a job loses beside these others, with so many ways for itself alone; None where nothing is known."""


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
        logs = _each(job, beside, self.seen, self.model)
        if logs is None:
            return None
        return self._beside_several(combined_loss(logs, self.combined.power))

    def without(self, cell: Cell) -> Guess | None:
        """What was predicted of a measured cell before its mix was known."""
        if (combined := self.combined.left_out.get(cell)) is not None:
            return self._beside_several(combined)
        if self.model is None or cell not in self.model.left_out:
            return None
        log = self.model.left_out[cell].predicted
        return Guess(log, self.model.errors.half_width(log))

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


# The losses that a study has measured: those of its leads, and those of its antagonists.
#
# A mix shows what each of its members loses beside all the others, so `a+b` also shows what b loses beside a. Where a
# pair was measured with either of them as the lead, the lead's loss counts: its baseline is measured more often.
#
# What a job loses beside several others is composed of what it loses beside each of them: the extra time adds up. That
# overstates losses where antagonists take the same thing from a job (cache that is gone cannot be taken twice) and
# understates them where together they fill what none of them fills alone (memory bandwidth). docs/benchmarks.md has how
# far off it is on the modelled machine; `castmates advice --place --confirm` measures it.

NEAR = ("", "core", "llc")  # places of antagonists on other cores around the lead's last-level cache
NOT_ALONE = (OTHERWISE, SHARED, BEYOND)  # the processor kept another partition, or somebody else had ways of it

Place = tuple[str, tuple[str, ...], int | None]  # job, those beside it in order, its separate ways


@dataclass(frozen=True)
class MeasuredLosses:
    """Losses by job, cohort and ways."""

    known: Mapping[Place, Loss]

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What was measured of exactly this."""
        return self.known.get((job, tuple(sorted(beside)), ways))


def measured_losses(plan: Plan, effects: pd.DataFrame, caches: Mapping[int, int]) -> MeasuredLosses:
    """From the table of effects; `caches` has the last-level cache of each CPU, as far as it is known."""
    mixes = _sharing(plan, caches)
    found: dict[Place, dict[str, list[Loss]]] = defaultdict(lambda: defaultdict(list))
    wanted = (effects["baseline"] == "alone") & effects["slowdown"].notna() & ~effects["held"].isin(NOT_ALONE)
    for row in effects[wanted].to_dict("records"):
        if place := _place(row, mixes):
            loss = Loss(row["loss_pct"], row["loss_low"], row["loss_high"], "measured")
            found[place][row["role"]].append(loss)
    return MeasuredLosses({place: _one(roles.get("lead") or roles["antagonist"]) for place, roles in found.items()})


def around_one_cache(plan: Plan, effects: pd.DataFrame, caches: Mapping[int, int]) -> pd.DataFrame:
    """The effects of mixes whose members all share one last-level cache, each on separate cores."""
    mixes = _sharing(plan, caches)
    return effects[[place in mixes for place in zip(effects["mix"], effects["partition"], strict=True)]]


def _sharing(plan: Plan, caches: Mapping[int, int]) -> dict[tuple[str, str], tuple[Mix, Partition | None]]:
    """By name and partition: the mixes of which all members share one last-level cache, each on separate cores."""
    cpus = {member.name: member.cpus for launch in plan.launches for member in launch.cohort.members}
    found: dict[tuple[str, str], tuple[Mix, Partition | None]] = {}
    for mix in plan.mixes:
        around = {caches.get(cpu) for name in (mix.lead, *mix.antagonists) for cpu in cpus.get(name, ())}
        if mix.antagonists and place_of(mix.name) in NEAR and len(around) == 1:
            for partition in mix.partitions or (None,):
                found[mix.name, partition.name if partition else UNMANAGED] = (mix, partition)
    return found


def _place(row: Mapping[Any, Any], mixes: Mapping[tuple[str, str], tuple[Mix, Partition | None]]) -> Place | None:
    """What a row is about; None where its members share less than a cache, or more than a cache."""
    if (row["mix"], row["partition"]) not in mixes:
        return None
    mix, partition = mixes[row["mix"], row["partition"]]
    others = [name for name in (mix.lead, *mix.antagonists) if name != row["member"]]
    ways = None if partition is None else own_ways(mix, partition).get(row["member"])
    if partition is not None and ways is None:
        return None
    job, *beside = (plain_workload_of(name) for name in (row["member"], *others))
    return job, tuple(sorted(beside)), ways


def own_ways(mix: Mix, partition: Partition) -> Mapping[str, int]:
    """By member: its ways, where every member has ways that no other fills, and nothing else is limited."""
    members = (mix.lead, *mix.antagonists)
    shares = {share.member: share for share in partition.shares if share.member != REST}
    if set(shares) != set(members) or any(share.bandwidth or share.quota or share.code for share in shares.values()):
        return {}
    if any(overlap(shares[one], shares[other]) for one, other in combinations(members, 2)):
        return {}
    masks = {member: mask_of(share) for member, share in shares.items()}
    return {member: popcount(mask) for member, mask in masks.items() if mask is not None}


def _one(losses: Sequence[Loss]) -> Loss:
    """Of several members, or several classes of partitions, that are the same: their mean, between all ends."""
    if len(losses) == 1:
        return losses[0]
    return Loss(
        pct=loss_pct(math.fsum(log_of(loss.pct) for loss in losses) / len(losses)),
        low=_end(min, (loss.low for loss in losses)),
        high=_end(max, (loss.high for loss in losses)),
        source="measured",
    )


def _end(of: Any, ends: Iterable[float]) -> float:  # noqa: ANN401 (min or max)
    values = list(ends)
    return math.nan if any(map(math.isnan, values)) else float(of(values))


@dataclass(frozen=True)
class ComposedLosses:
    """Losses beside two or more, of those beside one. With separate ways nothing is composed: ways decide the traffic.

    The ends of the interval are those of the pairs, composed too. All pairs of a lead share its `alone` scene, so that
    their errors go together; such ends hold whatever the errors have in common. They leave out how far the
    rule itself is off.
    """

    pairs: Losses

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """From what is lost beside each; None where one of that is not known."""
        if ways is not None or len(beside) < 2:
            return None
        known = [loss for other in beside if (loss := self.pairs.of(job, [other])) is not None]
        if len(known) < len(beside):
            return None
        ends = zip(*((log_of(loss.pct), log_of(loss.low), log_of(loss.high)) for loss in known), strict=True)
        logs = [math.nan if any(map(math.isnan, end)) else combined_loss(end) for end in ends]
        pct, low, high = (math.nan if math.isnan(log) else loss_pct(log) for log in logs)
        return Loss(pct, low, high, "predicted")


@dataclass(frozen=True)
class FirstKnown:
    """Asks one after another: what is measured comes first."""

    sources: Sequence[Losses]

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What the first of them knows."""
        return next((loss for source in self.sources if (loss := source.of(job, beside, ways)) is not None), None)


@dataclass(frozen=True)
class WithIntervals:
    """Predictions; beside several jobs only those with an interval, because without it the ends of pairs give one."""

    predicted: Losses

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What is predicted."""
        loss = self.predicted.of(job, beside, ways)
        return None if loss is not None and len(beside) > 1 and math.isnan(loss.high) else loss


def best_known(measured: Losses, predicted: Losses | None = None) -> Losses:
    """What is measured; else what is predicted; else composed of pairs, whichever of both these are."""
    pairs = FirstKnown([measured, WithIntervals(predicted)] if predicted else [measured])
    return FirstKnown([*pairs.sources, ComposedLosses(pairs)])
