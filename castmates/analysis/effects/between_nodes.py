"""Launches on several nodes of one class: does an effect differ between nodes, and what is its interval then?

The test is an analysis of variance of the launches' means by node, in which nodes are a random sample of their class:
its F distribution is exact where launches of all nodes scatter alike. docs/methodology.md has the simulated coverage.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import special

from castmates.analysis.statistics.intervals import BLOCK, Floats, quantile, two_sided

# Below this p-value nodes are the units of the interval. A test at 5 % misses differences that are large enough to
# spoil an interval over launches: a preliminary test has to be lenient.
LENIENT = 0.25
ROUNDING = 1e-24  # of a sum of squares of logarithms
LAUNCHES, NODES = "launches", "nodes"


def hosts_of(windows: pd.DataFrame) -> pd.Series:
    """The host of every launch that has windows, by company and block."""
    return windows.drop_duplicates(list(BLOCK)).set_index(list(BLOCK))["host"].astype("object")


def between_nodes(values: pd.DataFrame, hosts: pd.Series, by: Sequence[str]) -> pd.DataFrame:
    """A row per group of `per_launch`: how many nodes it has, whether they differ, and the interval over nodes."""
    launches = values.reset_index()
    launches["host"] = hosts.reindex(pd.MultiIndex.from_frame(launches[list(BLOCK)])).to_numpy()
    launches["whole"] = launches.groupby(list(by), observed=True)["value"].transform("mean")
    nodes = launches.groupby([*by, "host"], observed=True).agg(
        mean=("value", "mean"), size=("value", "size"), var=("value", "var"), whole=("whole", "first")
    )
    nodes["within"] = nodes["var"].fillna(0.0) * (nodes["size"] - 1)
    nodes["between"] = nodes["size"] * (nodes["mean"] - nodes["whole"]) ** 2
    groups = nodes.groupby(list(by), observed=True).agg(
        nodes=("size", "size"),
        launches=("size", "sum"),
        mean=("mean", "mean"),
        spread=("mean", "std"),
        within=("within", "sum"),
        between=("between", "sum"),
    )
    return _tested(groups)


def _tested(groups: pd.DataFrame) -> pd.DataFrame:
    count, launches = groups["nodes"].to_numpy(dtype=float), groups["launches"].to_numpy(dtype=float)
    between, within = (groups[name].to_numpy(dtype=float) for name in ("between", "within"))
    mean, several = groups["mean"].to_numpy(dtype=float), count > 1
    error = np.where(several, groups["spread"].to_numpy(dtype=float), np.nan) / np.sqrt(count)
    freedom = np.where(several, count - 1, np.nan)
    half = quantile(freedom) * error
    return pd.DataFrame(
        {
            "nodes": groups["nodes"],
            "nodes_p": _p_of_f(between, count - 1, within, launches - count),
            "nodes_log": mean,
            "nodes_low": mean - half,
            "nodes_high": mean + half,
            "nodes_p_value": two_sided(mean, error, freedom),
        },
        index=groups.index,
    )


def _p_of_f(between: Floats, of_between: Floats, within: Floats, of_within: Floats) -> Floats:
    """The chance of such a ratio of mean squares where nodes do not differ; NaN where there is nothing to compare."""
    known = (of_between > 0) & (of_within > 0)
    upper, lower = (np.where(known, freedom, np.nan) for freedom in (of_between, of_within))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (between / upper) / (within / lower)
    ratio = np.where(between < ROUNDING, 0.0, ratio)
    return np.where(known, np.asarray(special.fdtrc(upper, lower, ratio), dtype=float), np.nan)


def over_nodes(table: pd.DataFrame, found: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The estimates, over nodes where these may differ: the mean of the nodes' means with nodes as units."""
    keys = pd.MultiIndex.from_frame(table[list(by)])
    known = found.reindex(keys).reset_index(drop=True)
    differ = (known["nodes_p"] < LENIENT).to_numpy(dtype=bool)
    columns = {"log": "nodes_log", "log_low": "nodes_low", "log_high": "nodes_high", "p_value": "nodes_p_value"}
    replaced = {
        name: np.where(differ, known[own].to_numpy(dtype=float), table[name].to_numpy(dtype=float))
        for name, own in columns.items()
    }
    return table.assign(
        **replaced,
        nodes=known["nodes"].fillna(0).to_numpy(dtype="int64"),
        nodes_p=known["nodes_p"].to_numpy(dtype=float),
        over=np.where(differ, NODES, LAUNCHES),
    )
