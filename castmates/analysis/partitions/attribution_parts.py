"""Complete rounds of a chain -> its parts, which add up: in log terms, and in points of the rate alone.

The chain leads from alone to the unmanaged co-run; a round is complete where all of its scenes were measured.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means, of_each_launch
from castmates.analysis.effects.contrasts import PLACEBO_AT_MASK, WITHOUT_PARTITION
from castmates.analysis.keys import LAUNCH, LEAD_OF_MIX, MEMBER, ROUND
from castmates.analysis.partitions.held import BEYOND, SHARED, UNCERTAIN, States, states
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, estimate, lost
from castmates.analysis.statistics.pairs import log_rates, whole_alone
from castmates.study.partitions.partitions import isolates
from castmates.study.spec import UNMANAGED, Launch, Plan

ALONE, PLACEBO, AT_MASK, ISOLATED, TOGETHER = "alone", "placebo", PLACEBO_AT_MASK, "isolated", WITHOUT_PARTITION
LINKS = (ALONE, PLACEBO, AT_MASK, ISOLATED, TOGETHER)
# From the finest to the coarsest: what is missing is left out, and two parts become one.
CHAINS = (LINKS, (ALONE, PLACEBO, ISOLATED, TOGETHER), (ALONE, ISOLATED, TOGETHER), (ALONE, PLACEBO, TOGETHER),
          (ALONE, TOGETHER))  # fmt: skip

GROUP = [*LEAD_OF_MIX, "platform"]  # what a chain belongs to
TOTAL = "total"
BUSY, ANTAGONIST, NOT_GIVEN_BACK = "busy antagonist", "antagonist, not given back", "not given back"
OWN, DESPITE, CAPACITY, SHARING = "own smaller share", "despite own ways", "cache capacity", "sharing"
PARTS = {  # in the order of the tables and figures: from which link to which
    TOTAL: (ALONE, TOGETHER),
    BUSY: (ALONE, PLACEBO),
    ANTAGONIST: (ALONE, ISOLATED),
    NOT_GIVEN_BACK: (PLACEBO, ISOLATED),
    OWN: (PLACEBO, AT_MASK),
    DESPITE: (AT_MASK, ISOLATED),
    CAPACITY: (ISOLATED, TOGETHER),
    SHARING: (PLACEBO, TOGETHER),
}
DETAILS = {OWN: NOT_GIVEN_BACK, DESPITE: NOT_GIVEN_BACK}  # parts of a part
_PART = [*GROUP, "part"]


def linked_scenes(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Every scene that is a link of some mix's chain, in every cohort that has it; `partition` is "" for all."""
    lead = contrasts[(contrasts["role"] == "lead") & (contrasts["antagonists"] != "")]
    bare, under = lead[lead["partition"] == UNMANAGED], lead[lead["partition"] != UNMANAGED]
    scenes = [
        *(_scenes_of(bare[bare["baseline"] == link], "baseline_scene", link, "") for link in (ALONE, PLACEBO)),
        _scenes_of(bare[bare["baseline"] == ALONE], "scene", TOGETHER, ""),
        _scenes_of(under[under["baseline"] == AT_MASK], "baseline_scene", AT_MASK),
        _scenes_of(under[under["baseline"] == ALONE], "scene", ISOLATED),
    ]
    return pd.concat(scenes, ignore_index=True)


def _scenes_of(rows: pd.DataFrame, scene: str, link: str, partition: str | None = None) -> pd.DataFrame:
    chosen = rows[[*LEAD_OF_MIX, "partition", "cohort"]].assign(scene=rows[scene], link=link)
    return chosen if partition is None else chosen.assign(partition=partition)


