"""Launches on several nodes of one class: does an effect differ between nodes, and what is its interval then?

Whether nodes differ is tested by an analysis of variance of the launches' means by node. The interval does not depend
on that test: where it sees no difference there may still be one, and intervals that rely on it cover too little
(docs/methodology.md has the simulations). From three nodes on, nodes are the units, as launches are on one node. Two
nodes show next to nothing of their class: the interval then covers the mean of these two.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, Floats, quantile, two_sided

FEWEST_NODES = 3  # with two, one degree of freedom is left, as with two launches
ROUNDING = 1e-24  # of a sum of squares of logarithms
LAUNCHES, THESE_NODES, NODES = "launches", "launches of these nodes", "nodes"


def hosts_of(windows: pd.DataFrame) -> pd.Series:
    """The host of every launch that has windows, by cohort and launch."""
    return windows.drop_duplicates(LAUNCH).set_index(LAUNCH)["host"].astype("object")


def between_nodes(values: pd.DataFrame, hosts: pd.Series, by: Sequence[str]) -> pd.DataFrame:
    """A row per group of `per_launch`: how many nodes it has, whether they differ, and the interval over them."""
    launches = values.reset_index()
    launches["host"] = hosts.reindex(pd.MultiIndex.from_frame(launches[LAUNCH])).to_numpy()
    launches["whole"] = launches.groupby(list(by), observed=True)["value"].transform("mean")
    nodes = launches.groupby([*by, "host"], observed=True).agg(
        mean=("value", "mean"), size=("value", "size"), var=("value", "var"), whole=("whole", "first")
    )
    nodes["within"] = nodes["var"].fillna(0.0) * (nodes["size"] - 1)
    nodes["between"] = nodes["size"] * (nodes["mean"] - nodes["whole"]) ** 2
    nodes["inverse"] = 1 / nodes["size"]
    groups = nodes.groupby(list(by), observed=True).agg(
        nodes=("size", "size"),
        launches=("size", "sum"),
        mean=("mean", "mean"),
        spread=("mean", "std"),
        within=("within", "sum"),
        between=("between", "sum"),
        inverse=("inverse", "sum"),
    )
    return _tested(groups)


def _tested(groups: pd.DataFrame) -> pd.DataFrame:
    names = ("nodes", "launches", "mean", "spread", "within", "between", "inverse")
    count, launches, mean, spread, within, between, inverse = (groups[name].to_numpy(dtype=float) for name in names)
    inside = launches - count  # degrees of freedom of launches inside nodes
    many, two = count >= FEWEST_NODES, (count > 1) & (count < FEWEST_NODES)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_these = np.sqrt(within / inside * inverse) / count
    freedom = np.where(many, count - 1, np.where(two & (inside > 0), inside, np.nan))
    error = np.where(many, spread / np.sqrt(count), of_these)
    half = quantile(freedom) * error
    return pd.DataFrame(
        {
            "nodes": groups["nodes"],
            "nodes_p": _p_of_f(between, count - 1, within, inside),
            "over": np.select([many, two], [NODES, THESE_NODES], default=LAUNCHES),
            "nodes_mean": mean,
            "nodes_low": mean - half,
            "nodes_high": mean + half,
            "nodes_p_value": two_sided(mean, error, freedom),
            "nodes_freedom": freedom,
        },
        index=groups.index,
    )


def _p_of_f(between: Floats, of_between: Floats, within: Floats, of_within: Floats) -> Floats:
    """The chance of a ratio of mean squares as large, where nodes do not differ; NaN where nothing can be compared."""
    from scipy import special  # an estimate: `castmates show` only reads the words here

    known = (of_between > 0) & (of_within > 0)
    upper, lower = (np.where(known, freedom, np.nan) for freedom in (of_between, of_within))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (between / upper) / (within / lower)
    ratio = np.where(between < ROUNDING, 0.0, ratio)
    return np.where(known, np.asarray(special.fdtrc(upper, lower, ratio), dtype=float), np.nan)


def over_nodes(table: pd.DataFrame, found: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The estimates, where there are several nodes over these: the mean of the nodes' means, with its interval."""
    keys = pd.MultiIndex.from_frame(table[list(by)])
    known = found.reindex(keys).reset_index(drop=True)
    several = (known["nodes"] > 1).to_numpy(dtype=bool)
    columns = {"mean": "nodes_mean", "low": "nodes_low", "high": "nodes_high", "p_value": "nodes_p_value"}
    launches = table["launches"].to_numpy(dtype=float) - 1
    replaced = {
        name: np.where(several, known[own].to_numpy(dtype=float), table[name].to_numpy(dtype=float))
        for name, own in columns.items()
    }
    return table.assign(
        **replaced,
        nodes=known["nodes"].fillna(0).to_numpy(dtype="int64"),
        nodes_p=known["nodes_p"].to_numpy(dtype=float),
        over=known["over"].fillna(LAUNCHES).to_numpy(),
        freedom=np.where(
            table["launches"] < FEWEST_LAUNCHES,
            np.nan,
            np.where(several, known["nodes_freedom"].to_numpy(dtype=float), launches),
        ),
    )
