"""The geometric mean of the leads' slowdowns over the pairs that all studies have, and its ratio to the baseline's.

The pairs are fixed and no sample of others: an interval covers what varies between launches of exactly these pairs.
The mixes of one cohort share their launches, so a launch gives one value, the mean over them; cohorts are
independent of each other. A launch that lacks one of its pairs is left out.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from castmates.analysis.comparison.comparison import BOTH, Side
from castmates.analysis.comparison.launches import launch_means, questions
from castmates.analysis.core import declared
from castmates.analysis.effects.verdicts import comparison_verdicts
from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.intervals import columns_of, holm, ratio
from castmates.analysis.statistics.welch import cohort_means, summed
from castmates.results.columns.comparison import COMPARISON_MEANS
from castmates.results.columns.study import frame
from castmates.study.spec import UNMANAGED


def geometric_means(studies: Mapping[str, Side], margin: float) -> pd.DataFrame:
    """A row per study, the baseline first; p is adjusted over the other studies.

    Empty where the studies have no pair in common. A study with numbers of several platforms has no mean.
    """
    losses = pd.concat({letter: _losses(side) for letter, side in studies.items()}, names=["letter"]).reset_index()
    known = losses.groupby("mix")["letter"].nunique()
    pairs = known.index[known == len(studies)]
    if pairs.empty:
        return frame([], COMPARISON_MEANS)
    shared = losses[losses["mix"].isin(pairs)]
    platforms = shared.groupby("letter")["platform"].unique().map(lambda names: names[0] if len(names) == 1 else "")
    parts = cohort_means(shared[shared["letter"].map(platforms) != ""], ["letter"])
    own = summed(parts, ["letter"]).reindex(list(studies))
    first = next(iter(studies))
    table = pd.DataFrame({"letter": list(studies), "platform": [platforms[letter] for letter in studies]})
    table = table.assign(pairs=len(pairs), launches=own["launches"].fillna(0).to_numpy())
    table = table.assign(**columns_of(own.reset_index(drop=True), "slowdown", ratio))
    return _judged(table, _differences(parts, first, list(studies)[1:]), margin)


def difference_of_means(first: pd.DataFrame, second: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """`second` minus `first`, group by group, from the cohorts' parts of both."""
    return summed(pd.concat([second, first.assign(mean=-first["mean"])]), by)


def _losses(side: Side) -> pd.DataFrame:
    """What each launch shows of each lead beside its antagonists against alone, without a partition."""
    asked = questions(side.plan)
    wanted = (asked["role"] == "lead") & (asked["baseline"] == "alone") & (asked["partition"] == UNMANAGED)
    pairs = asked.loc[wanted & (asked["antagonists"] != ""), ["mix"]]
    launches = launch_means(side.plan, side.windows).reset_index()
    return launches.merge(pairs, left_on="row", right_index=True)[["mix", "platform", *LAUNCH, "loss"]]


def _differences(parts: pd.DataFrame, first: str, others: Sequence[str]) -> pd.DataFrame:
    """Each other study's mean minus the baseline's, by letter."""
    by_letter = parts.reset_index()
    ours = by_letter[by_letter["letter"] == first]
    repeated = pd.concat([ours.assign(letter=letter) for letter in others])
    theirs = by_letter[by_letter["letter"].isin(others)]
    return difference_of_means(repeated, theirs, ["letter"])


def _judged(table: pd.DataFrame, differences: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Ratios to the baseline's mean, and their verdicts; none across platforms."""
    baseline = table.iloc[0]
    compared = (table.index > 0) & (table["platform"] == baseline["platform"]) & (table["platform"] != "")
    logs = differences.reindex(table["letter"]).set_axis(table.index)
    table = table.assign(**{name: logs[name].where(compared) for name in ("mean", "low", "high", "p_value")})
    table = table.assign(**columns_of(table, "ratio", ratio))
    table["p_holm"] = holm(table["p_value"])
    sides = {"where": BOTH, "platform_a": baseline["platform"], "platform_b": table["platform"]}
    # The number of launches of all cohorts does not show whether each has enough for an interval.
    counted = table["launches"].where(table["slowdown_low"].notna(), table["launches"].clip(upper=1))
    counts = {"launches_a": counted.iloc[0], "launches_b": counted}
    words = pd.Series(comparison_verdicts(table.assign(**sides, **counts), margin), index=table.index)
    table["verdict"] = words.where(table.index > 0, "baseline")
    return declared(table, COMPARISON_MEANS)