def rounds(windows: pd.DataFrame, linked: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """By round the log rates of the lead: at the links without a partition, and at those under each partition."""
    leads = windows[windows["member"].isin(linked["member"].unique())]
    rates = whole_alone(log_rates(leads)).merge(linked, on=MEMBER)
    bare = rates["partition"] == ""
    return (
        _wide(rates[bare], [*GROUP, *ROUND], (ALONE, PLACEBO, TOGETHER)),
        _wide(rates[~bare], [*GROUP, "partition", *ROUND], (AT_MASK, ISOLATED)),
    )


def _wide(rates: pd.DataFrame, index: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """A row per round, a column per link; NaN where there is no valid window."""
    wide = rates.set_index([*index, "link"])["log_rate"].unstack("link")
    return wide.reindex(columns=list(columns)).reset_index().rename_axis(columns=None)


def complete(bare: pd.DataFrame, under: pd.DataFrame, partitions: pd.DataFrame, choosing: pd.DataFrame) -> pd.DataFrame:
    """The rounds that estimate, each with every link of its mix's chain, which is the finest with enough launches.

    `partitions` has that of each mix, `choosing` the launches that chose it: their rounds do not estimate isolation.
    """
    own = under.merge(partitions[[*GROUP, "partition"]], on=[*GROUP, "partition"]).drop(columns="partition")
    own = own.merge(choosing, on=[*GROUP, *LAUNCH], how="left", indicator=True)
    own = own[own.pop("_merge") == "left_only"]
    whole = bare.merge(own, on=[*GROUP, *ROUND], how="left")
    has = {number: whole[list(links)].notna().all(axis=1) for number, links in enumerate(CHAINS)}
    launches = [
        whole.loc[there, [*GROUP, *LAUNCH]].drop_duplicates().assign(chain=number) for number, there in has.items()
    ]
    counts = pd.concat(launches).groupby([*GROUP, "chain"], observed=True).size().rename("launches").reset_index()
    needed = counts.groupby(GROUP, observed=True)["launches"].transform("max").clip(upper=FEWEST_LAUNCHES)
    chain = counts[counts["launches"] >= needed].drop_duplicates(GROUP)[[*GROUP, "chain"]]  # sorted: the finest
    whole = whole.merge(chain, on=GROUP, how="left")  # none for a mix that has no complete round
    return whole[np.select([whole["chain"] == number for number in has], list(has.values()), default=False)]


def parts_of(links: Sequence[str]) -> list[str]:
    """What a chain of these links can show: the total, its parts, and what one of them consists of."""
    steps = {*pairwise(links), (ALONE, TOGETHER)} | ({(PLACEBO, ISOLATED)} if tuple(links) == LINKS else set())
    return [part for part, step in PARTS.items() if step in steps]


def estimated(whole: pd.DataFrame) -> pd.DataFrame:
    """Every part of every mix, from its complete rounds: estimates, intervals, counts."""
    by_chain = [_differences(whole[whole["chain"] == number], links) for number, links in enumerate(CHAINS)]
    differences = pd.concat(by_chain, ignore_index=True)
    table = estimate(differences, by=_PART).join(_points(differences)).reset_index()
    steps = table["part"].map(PARTS)
    return table.assign(start=steps.str[0], end=steps.str[1])


def _differences(rounds: pd.DataFrame, links: Sequence[str]) -> pd.DataFrame:
    """A row per round and part: what was lost before the part, after it, and by it."""
    names = parts_of(links)
    logs = rounds[list(LINKS)].to_numpy(dtype=float)
    start, end = ([LINKS.index(PARTS[name][side]) for name in names] for side in (0, 1))
    alone = logs[:, [LINKS.index(ALONE)]]
    table = rounds[[*GROUP, *ROUND]].take(np.repeat(np.arange(len(rounds)), len(names)))
    return table.assign(
        part=np.tile(np.array(names, dtype=object), len(rounds)),
        before=(alone - logs[:, start]).ravel(),
        after=(alone - logs[:, end]).ravel(),
        difference=(logs[:, start] - logs[:, end]).ravel(),
    )


def _points(differences: pd.DataFrame) -> pd.DataFrame:
    """By part the points of the rate alone between its two ends, 100 (exp -before - exp -after), with intervals.

    Both ends vary between launches, and together: the intervals are those of the points' linear part (delta method). A
    part that begins at alone has one end alone, so that its interval is that of the log, as it is for the loss itself.
    """
    centre = launch_means(differences, _PART, ["before", "after"])[["before", "after"]]
    points = lost(centre["after"]) - lost(centre["before"])
    slopes = 100 * np.exp(-differences[_PART].join(centre, on=_PART)[["before", "after"]])
    linear = slopes["after"] * differences["after"] - slopes["before"] * differences["before"]
    own = estimate(differences.assign(difference=linear), by=_PART)
    exact = estimate(differences, by=_PART)
    from_alone = [PARTS[part][0] == ALONE for part in own.index.get_level_values("part")]
    ends = {
        name: np.where(from_alone, lost(exact[name]), points + own[name] - own["mean"])
        for name in ("low", "high", "within_low", "within_high")
    }
    return pd.DataFrame({"points": points} | {f"points_{name}": end for name, end in ends.items()})


# Under which partition lead and antagonists of a mix count as isolated: named, the only one, or chosen.
#
# A choice is made on two fifths of the launches, drawn by the launches' own seeds, and the others estimate: the
# partition that looks best does so partly by luck, and on the launches that chose it the luck would be counted as cache
# capacity.

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
    has too separate nobody, and neither do masks that members fill past.
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
        if isolates(partition, mix) and found.get((mix.name, partition.name)) not in (SHARED, BEYOND)
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
    # What each partition gives back in each launch, from the rounds that have all it takes.
    both = under.merge(several, on=GROUP).merge(known, on=[*LEAD_OF_MIX, "partition"]).merge(bare, on=[*GROUP, *ROUND])
    both = both[both[[ALONE, ISOLATED, TOGETHER]].notna().all(axis=1)]
    both["gain"] = both[ISOLATED] - both[TOGETHER]
    gains = of_each_launch(both, [*GROUP, "partition"], ["gain"])
    gains = gains.merge(choosing(gains, plan.launches), on=[*GROUP, *LAUNCH])
    chosen = several.merge(best_of(gains, known), on=GROUP, how="left").assign(how=CHOSEN)
    partitions = pd.concat([lone, chosen], ignore_index=True)[[*GROUP, *FOUND]]
    return partitions, gains.loc[gains["choosing"], [*GROUP, *LAUNCH]].drop_duplicates()


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
