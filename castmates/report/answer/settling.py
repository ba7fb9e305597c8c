"""How many more launches would probably settle what is open, how long they take, and which command measures them."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from castmates.analysis.effects.verdicts import EXTENDED_LEVEL, TOO_FEW, UNCLEAR
from castmates.analysis.statistics.power import FEWEST_LAUNCHES, POWER, chance_within, detectable, two_sided
from castmates.report.answer.parts import SUSPECTED, SUSPECTED_GAIN, Pair, ToSettle
from castmates.report.results import Results
from castmates.results.named import retry_command, study_argument

MOST = 100  # launches that are proposed
ALIKE = 10.0  # the largest variance over the smallest, up to which that of a handful of launches may be chance
NEVER = MOST + 1


def to_settle(results: Results, found: Sequence[Pair]) -> ToSettle | None:
    """What settles the suspected losses, or else gains, or else the unclear pairs, or else those with few launches."""
    for kind in (SUSPECTED, SUSPECTED_GAIN, UNCLEAR):
        wanted = [pair for pair in found if pair.state == kind and not math.isnan(spread_of(pair))]
        if wanted:
            return _by_power(results, found, wanted)
    few = [pair for pair in found if pair.state == TOO_FEW]
    return _proposal(results, few, FEWEST_LAUNCHES, ()) if few else None


def _by_power(results: Results, found: Sequence[Pair], wanted: Sequence[Pair]) -> ToSettle:
    tried = sum(pair.launches >= FEWEST_LAUNCHES for pair in found)
    planned = {id(pair): spread for pair, spread in zip(found, planned_spreads(found), strict=True)}
    needed = {id(pair): launches_for(pair, planned[id(pair)], tried, results.margin) for pair in wanted}
    feasible = [count for count in needed.values() if count <= MOST]
    hopeless = tuple(pair for pair in wanted if needed[id(pair)] > MOST)
    return _proposal(results, wanted, max(feasible, default=NEVER), hopeless)


def _proposal(results: Results, wanted: Sequence[Pair], needed: int, hopeless: Sequence[Pair]) -> ToSettle:
    """So many launches, at least one more than the study has; those that it has planned already come first."""
    feasible, planned = needed <= MOST, _planned(results)
    measured, missing, useless = _done(results, wanted, planned)
    if missing:
        needed = planned
    elif feasible:
        needed = max(needed, planned + 1, measured + 1)
    if useless and missing and results.study_file:
        sweep = retry_command(results.study_file)
    else:
        sweep = sweep_command(results, None if missing or has_looks(results) else needed)
    more = needed - measured
    return ToSettle(
        pairs=len(wanted),
        settled=len(wanted) - len(hopeless),
        launches=needed,
        more=more,
        seconds=more * seconds_of_launches(results),
        command=sweep if feasible or missing else "",
        kind=wanted[0].state,
        planned=missing,
        hopeless=tuple(hopeless),
    )


def has_looks(results: Results) -> bool:
    """Whether looks decide how many launches the study has: a command can ask for no others then."""
    return results.study is not None and results.study.budget.has_looks


def _planned(results: Results) -> int:
    """Launches of each program that the study has without being asked for more."""
    of_plan = max(Counter(launch.cohort.id for launch in results.plan.launches).values(), default=0)
    return of_plan if results.study is None or has_looks(results) else max(of_plan, results.study.budget.launches)


def _done(results: Results, wanted: Sequence[Pair], planned: int) -> tuple[int, bool, bool]:
    """Launches of these programs that count, whether planned ones are missing, and whether some failed."""
    ours = results.launches[results.launches["lead"].isin({pair.program for pair in wanted})]
    good = ours[(ours["status"] == "measured") & (ours["rounds"] > 0)]
    counts = good["cohort"].value_counts().reindex(ours["cohort"].unique(), fill_value=0)
    measured = int(counts.max()) if len(counts) else max(pair.launches for pair in wanted)
    return measured, len(counts) > 0 and int(counts.min()) < planned, len(good) < len(ours)


def spread_of(pair: Pair) -> float:
    """The standard deviation of its launches, from the width of its interval; NaN where it has none over them."""
    if pair.launches < FEWEST_LAUNCHES or not pair.over_launches:
        return math.nan
    reach = two_sided(pair.launches - 1)
    return (pair.log_high - pair.log_low) / 2 / reach * math.sqrt(pair.launches)


def planned_spreads(found: Sequence[Pair]) -> list[float]:
    """By pair: the standard deviation of its launches that a plan counts with, which all pairs of a lead show together.

    From a handful of launches each, the widest of several pairs is mostly wide by chance, and would ask for half as
    many launches again as are needed. Pairs that differ by more than chance keep their own. No interval rests on this.
    """
    spreads = [spread_of(pair) for pair in found]
    together: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for pair, spread in zip(found, spreads, strict=True):
        if not math.isnan(spread):
            together.setdefault((pair.lead, pair.platform), []).append((spread**2, pair.launches - 1))
    return [
        _pooled(together.get((pair.lead, pair.platform), []), spread)
        for pair, spread in zip(found, spreads, strict=True)
    ]


def _pooled(variances: Sequence[tuple[float, int]], own: float) -> float:
    known = [variance for variance, _ in variances]
    if math.isnan(own) or max(known) > ALIKE * min(known):
        return own
    return math.sqrt(sum(each * freedom for each, freedom in variances) / sum(freedom for _, freedom in variances))


def launches_for(pair: Pair, spread: float, tried: int, margin: float | None) -> int:
    """The fewest that mostly prove a loss as large as this one looks, or that nothing beyond the margin is there.

    By the level of a study that was extended, as if the pair were alone among all: Holm's adjustment asks for no more.
    """
    level = EXTENDED_LEVEL / max(1, tried)
    edge = math.log1p(margin) if margin is not None else 0.0
    for count in range(max(FEWEST_LAUNCHES, pair.launches), MOST + 1):
        if detectable(spread**2, count, level) <= abs(pair.log):
            return count
        if abs(pair.log) < edge and chance_within(spread, count, pair.log, edge) >= POWER:
            return count
    return NEVER


def spreads(found: Sequence[Pair]) -> tuple[float, float] | None:
    """By how many per cent launches differ, of the pair that differs least and of the one that differs most."""
    known = [100 * spread for pair in found if not math.isnan(spread := spread_of(pair))]
    return (min(known), max(known)) if known else None


def seconds_of_launches(results: Results) -> float:
    """How long one more launch of each program takes, with its antagonists; controls have launches enough."""
    plan = results.plan
    controls = {control.mix.identity for control in plan.controls}.difference(mix.identity for mix in plan.mixes)
    alone = [one.id for one in plan.cohorts if one.mixes and all(mix.identity in controls for mix in one.mixes)]
    launches = results.launches[(results.launches["status"] == "measured") & ~results.launches["cohort"].isin(alone)]
    means = launches.groupby("cohort")["total_seconds"].mean().to_numpy(dtype=float)
    return float(np.nansum(means))


def sweep_command(results: Results, launches: int | None = None) -> str:
    """What measures the study, with so many launches; "" where the study file is not known."""
    if not results.study_file:
        return ""
    return f"castmates sweep{study_argument(results.study_file)}" + (f" --launches {launches}" if launches else "")
