"""Plan and windows so far -> which cohorts have enough launches for the wanted half-width.

The rule, with its reasons and its simulated coverage, is in docs/methodology.md. A mix has enough launches when its
interval against alone is narrow enough, and was so already a certain number of launches ago: a rule that stops at the
first narrow interval stops too often at one that is narrow by luck.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast
from castmates.analysis.effects.contrasts import mix_contrasts, partitions_of
from castmates.analysis.effects.pooling import pooled, without_hosts
from castmates.study.budget_keys import CONFIRMED_AFTER
from castmates.study.looks import cohort_of, needed, part_of
from castmates.study.spec import Cohort, Plan

Place = tuple[str, str]  # a mix's name and a partition


@dataclass(frozen=True)
class Width:
    """How well a mix is known."""

    half: float  # of the interval of the lead's slowdown against alone; infinite where there is none
    launches: int  # with data


@dataclass(frozen=True)
class Reached:
    """How far a cohort has come at a look."""

    cohort: str
    launches: int  # with data, of the mix that has fewest; mixes that have none are left out here and below
    half_width_pct: float | None  # the widest of its mixes, in % of the time alone; None where there is no interval
    enough: bool
    goes_on: bool


def look(plan: Plan, windows: pd.DataFrame, wanted: float, decisions: Sequence[Sequence[str]]) -> list[Reached]:
    """Judge the cohorts that may go on, after the looks that made these decisions."""
    now = len(decisions) + 1
    seen = [widths(part_of(plan, needed(plan, decisions[:before])), windows) for before in range(now)]
    later = {cohort_of(path) for added in plan.looks[now:] for path in added}
    judged = (cohort for cohort in plan.cohorts if not decisions or cohort.id in decisions[-1])
    histories = ((cohort, _histories(plan, cohort, seen)) for cohort in judged)
    return [_judge(cohort.id, mixes, wanted, cohort.id in later) for cohort, mixes in histories if mixes]


def widths(plan: Plan, windows: pd.DataFrame) -> dict[Place, Width]:
    """How well each mix is known under each partition; on the worse of several platforms.

    As the effects are estimated: over nodes where there are several, and of several models of processor by the one
    that measured the most launches.
    """
    known: dict[Place, Width] = {}
    for part in reversed(pooled(without_hosts(plan, windows, plan.ignored_hosts), windows)):
        known |= _of_part(part, windows)
    return known


def _of_part(plan: Plan, windows: pd.DataFrame) -> dict[Place, Width]:
    return widths_of(Contrast.of(plan, windows, against_alone(plan)).rows_over_nodes())


def against_alone(plan: Plan) -> pd.DataFrame:
    """The contrasts whose precision decides: the leads of all mixes against alone."""
    contrasts = mix_contrasts(plan)
    return contrasts[(contrasts["baseline"] == "alone") & (contrasts["role"] == "lead")]


def widths_of(table: pd.DataFrame) -> dict[Place, Width]:
    """The same from the estimates of these contrasts."""
    halves = ((np.exp(table["high"]) - np.exp(table["low"])) / 2).fillna(math.inf).tolist()
    places = zip(table["mix"].tolist(), table["partition"].tolist(), strict=True)
    by_place: dict[Place, Width] = {}
    for place, half, launches in zip(places, halves, table["launches"].tolist(), strict=True):
        known = by_place.get(place, Width(0.0, int(launches)))
        by_place[place] = Width(max(known.half, half), min(known.launches, int(launches)))
    return by_place


def _histories(plan: Plan, cohort: Cohort, seen: Sequence[Mapping[Place, Width]]) -> list[list[Width]]:
    """What each look saw of each of the cohort's mixes that is a result of the study."""
    active = {mix.identity: mix for mix in plan.mixes}
    ours = [active[mix.identity] for mix in cohort.mixes if mix.identity in active]
    places = [(mix.name, partition) for mix in ours for partition in partitions_of(mix)]
    return [[widths[place] for widths in seen] for place in places]


def _judge(cohort: str, mixes: Sequence[Sequence[Width]], wanted: float, has_later: bool) -> Reached:
    # Where no launch gave anything, more of the same will not either: the reasons are in the report.
    mixes = [history for history in mixes if history[-1].launches]
    half = max((history[-1].half for history in mixes), default=math.inf)
    all_enough = bool(mixes) and all(is_precise_enough(history, wanted) for history in mixes)
    return Reached(
        cohort=cohort,
        launches=min((history[-1].launches for history in mixes), default=0),
        half_width_pct=100 * half if math.isfinite(half) else None,
        enough=all_enough,
        goes_on=has_later and bool(mixes) and not all_enough,
    )


def is_precise_enough(history: Sequence[Width], wanted: float) -> bool:
    """Whether the interval is narrow enough now, and was so at a look with so many launches less."""
    now = history[-1]
    narrow = [width for width in history if width.half <= wanted]
    return now in narrow and any(width.launches <= now.launches - CONFIRMED_AFTER for width in narrow)
