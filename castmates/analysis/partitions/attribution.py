"""Plan and windows -> the table of attribution: what each lead's loss is due to, in parts that add up."""

import math
from collections.abc import Collection

import pandas as pd

from castmates.analysis.core import adjusted, declared, in_order, only_platform
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.verdicts import effect_verdicts
from castmates.analysis.keys import LEAD_OF_MIX
from castmates.analysis.partitions import attribution_parts
from castmates.analysis.partitions.attribution_parts import (
    AT_MASK,
    CHAINS,
    DETAILS,
    FEWEST_TO_CHOOSE,
    GROUP,
    ISOLATED,
    PARTS,
    PLACEBO,
    TOGETHER,
    TOTAL,
    isolating,
    separating,
)
from castmates.analysis.partitions.held import States
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, columns_of, lost
from castmates.analysis.statistics.pairs import planned
from castmates.results.columns.study import ATTRIBUTION
from castmates.study.spec import UNMANAGED, Plan

_COUNTS = ["launches", "rounds", "candidates", "launches_choosing"]
_TEXTS = ["partition", "how", "start", "end"]


def estimate_attribution(
    plan: Plan,
    windows: pd.DataFrame,
    margin: float,
    isolated: str | None = None,
    effects: pd.DataFrame | None = None,
    held: States | None = None,
) -> pd.DataFrame:
    """A row per active mix, part and platform; `total` alone where nothing was measured yet.

    `isolated` is the isolating partition that the study names; one is chosen for each mix where it names none. Of the
    table of effects, the flag on a lead's scene goes to the parts that begin or end there. `held` is what the processor
    held under partitions, where that was read.
    """
    contrasts = mix_contrasts(plan)
    own = planned(windows, plan)
    bare, under = attribution_parts.rounds(own, attribution_parts.linked_scenes(contrasts))
    partitions, choosing = isolating(plan, bare, under, isolated, held)
    whole = attribution_parts.complete(bare, under, partitions, choosing)
    table = _with_silent_ones(attribution_parts.estimated(whole), contrasts, own)
    table = table.merge(partitions, on=GROUP, how="left").merge(
        whole[[*GROUP, "chain"]].drop_duplicates(), on=GROUP, how="left"
    )
    uncertain = _uncertain(plan, held)
    table["note"] = _notes(table, isolated, {place[: len(LEAD_OF_MIX)] for place in uncertain})
    apart = table["chain"].isin([number for number, links in enumerate(CHAINS) if ISOLATED in links])
    table.loc[~apart, ["partition", "how"]] = ""
    table.loc[~apart, "launches_choosing"] = 0
    table["note"] = _doubted(table, uncertain)
    table = table.fillna(dict.fromkeys(_COUNTS, 0) | dict.fromkeys(_TEXTS, ""))
    table["p_holm"] = adjusted(table, "platform", "part")
    table["verdict"] = effect_verdicts(table, margin)
    table["possibly_biased"] = _biased(table, effects) if effects is not None else False
    return _columns(_ordered(table, contrasts), plan)


def _biased(table: pd.DataFrame, effects: pd.DataFrame) -> pd.Series:
    """Whether the co-run at either end of a part was rejected more often than some baseline of it."""
    flagged = effects[(effects["role"] == "lead") & effects["possibly_biased"]]
    scenes = pd.MultiIndex.from_frame(flagged[[*GROUP, "partition"]])
    together, apart = (
        pd.MultiIndex.from_frame(table[GROUP].assign(partition=partition)).isin(scenes)
        for partition in (UNMANAGED, table["partition"])
    )
    isolated = (table["start"] == ISOLATED) | (table["end"] == ISOLATED)
    return ((table["end"] == TOGETHER) & together) | (isolated & apart)


