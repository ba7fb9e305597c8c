"""The figure `timeline`: the members' cache occupancy and memory bandwidth over time, with the masks that were set."""

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from castmates.analysis.core import once
from castmates.analysis.effects.contrasts import workloads_of
from castmates.report.figures.antagonists import beside
from castmates.report.figures.antagonists import looks as looks_of
from castmates.report.figures.marks import legend_key
from castmates.report.figures.sheet import Sheet, drawing, inches_of
from castmates.report.figures.style import COLUMN, GREY, INK, PAGE, SMALL, squeezed
from castmates.report.results import Results
from castmates.report.text.words import counted, number, plain
from castmates.study import masks
from castmates.study.node_classes import cache_of
from castmates.study.spec import UNMANAGED
from castmates.study.written import bytes_of

FIGURE = {"title": "Occupancy and bandwidth over time", "part": "why", "place": 210, "needs": "MONITOR"}


# What the figure `timeline` is made of: one representative launch's occupancy and bandwidth, windows and masks.

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
    for window, edges in watched.to_dict("index").items():
        rows = windows[windows["window"] == window]
        switch, opened, close = (
            (int(edges[name]) - int(edges["begin_ns"]) - start) / 1e9 for name in ("switch_ns", "open_ns", "close_ns")
        )
        first = rows.iloc[0]
        known = {name: mask_of(text) for name, text in zip(rows["member"], rows["schemata"].fillna(""), strict=True)}
        masks = {name: mask for name, mask in known.items() if mask is not None}
        now = (str(first["partition"]), masks)
        spans.append(
            Span(
                int(str(window)), _what(first), now[0], switch, opened, close, bool(rows["valid"].all()), masks,
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


FEW = 6  # windows that fit into one column
MASKS, LEVELS, RATES, BETWEEN, LEFT = 0.55, 1.25, 0.9, 0.1, 0.66  # inches: heights of the panels, what is around them
NAME, LINES = 22, 3  # letters and lines of a window's name
SHADE, LOST, WAIT = "#f1f1f1", "#f3dede", "#bdbdbd"
LEAD = "#8a8a8a"  # the program itself: colours are its antagonists'
MIB, GB = 2**20, 1e9
LIMIT, PEAK, HATCH = (0, (4, 2)), (0, (1, 1)), "//////"


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    chosen = _chosen(results)
    if chosen is None:
        return drawing(results, pd.DataFrame(columns=SHOWN), lacking, Figure)
    return drawing(results, chosen.source, lacking, lambda: _figure(chosen, results))


@once
def _chosen(results: Results) -> Timeline | None:
    return timeline(results)


def lacking(results: Results) -> str:
    none = f"No monitor of the cache left samples in the study {results.name} (castmates help rdt)."
    return none if _chosen(results) is None else ""


def caption(results: Results) -> str:
    chosen = _chosen(results)
    if chosen is None:
        return f"{lacking(results)} "
    some = f"the first {len(chosen.spans)} windows" if chosen.left_out else "all windows"
    return (
        f"One launch ({chosen.launch} of {chosen.of}), chosen by a rule and not by eye: {RULE}. {some.capitalize()} of "
        f"its middle round ({chosen.round} of {chosen.rounds}) side by side: the ways that each program may fill, what "
        "it holds of the last-level cache (stacked), and its bandwidth to memory; one launch, hence no interval. "
    )


def alternative(results: Results) -> str:
    chosen = _chosen(results)
    if chosen is None:
        return lacking(results)
    inside = chosen.samples[(chosen.samples["metric"] == OCCUPANCY) & ~chosen.samples["settling"]]
    means = inside.groupby("member")["value"].mean() / MIB
    parts = [f"{plain(name)} {number(float(means[name]))} MiB" for name in chosen.members if name in means]
    changes = sum(span.changed for span in chosen.spans)
    return (
        f"Occupancy and bandwidth over {counted(len(chosen.spans), 'window')} of one launch, with "
        f"{counted(changes, 'change')} of the masks; mean occupancy inside them: {', '.join(parts)}."
    )


def _figure(chosen: Timeline, results: Results) -> Figure:
    sheet = Sheet(results, COLUMN if len(chosen.spans) <= FEW else PAGE, head=0.2)
    labels = [_label(span) for span in chosen.spans]
    looks = dict.fromkeys(chosen.members[:1], LEAD)
    looks |= {name: look[0] for name, look in looks_of(results, chosen.members[1:]).items()}
    cache, peak = cache_bytes(results, chosen.cohort), peak_bandwidth(results)
    masked = any(span.masks for span in chosen.spans)
    panels: list[Axes] = []
    for high in [MASKS, LEVELS, RATES] if masked else [LEVELS, RATES]:
        first, above = (panels[0], BETWEEN) if panels else (None, 0.0)
        panels.append(sheet.panel(high, LEFT, 0.1, above=above, sharex=first))
    if masked:
        _masks(panels[0], chosen, looks)
    _levels(panels[-2], chosen, looks, cache)
    _rates(panels[-1], chosen, looks, peak)
    for axes in panels:
        _windows(axes, chosen.spans, last=axes is panels[-1])
    at = [span.switch for span in chosen.spans if span.changed]
    style: Any = {"color": INK, "linestyle": "", "clip_on": False, "transform": panels[0].get_xaxis_transform()}
    panels[0].plot(at, [1.06] * len(at), marker="v", markersize=3.5, **style)
    _names(panels[-1], chosen.spans, labels)
    panels[-1].set_xlim(chosen.spans[0].switch, chosen.spans[-1].close)
    sheet.skip(0.48 + 0.053 * max(len(line) for label in labels for line in label.split("\n")))
    sheet.legend(_keys(chosen, looks, masked, cache, peak), handlelength=1.6, handletextpad=0.8)
    parts = [f"a sample every {number(chosen.period, 2)} s"]
    parts += [f"{counted(chosen.left_out, 'more window')} of the round in the CSV"] if chosen.left_out else []
    parts += [] if peak else ["the peak bandwidth of this machine is not known"]
    return sheet.finish("; ".join(parts))


def _masks(axes: Axes, chosen: Timeline, looks: dict[str, str]) -> None:
    """The ways of each member in each window, side by side, so that shared ones show as shared."""
    for span in chosen.spans:
        there = [name for name in looks if name in span.masks]
        wide = (span.close - span.switch) / max(1, len(there))
        for index, name in enumerate(there):
            for run in masks.runs(span.masks[name]):
                ways = masks.positions(run)
                corner = (span.switch + (index + 0.1) * wide, ways[0])
                axes.add_patch(Rectangle(corner, 0.8 * wide, len(ways), facecolor=looks[name], linewidth=0, zorder=3))
    top = max(mask.bit_length() for span in chosen.spans for mask in span.masks.values())
    axes.set_ylim(0, top)
    axes.set_yticks([0, top])
    axes.set_ylabel("ways")


def _levels(axes: Axes, chosen: Timeline, looks: dict[str, str], size: float | None) -> None:
    samples = chosen.samples[chosen.samples["metric"] == OCCUPANCY]
    for span in chosen.spans:
        own = samples[samples["window"] == span.window]
        here = own.pivot_table(index="seconds", columns="member", values="value", dropna=False)
        # A missing sample of a member is a gap: a stack without one of its parts would be too low.
        here = here.reindex(columns=chosen.members).dropna() / MIB
        if len(here):
            colours = [looks[name] for name in chosen.members]
            axes.stackplot(here.index, here.T.to_numpy(), colors=colours, linewidth=0, zorder=2)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("occupancy\n(MiB)")
    if size is None:
        return
    axes.axhline(size / MIB, color=INK, linewidth=0.8, linestyle=LIMIT, zorder=4)
    ways = max((mask.bit_length() for span in chosen.spans for mask in span.masks.values()), default=0)
    for span in chosen.spans:
        if chosen.members[0] in span.masks:
            allowed = size / MIB / max(1, ways) * masks.popcount(span.masks[chosen.members[0]])
            for colour, width in (("white", 2.4), (INK, 1.2)):
                axes.plot([span.switch, span.close], [allowed] * 2, color=colour, linewidth=width, zorder=4)
    axes.set_ylim(0, 1.06 * size / MIB)


def _rates(axes: Axes, chosen: Timeline, looks: dict[str, str], peak: float | None) -> None:
    samples = chosen.samples[chosen.samples["metric"] == BANDWIDTH]
    style: Any = {"marker": "o", "markersize": 1.8, "linewidth": 1.0, "zorder": 3}
    for (_, member), here in samples.groupby(["window", "member"], sort=False):
        axes.plot(here["seconds"], here["value"] / GB, color=looks[str(member)], **style)
    if peak is not None:
        axes.axhline(peak / GB, color=GREY, linewidth=0.8, linestyle=PEAK, zorder=2)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("bandwidth\n(GB/s)")
    axes.set_xlabel("seconds", labelpad=1)


def _windows(axes: Axes, spans: list[Span], last: bool) -> None:
    for span in spans:
        if span.open > span.switch:
            axes.axvspan(span.switch, span.open, facecolor="none", edgecolor=WAIT, hatch=HATCH, linewidth=0, zorder=0)
        axes.axvspan(span.open, span.close, facecolor=SHADE if span.valid else LOST, linewidth=0, zorder=0)
        if span.changed:
            axes.axvline(span.switch, color=INK, linewidth=0.6, linestyle=(0, (2, 2)), zorder=1)
    axes.tick_params(labelbottom=last, bottom=last, pad=2)
    axes.yaxis.set_label_coords(-0.3 / inches_of(axes)[0], 0.5)


def _names(axes: Axes, spans: list[Span], labels: list[str]) -> None:
    """The scene of each window, below the axis of time."""
    down = 0.4 / inches_of(axes)[1]
    style: Any = {
        "rotation": 90,
        "ha": "center",
        "va": "top",
        "fontsize": SMALL,
        "transform": axes.get_xaxis_transform(),
    }
    for span, label in zip(spans, labels, strict=True):
        middle = (span.switch + span.close) / 2
        axes.text(middle, -down, label, linespacing=0.95, multialignment="right", **style)


def _keys(
    chosen: Timeline, looks: dict[str, str], masked: bool, size: float | None, peak: float | None
) -> list[Line2D | Patch]:
    short = {name: plain(name) for name in looks}
    names = {name: short[name] if list(short.values()).count(short[name]) == 1 else name for name in looks}
    keys: list[Line2D | Patch] = [Patch(facecolor=colour, label=names[name]) for name, colour in looks.items()]
    keys += [legend_key("the program's mask", (INK, ""), line="-", width=1.2)] if masked and size else []
    keys += [legend_key("cache size", (INK, ""), line=LIMIT, width=0.8)] if size else []
    keys += [legend_key("peak", (GREY, ""), line=PEAK, width=0.8)] if peak else []
    keys.append(Patch(facecolor="none", edgecolor=WAIT, hatch=HATCH, linewidth=0, label="settling"))
    keys.append(Patch(facecolor=SHADE, label="window"))
    keys += [] if all(span.valid for span in chosen.spans) else [Patch(facecolor=LOST, label="rejected")]
    changed = any(span.changed for span in chosen.spans)
    return keys + ([legend_key("masks change", (INK, "v"), size=3.5)] if changed else [])


def _label(span: Span) -> str:
    """What ran, and under which partition: of long names the begin and the end."""
    masked = span.partition not in ("", UNMANAGED)
    under = squeezed(span.partition, NAME, LINES - 1).split("\n") if masked else []
    return "\n".join([squeezed(plain(span.what), NAME, LINES - len(under)), *under])
