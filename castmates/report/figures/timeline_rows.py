"""What the figure `timeline` is made of: one representative launch's occupancy and bandwidth, windows and masks."""

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pandas as pd

from castmates.analysis.effects.contrasts import workloads_of
from castmates.report.figures.antagonists import beside
from castmates.report.results import Results
from castmates.study.node_classes import cache_of
from castmates.study.spec import UNMANAGED
from castmates.study.written import bytes_of

OCCUPANCY, BANDWIDTH = "llc_occupancy", "mbm_total"
MONITORS = ("resctrl", "pqos")
WINDOWS = 16  # whose watched slices are drawn, side by side
SHOWN = ["study", "cohort", "launch", "round", "window", "scene", "partition", "seconds", "settling", "member"]
SHOWN += ["metric", "value", "valid", "drawn", "platform"]
RULE = "of the first lead's launches the one with the median total rate"


@dataclass(frozen=True)
class Span:
    """The watched slice of a window on the figure's clock, in seconds; it settles from `switch` to `open`."""

    window: int
    what: str
    partition: str
    switch: float
    open: float
    close: float
    valid: bool
    masks: dict[str, int]  # member -> ways, where the kernel reported them
    changed: bool  # whether the masks are others than in the window before


@dataclass(frozen=True)
class Timeline:
    """What is drawn."""

    cohort: str
    launch: int
    of: int  # launches that it was chosen from
    round: int
    rounds: int
    left_out: int  # windows of the round that are not drawn
    members: list[str]  # the lead first
    spans: list[Span]
    source: pd.DataFrame

    @property
    def samples(self) -> pd.DataFrame:
        """The samples of the windows that are drawn."""
        return self.source[self.source["drawn"]]

    @property
    def period(self) -> float:
        """Seconds between two samples of a member, in the middle; NaN where there are none."""
        occupancy = self.source[self.source["metric"] == OCCUPANCY].sort_values("seconds")
        gaps = occupancy.groupby(["window", "member"])["seconds"].diff()
        return float(gaps.median())


