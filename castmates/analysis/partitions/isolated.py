"""Under which partition lead and antagonists of a mix count as isolated: named, the only one, or chosen.

A choice is made on two fifths of the launches, drawn by the launches' own seeds, and the others estimate: the partition
that looks best does so partly by luck, and on the launches that chose it the luck would be counted as cache capacity.
"""

import random
from collections.abc import Iterable

import numpy as np
import pandas as pd

from castmates.analysis.core import of_each_launch
from castmates.analysis.keys import LAUNCH, LEAD_OF_MIX, ROUND
from castmates.analysis.partitions.attribution_parts import ALONE, GROUP, ISOLATED, TOGETHER
from castmates.analysis.partitions.held import SHARED, UNCERTAIN, States, states
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES
from castmates.study.partitions.isolation import isolates
from castmates.study.spec import Launch, Plan

NAMED, ONLY, CHOSEN = "named", "the only one", "chosen"
FEWEST_TO_CHOOSE = 2
CHOOSING_SHARE = 0.4
FOUND = ["partition", "how", "candidates", "launches_choosing"]


def candidates(plan: Plan, named: str | None, known: States | None = None) -> pd.DataFrame:
    """The isolating partitions of each mix; only the named one where the study names it.

    One that only may isolate is taken where the study names it, and never chosen.
    """
    table = separating(plan, known)
    mask = table["partition"] == named if named is not None else ~table["uncertain"]
    return table.loc[mask, [*LEAD_OF_MIX, "partition"]].reset_index(drop=True)


def separating(plan: Plan, known: States | None = None) -> pd.DataFrame:
    """Every partition whose masks separate a lead from its antagonists, and whether the processor may join them.

    `known` is what the processor held; where it is left out, nothing was read. Ways that somebody else on the machine
    has too separate nobody.
    """
    found = states(plan) if known is None else known
    rows = [
        {
            "mix": mix.name,
            "member": mix.lead,
            "partition": partition.name,
            "uncertain": found.get((mix.name, partition.name)) == UNCERTAIN,
        }
        for mix in plan.mixes
        for partition in mix.partitions
        if isolates(partition, mix) and found.get((mix.name, partition.name)) != SHARED
    ]
    table = pd.DataFrame(rows, columns=[*LEAD_OF_MIX, "partition", "uncertain"])
    return table.astype({"uncertain": bool}).drop_duplicates([*LEAD_OF_MIX, "partition"], ignore_index=True)


def isolating(
    plan: Plan, bare: pd.DataFrame, under: pd.DataFrame, named: str | None, held: States | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """By mix and platform the partition and how it was found; and the launches that chose, which do not estimate.

    `bare` and `under` are the rounds without and with partitions. Which launches choose is decided by seeds and which
    windows are valid, never by a rate.
    """
    known = candidates(plan, named, held)
    counts = known.groupby(LEAD_OF_MIX, sort=False).size().rename("candidates").reset_index()
    groups = bare[GROUP].drop_duplicates().merge(counts, on=LEAD_OF_MIX)
    lone = groups[groups["candidates"] == 1].merge(known, on=LEAD_OF_MIX)
    lone = lone.assign(how=NAMED if named else ONLY, launches_choosing=0)
    several = groups[groups["candidates"] > 1]
    gains = _gains(bare, under.merge(several, on=GROUP).merge(known, on=[*LEAD_OF_MIX, "partition"]))
    gains = gains.merge(choosing(gains, plan.launches), on=[*GROUP, *LAUNCH])
    chosen = several.merge(best_of(gains, known), on=GROUP, how="left").assign(how=CHOSEN)
    partitions = pd.concat([lone, chosen], ignore_index=True)[[*GROUP, *FOUND]]
    return partitions, gains.loc[gains["choosing"], [*GROUP, *LAUNCH]].drop_duplicates()


def _gains(bare: pd.DataFrame, under: pd.DataFrame) -> pd.DataFrame:
    """What each partition gives back in each launch, from the rounds that have all it takes."""
    both = under.merge(bare, on=[*GROUP, *ROUND])
    both = both[both[[ALONE, ISOLATED, TOGETHER]].notna().all(axis=1)]
    both["gain"] = both[ISOLATED] - both[TOGETHER]
    return of_each_launch(both, [*GROUP, "partition"], ["gain"])


def choosing(gains: pd.DataFrame, launches: Iterable[Launch]) -> pd.DataFrame:
    """Every launch of a mix and whether it chooses: two fifths, in an order drawn by their seeds.

    Each cohort gives two fifths of its launches, rounded down; then those that were rounded down most give one more,
    so that cohorts of few launches give too, and a partition that only one cohort has keeps its share.
    """
    draws = {
        (launch.cohort.id, launch.number): random.Random(f"{launch.seed}/attribution").random() for launch in launches
    }
    rows = gains[[*GROUP, *LAUNCH]].drop_duplicates()
    places = zip(rows["cohort"], rows["launch"], strict=True)
    drawn = pd.Series([draws[place] for place in places], index=rows.index)
    within = drawn.groupby([rows[name] for name in (*GROUP, "cohort")], observed=True)
    rank, share = within.rank(method="first"), CHOOSING_SHARE * within.transform("size")
    sure = rank <= np.floor(share)
    order = rows[GROUP].assign(sure=sure, next=rank == np.floor(share) + 1, lacks=share % 1, drawn=drawn)
    order = order.sort_values(["sure", "next", "lacks", "drawn"], ascending=[False, False, False, True], kind="stable")
    groups = order.groupby(GROUP, observed=True)["sure"]
    choosing = groups.cumcount() < (CHOOSING_SHARE * groups.transform("size")).round()
    return rows.assign(choosing=choosing.reindex(rows.index).astype(bool))


def best_of(gains: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Of the partitions with enough launches on either side, the one that gives back most on those that choose."""
    by = [*GROUP, "partition"]
    mean = gains[gains["choosing"]].groupby(by, observed=True)["gain"].agg(["mean", "size"])
    estimating = gains[~gains["choosing"]].groupby(by, observed=True).size().rename("estimating")
    eligible = mean.join(estimating, how="inner").reset_index()
    eligible = eligible[(eligible["size"] >= FEWEST_TO_CHOOSE) & (eligible["estimating"] >= FEWEST_LAUNCHES)]
    # Of equals the first of the plan.
    eligible = known.reset_index(names="place").merge(eligible, on=[*LEAD_OF_MIX, "partition"])
    ranked = eligible.sort_values(["mean", "place"], ascending=[False, True], kind="stable")
    return ranked.drop_duplicates(GROUP).rename(columns={"size": "launches_choosing"})[[*by, "launches_choosing"]]
