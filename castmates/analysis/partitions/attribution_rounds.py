"""The chain from alone to the unmanaged co-run: its scenes, and the rounds in which all of them were measured."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import PLACEBO_AT_MASK, WITHOUT_PARTITION
from castmates.analysis.keys import LAUNCH, LEAD_OF_MIX, MEMBER, ROUND
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES
from castmates.analysis.statistics.pairs import log_rates
from castmates.study.spec import UNMANAGED

ALONE, PLACEBO, AT_MASK, ISOLATED, TOGETHER = "alone", "placebo", PLACEBO_AT_MASK, "isolated", WITHOUT_PARTITION
LINKS = (ALONE, PLACEBO, AT_MASK, ISOLATED, TOGETHER)
# From the finest to the coarsest: what is missing is left out, and two parts become one.
CHAINS = (LINKS, (ALONE, PLACEBO, ISOLATED, TOGETHER), (ALONE, ISOLATED, TOGETHER), (ALONE, PLACEBO, TOGETHER),
          (ALONE, TOGETHER))  # fmt: skip

GROUP = [*LEAD_OF_MIX, "platform"]  # what a chain belongs to


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
    rates = log_rates(leads).merge(linked, on=MEMBER)
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
