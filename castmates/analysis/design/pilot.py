"""A few launches -> how rates vary between launches and between rounds, what each costs, and which design follows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.core import Contrast
from castmates.analysis.effects.contrasts import mix_contrasts, partitions_of
from castmates.analysis.effects.pooling import pooled, without_hosts
from castmates.analysis.keys import LAUNCH, ROUND, ROW
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, estimate, gained
from castmates.analysis.statistics.power import half_width
from castmates.study import rounds
from castmates.study.budget_keys import CONFIRMED_AFTER
from castmates.study.rounds import Cost, Spread, cohort_of, needed, part_of
from castmates.study.spec import UNMANAGED, Cohort, Plan

SETTLED_SHARE = 3  # a window lasts at least so many settle times


def spreads(plan: Plan, windows: pd.DataFrame) -> dict[str, Spread]:
    """By the mix's identity, for all that have two launches with data; the worse of several platforms."""
    contrasts = against_alone(plan)
    contrasts = contrasts[contrasts["partition"] == UNMANAGED]
    pairs = Contrast.of(plan, windows, contrasts).pairs
    names = dict(zip(contrasts["row"], contrasts["mix"], strict=True))
    identities = {mix.name: mix.identity for mix in plan.mixes if not mix.partitions}
    worst: dict[str, Spread] = {}
    for (row, _), own in pairs.groupby(ROW, observed=True):
        spread = spread_of(names[row], [launch["difference"] for _, launch in own.groupby(LAUNCH, observed=True)])
        if spread is not None and (spread.mix not in worst or worst[spread.mix].of_means < spread.of_means):
            worst[spread.mix] = spread
    return {identities[name]: spread for name, spread in worst.items()}


def spread_of(mix: str, differences: Iterable[npt.ArrayLike]) -> Spread | None:
    """From the differences of the pairs, launch by launch; the launches may have different numbers of rounds."""
    launches = [np.asarray(own, dtype=float) for own in differences]
    if len(launches) < 2:
        return None
    freedom = sum(len(own) - 1 for own in launches)
    squares = sum(float(np.sum((own - own.mean()) ** 2)) for own in launches)
    within = squares / freedom if freedom else 0.0
    means = [float(own.mean()) for own in launches]
    shares = float(np.mean([1 / len(own) for own in launches]))
    of_means = float(np.var(means, ddof=1))
    return Spread(
        mix=mix,
        log=float(np.mean(means)),
        of_means=of_means,
        within=within,
        between=max(0.0, of_means - within * shares),
        launches=len(launches),
        rounds=1 / shares,
    )


def best_rounds(mixes: Iterable[Spread], costs: Iterable[Cost], longest_launch: float) -> int:
    """The rounds per launch that give the smallest variance for the time, over these cohorts and mixes at once."""
    mixes, costs = list(mixes), list(costs)
    between, within = sum(each.between for each in mixes), sum(each.within for each in mixes)
    # Mixes of a cohort share their launches, and so count once.
    freedom = len(costs) * min((each.launches - 1 for each in mixes), default=0)
    ratio = rounds.expected_ratio(between, within, freedom)
    total = Cost(sum(each.launch for each in costs), sum(each.round for each in costs))
    return rounds.best_rounds(ratio, total, min(each.fitting(longest_launch) for each in costs))


def cost_of(records: Sequence[Mapping[str, Any]]) -> Cost | None:
    """What the launches of a cohort took, from their records; None where none was measured."""
    took = [
        (record["seconds"]["total"] - record["seconds"]["measure"], record["seconds"]["measure"] / rounds)
        for record in records
        if record["status"] == "measured"
        and (rounds := record["windows"] / len(record.get("scenes") or record["spec"]["cohort"]["scenes"]))
    ]
    if not took:
        return None
    launch, one_round = np.mean(took, axis=0).tolist()
    return Cost(launch, one_round)


def window_noise(windows: pd.DataFrame) -> float | None:
    """Standard deviation of a window's log rate, from the two `alone` windows of each round."""
    usable = windows[windows["valid"] & (windows["role"] == "lead") & (windows["rate"] > 0)]
    place = ["platform", *ROUND, "member"]
    first, again = (usable[usable["scene"] == scene].set_index(place)["rate"] for scene in ("alone", "alone-again"))
    difference = (np.log(first) - np.log(again)).dropna()
    inside = difference.groupby(["platform", *LAUNCH]).agg(["var", "size"])
    freedom = inside["size"] - 1
    if not freedom.sum():
        return None
    return math.sqrt(float((inside["var"].fillna(0.0) * freedom).sum()) / float(freedom.sum()) / 2)


def window_for(windows: pd.DataFrame, steps: int, shortest: float, longest: float, settle: float) -> float:
    """A window in which the slowest lead makes its steps, and that is long beside the settle time."""
    leads = windows[windows["role"] == "lead"]
    counted = leads["slices"] - leads["slices_rejected"] - leads["slices_dropped"]
    steps_inside = (leads["beats"] - counted).astype("float64")  # one fewer than heartbeats in each slice
    seconds = leads["progress_s"] / steps_inside.where(steps_inside > 0)
    slowest = float(seconds.groupby(leads["kind"] + leads["scene"] + leads["member"]).median().max())
    needed = max(shortest, SETTLED_SHARE * settle, (steps + 1) * slowest if math.isfinite(slowest) else 0.0)
    return min(max(longest, shortest), math.ceil(round(10 * needed, 6)) / 10)


