"""What is advised, as tables: the best groupings job by job, and what they gain over placing jobs in the usual ways.

The members of a group get the ways under which it was measured, or else one after another.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.analysis.grouping.problem import FoundGroups, Group, Grouping, Problem, Usual
from castmates.analysis.prediction.predicted import Loss, own_ways
from castmates.analysis.statistics.power import log_of
from castmates.results.columns.placing import GROUPINGS, WAYS
from castmates.results.columns.study import frame
from castmates.study import masks
from castmates.study.class_names import plain_workload_of
from castmates.study.curves import mask_of
from castmates.study.masks import text_of
from castmates.study.spec import Plan

RANKS = ("best", "second", "third")
KEPT, NOT_SHOWN, EXCEEDED = "kept", "not shown", "exceeded"
AGREES, MORE, LESS, CONFIRMED = "agrees", "loses more", "loses less", "confirmed"
ALONE = "alone"
EARLY = 1e-9  # points, so that a limit that is met exactly is met


@dataclass(frozen=True)
class Origin:
    """Where the numbers come from."""

    study: str
    platform: str
    machine: str = ""


@dataclass(frozen=True)
class Advice:
    """What was found for a problem."""

    place: Origin
    problem: Problem
    caches: tuple[int, ...]  # the ids of the domains, in the order of the problem
    found: FoundGroups
    usual: tuple[Usual, ...]
    pairs: Mapping[tuple[str, str], Loss]  # what each job loses beside each other alone
    unknown: tuple[tuple[str, str], ...]  # pairs of which that is not known
    masks: Mapping[Group, tuple[int, ...]]  # of the members of those groups that have separate ways
    cache_ways: int = 0


@dataclass(frozen=True)
class FreshLosses:
    """What fresh launches found of a group, in the order of its members."""

    study: str
    losses: tuple[Loss, ...]


def seated(grouping: Grouping, problem: Problem) -> list[tuple[int, Group]]:
    """Each group with the number of its domain: the largest group around the largest cache."""
    domains = sorted(range(len(problem.domains)), key=lambda place: (-problem.domains[place], place))
    groups = sorted(grouping.groups, key=lambda group: (-group.cores, group.members))
    return sorted(zip(domains, groups, strict=False), key=lambda pair: pair[0])


def groupings_table(advice: Advice, fresh: Mapping[Group, FreshLosses]) -> pd.DataFrame:
    """A row per job of each of the best groupings."""
    rows = [
        row
        for rank, grouping in enumerate(advice.found.best, start=1)
        for domain, group in seated(grouping, advice.problem)
        for row in _rows(advice, rank, domain, group, fresh.get(group))
    ]
    return frame(rows, GROUPINGS)


def _rows(advice: Advice, rank: int, domain: int, group: Group, fresh: FreshLosses | None) -> Iterator[dict[str, Any]]:
    masks = advice.masks.get(group, ())
    for number, (name, loss) in enumerate(zip(group.members, group.losses, strict=True)):
        job = advice.problem.by_name[name]
        beside = [*group.members[:number], *group.members[number + 1 :]]
        found = fresh.losses[number] if fresh else None
        yield {
            "study": advice.place.study,
            "rank": rank,
            "domain": advice.caches[domain],
            "job": name,
            "beside": "+".join(beside),
            "cores": job.cores,
            "ways": group.ways[number] if group.ways else None,
            "mask": text_of(masks[number], advice.cache_ways) if masks else "",
            "loss_pct": loss.pct,
            "loss_low": loss.low,
            "loss_high": loss.high,
            "source": loss.source if beside else ALONE,
            "limit_pct": math.nan if job.limit is None else job.limit,
            "keeps": keeps(loss, job.limit),
            "fresh_pct": found.pct if found else math.nan,
            "fresh_low": found.low if found else math.nan,
            "fresh_high": found.high if found else math.nan,
            "agrees": agreement(loss, found) if found else "",
            "confirmation": confirmation(found, job.limit) if found else "",
            "confirmed_in": fresh.study if fresh else "",
            "platform": advice.place.platform,
            "machine": advice.place.machine,
        }


def keeps(loss: Loss, limit: float | None) -> str:
    """Whether the upper end of a loss keeps a limit."""
    if limit is None:
        return ""
    if loss.high <= limit + EARLY:
        return KEPT
    return EXCEEDED if loss.pct > limit + EARLY else NOT_SHOWN


def agreement(expected: Loss, fresh: Loss) -> str:
    """Whether two independent estimates differ by more than both intervals leave open together."""
    if math.isnan(expected.high) or math.isnan(fresh.high):
        return TOO_FEW
    difference = log_of(fresh.pct) - log_of(expected.pct)
    # The one that is nearer to the other.
    up = difference > 0
    ends = (expected.high, fresh.low) if up else (expected.low, fresh.high)
    halves = [abs(log_of(end) - log_of(loss.pct)) for end, loss in zip(ends, (expected, fresh), strict=True)]
    return AGREES if abs(difference) <= math.hypot(*halves) else MORE if up else LESS


def confirmation(fresh: Loss, limit: float | None) -> str:
    """Whether fresh launches keep the limit."""
    if limit is None:
        return ""
    if math.isnan(fresh.high):
        return TOO_FEW
    return CONFIRMED if fresh.high <= limit + EARLY else EXCEEDED if fresh.low > limit else UNCLEAR


def ways_table(advice: Advice) -> pd.DataFrame:
    """A row per way to place the jobs, and one for each kind of job."""
    ways = [
        *((RANKS[number], (grouping,), 0) for number, grouping in enumerate(advice.found.best)),
        *((each.way, each.groupings, each.tried - len(each.groupings)) for each in advice.usual),
    ]
    best = advice.found.best[0].stp if advice.found.best else math.nan
    rows = [
        _way(advice, way, groupings, unknown, job, best)
        for way, groupings, unknown in ways
        for job in ("", *advice.problem.by_name)
    ]
    return frame(rows, WAYS)


def _way(
    advice: Advice, way: str, groupings: Sequence[Grouping], unknown: int, job: str, best: float
) -> dict[str, Any]:
    chosen = [[(name, loss) for name, loss in each.losses if job in ("", name)] for each in groupings]
    means = np.array([np.mean([loss.pct for _, loss in each]) for each in chosen])
    limits = {name: own.limit for name, own in advice.problem.by_name.items()}
    beyond = [sum(keeps(loss, limits[name]) == EXCEEDED for name, loss in each) for each in chosen]
    predicted = [loss.source == "predicted" for each in chosen for _, loss in each]
    whole = job == "" and len(groupings) > 0
    stp = float(np.mean([each.stp for each in groupings])) if whole else math.nan
    p5, p95 = np.percentile(means, [5, 95]) if len(means) > 1 else (math.nan, math.nan)
    return {
        "study": advice.place.study,
        "way": way,
        "job": job,
        "jobs": len(advice.problem.everybody) if job == "" else advice.problem.by_name[job].count,
        "groupings": len(groupings),
        "unknown": unknown,
        "loss_pct": float(means.mean()) if len(means) else math.nan,
        "loss_p5": p5,
        "loss_p95": p95,
        "stp": stp,
        "gain_pct": 100 * (best / stp - 1) if whole else math.nan,
        "exceeded": float(np.mean(beyond)) if beyond else math.nan,
        "predicted": float(np.mean(predicted)) if predicted else math.nan,
        "domains": float(np.mean([len(each.groups) for each in groupings])) if whole else math.nan,
        "platform": advice.place.platform,
        "machine": advice.place.machine,
    }


def beside_one(advice: Advice, job: str) -> tuple[list[str], list[str]]:
    """Beside which single other job this one is shown to keep its limit, and beside which it is not."""
    limit = advice.problem.by_name[job].limit
    kept = [other for (name, other), loss in advice.pairs.items() if name == job and keeps(loss, limit) == KEPT]
    others = [other for (name, other), loss in advice.pairs.items() if name == job and keeps(loss, limit) != KEPT]
    return kept, others


def masks_of(group: Group, plan: Plan) -> tuple[int, ...]:
    """By member, in order; none where the members share all ways."""
    if not group.ways:
        return ()
    wanted = sorted(zip(group.members, group.ways, strict=True))
    for mix in plan.mixes:
        for partition in mix.partitions:
            ways = own_ways(mix, partition)
            if sorted((plain_workload_of(name), own) for name, own in ways.items()) == wanted:
                given = {share.member: mask_of(share) or 0 for share in partition.shares}
                return _in_order(group, [(plain_workload_of(name), given[name]) for name in ways])
    return _side_by_side(group)


def _in_order(group: Group, given: list[tuple[str, int]]) -> tuple[int, ...]:
    """Each member's mask; of members of one kind the one with as many ways."""
    left, ordered = list(given), []
    for name, ways in zip(group.members, group.ways, strict=True):
        own = next(each for each in left if each[0] == name and masks.popcount(each[1]) == ways)
        left.remove(own)
        ordered.append(own[1])
    return tuple(ordered)


def _side_by_side(group: Group) -> tuple[int, ...]:
    starts = [sum(group.ways[:number]) for number in range(len(group.ways))]
    return tuple(masks.make(ways, start) for ways, start in zip(group.ways, starts, strict=True))