def _with_silent_ones(table: pd.DataFrame, contrasts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """A row also for a mix without a complete round: on the platform of all others if they have but one, else on ''."""
    mixes = contrasts.loc[contrasts["antagonists"] != "", LEAD_OF_MIX].drop_duplicates()
    silent = mixes.merge(table[LEAD_OF_MIX].drop_duplicates(), on=LEAD_OF_MIX, how="left", indicator=True)
    silent = silent.loc[silent["_merge"] == "left_only", LEAD_OF_MIX]
    silent = silent[silent["member"].isin(contrasts.loc[contrasts["role"] == "lead", "member"])]
    return pd.concat([table, silent.assign(part=TOTAL, platform=only_platform(windows))], ignore_index=True)


def _uncertain(plan: Plan, held: States | None) -> set[tuple[object, ...]]:
    """The partitions, by mix and lead, of which it is uncertain whether they separate the members."""
    table = separating(plan, held)
    return set(table.loc[table["uncertain"], [*LEAD_OF_MIX, "partition"]].itertuples(index=False, name=None))


def _doubted(table: pd.DataFrame, uncertain: Collection[tuple[object, ...]]) -> list[str]:
    """The notes, with a remark where the study names a partition under which the processor may join ways."""
    places = table[[*LEAD_OF_MIX, "partition"]].itertuples(index=False, name=None)
    remarks = [
        f"under {place[-1]} lead and antagonists may share ways, because the processor may join those of I/O"
        if place in uncertain
        else ""
        for place in places
    ]
    return ["; ".join(filter(None, both)) for both in zip(table["note"], remarks, strict=True)]


def _notes(table: pd.DataFrame, named: str | None, uncertain: Collection[tuple[object, ...]]) -> list[str]:
    """Which parts could not be separated, and why; "" where nothing is missing."""
    mixes = table[LEAD_OF_MIX].itertuples(index=False, name=None)
    rows = zip(table["chain"], table["partition"], table["candidates"], table["launches"], strict=True)
    return [_note(*row, named, mix in uncertain) for mix, row in zip(mixes, rows, strict=True)]


def _note(
    chain: float, partition: object, candidates: float, launches: float, named: str | None, uncertain: bool
) -> str:
    if math.isnan(chain):
        return "no round has a valid window both alone and beside the antagonists"
    links, missing = CHAINS[int(chain)], []
    if PLACEBO not in links:
        missing.append("too few rounds have a valid window beside placebos")
    if ISOLATED not in links:
        missing.append(_why_not_isolated(partition, candidates, launches, named, uncertain))
    elif PLACEBO in links and AT_MASK not in links:
        missing.append(f"too few rounds have a valid window beside placebos under {partition}")
    return "; ".join(missing)


def _why_not_isolated(partition: object, candidates: float, launches: float, named: str | None, uncertain: bool) -> str:
    if not candidates > 0:
        if named:
            return f"{named}, which the study names, separates no members in this mix"
        if uncertain:
            return "only masks that cut through the ways of I/O separate them, and the processor may join these ways"
        return "no partition gives the lead and its antagonists separate ways"
    if isinstance(partition, str):
        return f"too few rounds are complete under {partition}"
    needed = FEWEST_TO_CHOOSE + FEWEST_LAUNCHES
    if launches >= needed:
        return f"too few launches have complete rounds under any of {int(candidates)} partitions"
    return (
        f"to choose one of {int(candidates)} partitions takes {needed} launches, {FEWEST_TO_CHOOSE} that choose and "
        f"{FEWEST_LAUNCHES} others that estimate; the study may name one instead (attribution.isolated)"
    )


def _ordered(table: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """In the order of the plan's mixes and of the parts, with who plays and the ways that the lead has."""
    lead = contrasts[contrasts["role"] == "lead"]
    who = lead.drop_duplicates(LEAD_OF_MIX).reset_index(drop=True).reset_index(names="place")
    ways = lead[[*LEAD_OF_MIX, "partition", "lead_ways"]].drop_duplicates([*LEAD_OF_MIX, "partition"])
    whole = table.merge(who[[*LEAD_OF_MIX, "place", "lead", "antagonists"]], on=LEAD_OF_MIX)
    whole = whole.merge(ways, on=[*LEAD_OF_MIX, "partition"], how="left")
    ranks = {part: number for number, part in enumerate(PARTS)}
    return in_order(whole, ["place", "platform", "part"], part=ranks).reset_index(drop=True)


def _columns(table: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    made = table.assign(
        part_of=table["part"].map(lambda part: "" if part == TOTAL else DETAILS.get(part, TOTAL)),
        **columns_of(table, "log"),
        **columns_of(table, "loss_pct", lost, ends="loss"),
        cache_ways=pd.Series(plan.cache.ways if plan.cache else None, index=table.index, dtype="Int64"),
    )
    return declared(made, ATTRIBUTION, plan)