# Plan and windows so far -> which cohorts have enough launches for the wanted half-width.
#
# The rule, with its reasons and its simulated coverage, is in docs/methodology.md. A mix has enough launches when its
# interval against alone is narrow enough, and was so already a certain number of launches ago: a rule that stops at the
# first narrow interval stops too often at one that is narrow by luck.

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

    As the effects are estimated: over nodes or sessions where there are several, and of several models of processor by
    the one that measured the most launches.
    """
    known: dict[Place, Width] = {}
    for part in reversed(pooled(without_hosts(plan, windows, plan.ignored_hosts), windows)):
        known |= widths_of(Contrast.of(part, windows, against_alone(part)).rows_over_levels())
    return known


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
    ours = [mix for mix in (active.get(each.identity) for each in cohort.mixes) if mix and mix.is_compared]
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


# How a program's rate wanders: what two neighbouring windows differ by, against how long they are.

LENGTHS = (0.03, 0.06, 0.1, 0.2, 0.5, 1.0, 2.0)  # seconds
GAP = 0.02  # seconds between two windows, for the change of scene
BUDGET = 60.0  # seconds of machine time that the half-width refers to
FEWEST_STEPS = 3  # in a window: fewer would measure its own edges
FEWEST_PAIRS = 8

Beats = Sequence[tuple[int, int]]  # time in ns, units so far


@dataclass(frozen=True)
class Wandering:
    """What windows of one length show of a program that runs alone."""

    workload: str
    seconds: float  # of a window
    pairs: int  # of neighbouring windows in the record
    scatter: float  # standard deviation of the log ratio of two neighbours
    # Of a 95 % interval of that ratio, if all of a minute went into pairs of windows and the pairs were independent.
    # They are not where a rate or an effect wanders for longer than a pair lasts: it compares lengths, and no study
    # gets intervals from it, whose units are launches.
    half_width_pct: float


def wandering(workload: str, beats: Beats) -> list[Wandering]:
    """A row for each length of which the record has enough windows with enough steps."""
    times, units = (np.asarray(column, dtype=float) for column in zip(*beats, strict=True))
    step = float(np.median(np.diff(times))) / 1e9
    rows = []
    for length in LENGTHS:
        # Log ratios of the rates of neighbouring windows, laid side by side over the record.
        count = math.floor((times[-1] - times[0]) / 1e9 / (length + GAP))
        begins = times[0] + 1e9 * (length + GAP) * np.arange(count)
        done = np.interp(begins + 1e9 * length, times, units) - np.interp(begins, times, units)
        # A window without progress has no rate, and those on both sides of it are no neighbours: neither is paired.
        differences = np.diff(np.log(np.where(done > 0, done, np.nan)))
        ratios = np.asarray(differences[np.isfinite(differences)])

        if length >= FEWEST_STEPS * step and len(ratios) >= FEWEST_PAIRS:
            scatter = float(np.std(ratios, ddof=1))
            pairs = int(BUDGET / (2 * (length + GAP)))
            width = 100 * half_width(scatter**2, pairs)
            rows.append(Wandering(workload, length, len(ratios), scatter, width))
    return rows


# What it costs a lead to be watched: pairs of windows, with and without a collector -> change of its rate.
#
# A pair is the log of the rate with it over the rate without it. Launches are the units where there are enough of them.

WIDE_PCT = 1.0  # an interval that contains 0 and reaches so far to either side shows nothing of use

Verdict = Literal["costs", "speeds up", "none seen", "unresolved", "too few pairs"]


def costs(pairs: "pd.DataFrame") -> "pd.DataFrame":
    """Reduce `difference` (a row per pair: collector, cohort, launch) to a change in per cent for each collector.

    From three launches on the interval is that between launches, else that of the pairs within them.
    """
    table = estimate(pairs, ["collector"])
    between = table["launches"] >= FEWEST_LAUNCHES
    table["change_pct"] = gained(table["mean"])
    for end in ("low", "high"):
        table[end] = gained(table[end].where(between, table[f"within_{end}"]))
    table["between_launches"] = between
    table["verdict"] = [
        verdict(low, high) for low, high in zip(table["low"].astype(float), table["high"].astype(float), strict=True)
    ]
    shown = ["change_pct", "low", "high", "between_launches", "verdict"]
    return table.rename(columns={"rounds": "pairs"})[["launches", "pairs", *shown]].reset_index()


def verdict(low: float, high: float) -> Verdict:
    """What an interval of the change shows."""
    if math.isnan(low) or math.isnan(high):
        return "too few pairs"
    if high < 0:
        return "costs"
    if low > 0:
        return "speeds up"
    return "unresolved" if max(-low, high) > WIDE_PCT else "none seen"
