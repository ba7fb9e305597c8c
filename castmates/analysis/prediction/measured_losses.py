"""The losses that a study has measured: those of its leads, and those of its antagonists.

A mix shows what each of its members loses beside all the others, so `a+b` also shows what b loses beside a. Where a
pair was measured with either of them as the lead, the lead's loss counts: its baseline is measured more often.

What a job loses beside several others is composed of what it loses beside each of them: the extra time adds up. That
overstates losses where antagonists take the same thing from a job (cache that is gone cannot be taken twice) and
understates them where together they fill what none of them fills alone (memory bandwidth). docs/benchmarks.md has how
far off it is on the modelled machine; `castmates advice --place --confirm` measures it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from castmates.analysis.partitions.held import OTHERWISE, SHARED
from castmates.analysis.prediction.losses import Loss, Losses
from castmates.analysis.prediction.predicted import combined_loss
from castmates.analysis.statistics.power import log_of, loss_pct
from castmates.study.class_names import plain_workload_of
from castmates.study.masks import popcount
from castmates.study.schemata import mask_of, overlap
from castmates.study.spec import REST, UNMANAGED, Mix, Partition, Plan
from castmates.study.wanted import place_of

NEAR = ("", "core", "llc")  # places of antagonists on other cores around the lead's last-level cache
NOT_ALONE = (OTHERWISE, SHARED)  # the processor held another partition, or somebody else had ways of it

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