def timeline(results: Results) -> Timeline | None:
    """The representative launch; None where no launch has samples of a monitor."""
    chosen = representative(results)
    if chosen is None:
        return None
    cohort, launch, of = chosen
    here = (results.windows["cohort"] == cohort) & (results.windows["launch"] == launch)
    windows = results.windows[here].sort_values(["window", "role"], ascending=[True, False])
    samples = results.launch_table("samples", [(cohort, launch)])
    samples = samples[samples["source"].isin(MONITORS) & samples["metric"].isin([OCCUPANCY, BANDWIDTH])]
    members = [name for name in dict.fromkeys(windows["member"]) if (samples["subject"] == name).any()]
    if not members:
        return None
    lead = windows.loc[windows["role"] == "lead", "member"].iloc[0]
    rounds = sorted(windows["round"].unique())
    middle = rounds[(len(rounds) - 1) // 2]
    watched = _watched(results.launch_table("slices", [(cohort, launch)]))
    numbers = [number for number in watched.index if number in set(windows.loc[windows["round"] == middle, "window"])]
    drawn = watched.loc[numbers[:WINDOWS]]
    return Timeline(
        cohort, launch, of, int(middle), len(rounds), len(numbers[WINDOWS:]),
        sorted(members, key=lambda name: name != lead), _spans(windows, drawn),
        _source(windows, samples[samples["subject"].isin(members)], watched, list(drawn.index)),
    )  # fmt: skip


def representative(results: Results) -> tuple[str, int, int] | None:
    """The launch that stands for the others, by a rule and not by eye, and of how many it is one."""
    leads = list(dict.fromkeys(results.effects["lead"]))
    rows = results.windows[results.windows["role"] == "lead"]
    mixes = set(results.effects["mix"])
    rows = rows[rows["valid"] & (rows["rate"] > 0)]
    names = workloads_of(rows["member"])
    for lead in leads:
        cohorts = list(dict.fromkeys(rows.loc[(names == lead) & rows["mix"].isin(mixes), "cohort"]))
        if cohorts:
            own = rows[rows["cohort"] == cohorts[0]]
            spent = own["progress_s"].where(own["offered"].notna(), own["units"] / own["rate"])  # services have no rate
            totals = own.assign(spent=spent).groupby("launch")[["units", "spent"]].sum()
            order = (totals["units"] / totals["spent"]).sort_values(kind="stable").index
            return cohorts[0], int(order[(len(order) - 1) // 2]), len(order)
    return None


def cache_bytes(results: Results, cohort: str) -> float | None:
    """The size of the last-level cache of this cohort with all its clusters, where that is known."""
    machines = {each.id: each.machine for each in results.plan.cohorts}
    cache = cache_of(results.plan, machines.get(cohort, ""))
    return cache.way_bytes * cache.ways * cache.clusters if cache and cache.way_bytes and cache.ways else None


def peak_bandwidth(results: Results) -> float | None:
    """Bytes that the memory moves in a second at most, where that is known."""
    stated = results.machine.model.get("bandwidth")
    return float(bytes_of(stated)) if stated else None


def mask_of(schemata: str) -> int | None:
    """The ways of the first cache that a group may fill, with code or data; None where none were reported."""
    masks = re.findall(r"L3(?:CODE|DATA)?:\d+=([0-9a-f]+)", schemata)
    return reduce(or_, (int(mask, 16) for mask in masks)) if masks else None


def _watched(slices: pd.DataFrame) -> pd.DataFrame:
    """The edges of each window's watched slice, by window in order of time, on a clock that stops between them."""
    rows = slices[slices["watched"]].drop_duplicates("window").sort_values("slice")
    edges = rows.set_index("window")[["switch_ns", "open_ns", "close_ns"]].astype("int64")
    lasted = edges["close_ns"] - edges["switch_ns"]
    return edges.assign(begin_ns=edges["switch_ns"] - (lasted.cumsum() - lasted))


def _spans(windows: pd.DataFrame, watched: pd.DataFrame) -> list[Span]:
    spans: list[Span] = []
    before: tuple[str, dict[str, int]] | None = None
    start = int((watched["switch_ns"] - watched["begin_ns"]).min()) if len(watched) else 0
    for number, edges in watched.to_dict("index").items():
        rows = windows[windows["window"] == number]
        switch, opened, close = (
            (int(edges[name]) - int(edges["begin_ns"]) - start) / 1e9 for name in ("switch_ns", "open_ns", "close_ns")
        )
        first = rows.iloc[0]
        known = {name: mask_of(text) for name, text in zip(rows["member"], rows["schemata"].fillna(""), strict=True)}
        masks = {name: mask for name, mask in known.items() if mask is not None}
        now = (str(first["partition"]), masks)
        spans.append(
            Span(
                int(str(number)), _what(first), now[0], switch, opened, close, bool(rows["valid"].all()), masks,
                before is not None and _differ(before, now),
            )
        )  # fmt: skip
        before = now
    return spans


def _differ(before: tuple[str, dict[str, int]], now: tuple[str, dict[str, int]]) -> bool:
    """Another partition, or another mask of a member that ran in both windows."""
    return before[0] != now[0] or any(before[1].get(name, mask) != mask for name, mask in now[1].items())


def _what(row: "pd.Series[Any]") -> str:
    """What a window's scene is called on the figure."""
    kind, mix = str(row["kind"]), str(row["mix"])
    if kind == "corun":
        return f"beside {beside(mix)}"
    return f"{row['workload']} alone" if kind == "antagonist-alone" else kind


def _source(windows: pd.DataFrame, samples: pd.DataFrame, watched: pd.DataFrame, drawn: list[int]) -> pd.DataFrame:
    once = windows.groupby("window", as_index=False).agg(
        round=("round", "first"), scene=("scene", "first"), partition=("partition", "first"), valid=("valid", "all"),
    )  # fmt: skip
    rows = samples.rename(columns={"subject": "member"}).merge(once, on="window", how="inner")
    rows = rows.merge(watched[["open_ns", "begin_ns"]], left_on="window", right_index=True)
    first = watched.loc[drawn[0]] if drawn else None
    start = 0 if first is None else first["switch_ns"] - first["begin_ns"]
    rows["seconds"] = (rows["t_ns"] - rows["begin_ns"] - start) / 1e9
    rows["settling"] = rows["t_ns"] < rows["open_ns"]
    rows["drawn"] = rows["window"].isin(drawn)
    rows["partition"] = rows["partition"].fillna(UNMANAGED)
    return pd.DataFrame(rows[SHOWN].sort_values(["seconds", "member", "metric"], ignore_index=True, kind="stable"))
