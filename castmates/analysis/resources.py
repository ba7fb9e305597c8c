"""What members used in their windows, where it was measured: each co-run against its baseline, paired inside rounds.

Cache occupancy and memory bandwidth come from a monitor's readings while a window was open, instructions per cycle and
misses per 1000 instructions from counted events, and level 1 of Top-Down from its shares of slots.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from castmates.analysis.contrasts import mix_contrasts
from castmates.analysis.counters import FULLY_COUNTED, IPC, PER_1000, USABLE, per_unit
from castmates.analysis.intervals import over_launches, per_launch, ratio
from castmates.analysis.pairs import planned
from castmates.analysis.system import BASELINES
from castmates.analysis.whole_launches import LAUNCH, Places, of_launches
from castmates.study.spec import Plan
from castmates.study.topdown_tree import of_level
from castmates.tables import RESOURCES, frame

OCCUPANCY, BANDWIDTH = "cache occupancy", "memory bandwidth"
READ = {"llc_occupancy": OCCUPANCY, "mbm_total": BANDWIDTH}  # a monitor's metrics
MONITORS = ("resctrl", "pqos")
LEVEL_1 = of_level(1)
UNITS = {OCCUPANCY: "bytes", BANDWIDTH: "bytes per second"} | dict.fromkeys(LEVEL_1, "per cent of slots")
# Of each table of a block: what is read of it here.
NEEDED = {
    "samples": ["company", "block", "window", "t_ns", "source", "subject", "metric", "value"],
    "counters": [
        "company",
        "block",
        "window",
        "member",
        "event",
        "value",
        "status",
        "running",
        "source",
        "phase",
        "platform",
    ],
    "topdown": ["company", "block", "window", "member", "metric", "value", "status", "running", "phase"],
}

_WINDOW = ["company", "block", "window", "member"]
_PLACE = ["platform", "company", "block", "round", "member", "metric"]
_ROW = ["row", "platform", "metric"]
SIDES = {"value": "value", "baseline": "value_baseline", "change": "change"}  # and the columns of the pairs


def resources(plan: Plan, windows: pd.DataFrame, parts: Iterable[Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """A row per co-run, member and metric that has a value in both windows of some round.

    `parts` are the blocks' tables (`NEEDED`), some blocks at a time.
    """
    contrasts = mix_contrasts(plan)
    contrasts = contrasts[contrasts["baseline"].isin(BASELINES)]
    own = planned(windows, plan)
    own = own[own["valid"]]
    launches = own.groupby(LAUNCH, sort=False).indices
    # Only what is known of each launch is kept: the values of all windows would not fit into memory.
    found = [known for known in (_launches(part, own, launches, contrasts) for part in parts) if known]
    if not found or contrasts.empty:
        return frame([], RESOURCES)
    return _table(plan, {name: pd.concat([known[name] for known in found]) for name in SIDES}, contrasts)


def _launches(
    part: Mapping[str, pd.DataFrame], windows: pd.DataFrame, launches: Places, contrasts: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Of each side of the pairs, a row per row of the table, metric and launch; nothing where there is no pair."""
    own = of_launches(windows, launches, part.values())
    values = in_windows(own, part)
    if values.empty or contrasts.empty:
        return {}
    pairs = _pairs(values.merge(own[[*_WINDOW, "platform", "round", "scene"]], on=_WINDOW), contrasts)
    if pairs.empty:
        return {}
    return {name: per_launch(pairs.assign(difference=pairs[column]), _ROW) for name, column in SIDES.items()}


def in_windows(windows: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A row per valid window, member and metric: its value there."""
    parts = [_read(windows, tables["samples"]), _counted(windows, tables["counters"]), _slots(tables["topdown"])]
    return pd.concat([part[[*_WINDOW, "metric", "value"]] for part in parts if len(part)] or [parts[0]])


def _read(windows: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """The mean of a monitor's readings while the window was open; a member may hold several caches."""
    read = samples[samples["metric"].isin(list(READ)) & samples["source"].isin(MONITORS)]
    read = read.rename(columns={"subject": "member"}).merge(windows[[*_WINDOW, "open_ns", "close_ns"]], on=_WINDOW)
    read = read[(read["t_ns"] >= read["open_ns"]) & (read["t_ns"] <= read["close_ns"])]
    looks = read.groupby([*_WINDOW, "metric", "t_ns"], observed=True)["value"].agg(["sum", "count", "size"])
    whole = looks.loc[looks["count"] == looks["size"], "sum"]  # a cache that was not read leaves the sum unknown
    means = whole.groupby([*_WINDOW, "metric"], observed=True).mean().rename("value").reset_index()
    return means.assign(metric=means["metric"].map(READ))


def _counted(windows: pd.DataFrame, counts: pd.DataFrame) -> pd.DataFrame:
    if counts.empty:
        return counts.assign(metric="")
    values = per_unit(counts, windows, ("lead", "antagonist"))
    return values[(values["metric"] == IPC) | values["metric"].str.endswith(PER_1000)]


def _slots(topdown: pd.DataFrame) -> pd.DataFrame:
    """The shares of level 1 that were counted for all of a window, in per cent."""
    counted = topdown["status"].isin(USABLE) & topdown["value"].notna() & ~(topdown["running"] < FULLY_COUNTED)
    rows = topdown[counted & (topdown["phase"] == "") & topdown["metric"].isin(LEVEL_1)]
    return rows.assign(value=100 * rows["value"])


def _pairs(values: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """Value and baseline of each round, and what becomes of them on the scale of their change."""
    where = ["company", "scene", "member"]
    scenes = values.merge(contrasts[["row", *where, "baseline_scene"]], on=where)
    bases = values.rename(columns={"scene": "baseline_scene"})[[*_PLACE, "baseline_scene", "value"]]
    both = scenes.merge(bases, on=[*_PLACE, "baseline_scene"], suffixes=("", "_baseline"))
    share = both["metric"].isin(LEVEL_1).to_numpy()
    both = both[share | ((both["value"] > 0) & (both["value_baseline"] > 0)).to_numpy()]
    share = both["metric"].isin(LEVEL_1).to_numpy()
    for name in ("value", "value_baseline"):
        one = both[name].to_numpy(dtype=float)
        both[name] = np.where(share, one, np.log(np.where(share, 1.0, one)))
    return both.assign(change=both["value"] - both["value_baseline"])


def _table(plan: Plan, launches: Mapping[str, pd.DataFrame], contrasts: pd.DataFrame) -> pd.DataFrame:
    estimates = {name: over_launches(values, _ROW) for name, values in launches.items()}
    table = estimates["change"][["blocks", "rounds"]].copy()
    share = table.index.get_level_values("metric").isin(LEVEL_1)
    for name, found in estimates.items():
        middle = "baseline_value" if name == "baseline" else name
        for column, part in ((middle, "log"), (f"{name}_low", "log_low"), (f"{name}_high", "log_high")):
            table[column] = found[part].where(share, ratio(found[part]))
    table = table.reset_index().merge(contrasts.drop_duplicates("row"), on="row")
    order = {name: place for place, name in enumerate([OCCUPANCY, BANDWIDTH, IPC])}
    order |= {name: 100 + place for place, name in enumerate(LEVEL_1)}
    table = table.assign(
        study=plan.study,
        unit=table["metric"].map(UNITS).fillna(""),
        scale=np.where(table["metric"].isin(LEVEL_1), "points", "ratio"),
        place=table["metric"].map(order).fillna(50),
    )
    table = table.sort_values(["row", "platform", "place", "metric"], kind="stable")
    return table[list(RESOURCES)].astype(dict(RESOURCES)).reset_index(drop=True)
