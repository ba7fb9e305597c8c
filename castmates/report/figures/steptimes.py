"""The figure `steptimes`: how the step times of each lead are distributed alone and beside others."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from castmates.analysis.explanations.evolution import COLUMNS, QUANTILES, Launches, launch_quantiles
from castmates.report.figures.antagonists import BASELINES, BESIDE, antagonists, beside, looks, user_first
from castmates.report.figures.marks import bar, dot, legend_key
from castmates.report.figures.sheet import Sheet, drawing
from castmates.report.figures.style import COLUMN, GREY, PAGE, SMALL, Look, broken
from castmates.report.results import Results, records
from castmates.report.text.latency import of_steps
from castmates.report.text.words import Quantity, counted, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "How long steps take", "part": "losses", "place": 60}
PANELS = 6  # leads: more are higher than a page
LAUNCHES = 8  # of a lead that are drawn
DRAWN = {"corun": 5, "placebo": 2}  # of a lead, without partitions: those with the largest change of the median
POINTS = 80  # of a bold line
SHOWN = ["study", "member", "scene", "what", "cohort", "launch", "share", "ms", "low", "high", "steps", "launches"]
SHOWN += ["refused", "platform"]
SAID = 6  # leads that the alternative text names
Row = dict[str, Any]
CURVES, LINE, GAP = 1.35, 0.085, 0.07  # inches: the distributions, a mark of the quantiles, between two quantiles
LEFT, RIGHT, HEAD, FOOT, SPACE = 0.5, 0.1, 0.32, 0.42, 0.14  # around a panel
WIDE = 2.5  # the largest over the smallest time, above which the axis is logarithmic
SHARES = [0.005, 0.01, 0.02, 0.05, *(round(0.1 * tenth, 1) for tenth in range(1, 10)), 0.95, 0.98, 0.99, 0.995]
TICKS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Curve:
    """A lead's steps in one scene."""

    label: str
    scene: str
    launches: pd.DataFrame  # a row per launch that is drawn
    values: np.ndarray  # their quantiles in ms, a row per launch
    pooled: np.ndarray  # time and share
    marks: list[dict[str, Any]]  # rows of the table of latencies


@dataclass(frozen=True)
class Panel:
    """A lead on one platform."""

    title: str
    member: str
    platform: str
    step: str  # what it covers: step, 4096 load
    curves: list[Curve]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the quantiles with their intervals, then the lines."""
    panels = _panels(results)
    return drawing(results, _source(results, panels), lacking, lambda: _figure(panels, results))


def lacking(results: Results) -> str:
    if _leads(results):
        return ""
    return f"No lead of the study {results.name} completed two steps in a valid window, so no step has a length."


def caption(results: Results) -> str:
    leads = _leads(results)
    known = of_steps(results)[of_steps(results)["role"] == "lead"]
    most = int((known["launches"] + known["launches_few"]).max()) if len(known) else 0
    some = f"faint: each of at most {LAUNCHES} launches" if most > LAUNCHES else "faint: each launch"
    left = f" {PANELS} of {counted(len(leads), 'lead')} are shown." if len(leads) > PANELS else ""
    of = units(known.loc[known["refused"] == "", "launches"])
    some_of = " Of many antagonists and placebos, those that change the median most are drawn." * _chosen(known)
    refused = sorted({str(name) for name in known.loc[known["refused"] != "", "quantile"]})
    few = f" Where {' or '.join(refused)} is missing, there are too few steps for it." if refused else ""
    return (
        f"Above: the share of a lead's steps that take no longer; {some}, bold: all together. Below: median, p95 "
        f"and p99 with 95 % t intervals between launches ({of}).{few}{some_of}{left} "
    )


def _chosen(known: pd.DataFrame) -> bool:
    """Whether some lead has more scenes of a kind than are drawn."""
    medians = known[(known["quantile"] == next(iter(QUANTILES))) & (known["partition"] == UNMANAGED)]
    counts = Counter(zip(medians["member"], medians["platform"], medians["kind"], strict=True))
    return any(count > DRAWN.get(kind, count) for (_, _, kind), count in counts.items())


def alternative(results: Results) -> str:
    leads = _leads(results)
    parts = []
    for member, platform in leads[:SAID]:
        rows = _conditions(results, member, platform)
        labels = _labels(rows)
        times = [f"{labels[row['scene']]} {Quantity.of(row, 'ms', digits=3)}" for row in rows]
        parts.append(f"{plain(member)}: {', '.join(times)}")
    more = f"; and {len(leads) - SAID} more leads" if len(leads) > SAID else ""
    return f"Median step time in ms: {'; '.join(parts)}{more}." if parts else lacking(results)


def _leads(results: Results) -> list[tuple[str, str]]:
    """Members and platforms with a median without a partition: the user's programs, then those of the controls."""
    table = of_steps(results)
    known = table[(table["role"] == "lead") & (table["partition"] == UNMANAGED) & table["ms"].notna()]
    order = user_first(results, known["member"])
    return sorted(set(zip(known["member"], known["platform"], strict=True)), key=lambda one: (order.index(one[0]), one))


def _conditions(results: Results, member: str, platform: str) -> list[Row]:
    """The rows of the median in the scenes that are drawn: the baselines, then the co-runs that change it most."""
    table = of_steps(results)
    own = table[(table["member"] == member) & (table["platform"] == platform) & (table["partition"] == UNMANAGED)]
    own = own[(own["quantile"] == next(iter(QUANTILES))) & own["ms"].notna()]
    change = own["ratio"].where(own["ratio"] > 0, 1.0).map(math.log).abs()
    order = own.loc[change.sort_values(ascending=False, kind="stable").index]
    kept = {
        str(scene) for kind, most in DRAWN.items() for scene in order.loc[order["kind"] == kind, "scene"].head(most)
    }
    shown = [row for row in records(own) if row["kind"] not in DRAWN or row["scene"] in kept]
    places = {name: place for place, name in enumerate(antagonists(results))}
    return sorted(shown, key=lambda row: (row["kind"] == "corun", places.get(beside(row["mix"]), len(places))))


def _figure(panels: Sequence[Panel], results: Results) -> Figure:
    """A panel per lead, two beside each other: distributions above, quantiles with their intervals below."""
    across = min(2, len(panels))
    sheet = Sheet(results, PAGE if across > 1 else COLUMN, head=0.0)
    looks, room = _looks(panels, results), sheet.width / across
    for begin in range(0, len(panels), across):
        row = panels[begin : begin + across]
        columns = [(column * room + LEFT, room - LEFT - RIGHT) for column in range(len(row))]
        above = sheet.beside(CURVES, *columns, above=HEAD)
        sheet.skip(SPACE)
        for upper, column, panel in zip(above, columns, row, strict=True):
            high = len(QUANTILES) * (LINE * len(panel.curves) + GAP)
            lower = sheet.at(column[0], sheet.top, column[1], high, sharex=upper)
            _curves(upper, panel, looks, room)
            _marks(lower, panel, looks)
            _limits(upper, lower, panel)
        sheet.skip(len(QUANTILES) * (LINE * max(len(panel.curves) for panel in row) + GAP) + FOOT)
    sheet.legend([legend_key(label, look, size=3.5, line="-", width=1.3) for label, look in looks.items()])
    return sheet.finish()


def _labels(rows: list[Row]) -> dict[str, str]:
    """By scene: what it is called; placebos by their CPUs where there are several."""
    placebos = sum(row["kind"] == "placebo" for row in rows)
    labels = {}
    for row in rows:
        label = f"beside {beside(row['mix'])}" if row["kind"] == "corun" else row["kind"]
        on = f" on {row['scene'].partition(':')[2]}" if row["kind"] == "placebo" and placebos > 1 else ""
        labels[row["scene"]] = f"{label}{on}"
    return labels


def _panels(results: Results) -> list[Panel]:
    leads = _leads(results)[:PANELS]
    shapes = _shapes(results, leads)
    panels = []
    for member, platform in leads:
        table = of_steps(results)[(of_steps(results)["member"] == member) & (of_steps(results)["platform"] == platform)]
        curves, rows = [], _conditions(results, member, platform)
        drawn = table[table["scene"].isin([row["scene"] for row in rows]) & (table["refused"] == "")]
        # A quantile that one scene alone has steps enough for compares nothing.
        alone = [name for name, count in drawn["quantile"].value_counts().items() if count == 1 < len(rows)]
        for row, label in zip(rows, _labels(rows).values(), strict=True):
            lines = shapes[(shapes["member"] == member) & (shapes["platform"] == platform)]
            lines = lines[lines["scene"] == row["scene"]]
            values = lines[[str(share) for share in SHARES]].to_numpy(dtype=float)
            marks = records(table[(table["scene"] == row["scene"]) & ~table["quantile"].isin(alone)])
            curves.append(Curve(label, str(row["scene"]), lines, values, pooled(values), marks))
        several = len({platform for _, platform in leads}) > 1
        step = str(row["unit"]) if row["units"] == 1 else f"{row['units']:,.0f} {row['unit']}s"
        panels.append(Panel(f"{plain(member)}{f' ({platform})' if several else ''}", member, platform, step, curves))
    return panels


def pooled(values: np.ndarray) -> np.ndarray:
    """Times and shares of the launches' mean distribution, each with the same weight."""
    if not len(values):
        return np.empty((0, 2))
    times = np.geomspace(values.min(), values.max(), POINTS)
    shares = [np.interp(times, quantiles, SHARES, left=0.0, right=1.0) for quantiles in values]
    return np.column_stack([times, np.mean(shares, axis=0)])


def _shapes(results: Results, leads: list[tuple[str, str]]) -> pd.DataFrame:
    """A row per launch and scene of the leads that are drawn: the quantiles of its steps."""
    own = results.windows[(results.windows["role"] == "lead") & results.windows["valid"]]
    own = own[(own["beats"] > 1) & own["member"].isin([member for member, _ in leads])]
    launches = own.drop_duplicates(["member", "cohort", "launch"]).sort_values(["member", "cohort", "launch"])
    place = launches.groupby("member").cumcount().to_numpy()
    count = launches.groupby("member")["launch"].transform("size").to_numpy()
    every = np.maximum((count - 1) / (LAUNCHES - 1), 1)
    drawn = launches[(np.round(np.round(place / every) * every) == place)]
    only = {(str(cohort), int(launch)) for cohort, launch in zip(drawn["cohort"], drawn["launch"], strict=True)}
    steps = results.launch_table("steps", only=only, columns=COLUMNS)
    cells = Launches.of(own)
    quantiles = launch_quantiles(steps, cells, SHARES)
    return cells.table.loc[quantiles["group"]].reset_index(drop=True).join(quantiles.drop(columns="group"))


def _source(results: Results, panels: list[Panel]) -> pd.DataFrame:
    """What is drawn, as rows: intervals, launches, and the launches together."""
    rows: list[Row] = []
    for panel in panels:
        for curve in panel.curves:
            head = {"study": results.name, "member": panel.member, "scene": curve.scene, "platform": panel.platform}
            for mark in curve.marks:
                numbers = {name: mark[name] for name in ("ms", "steps", "launches", "refused")}
                ends = {"low": mark["ms_low"], "high": mark["ms_high"], "share": QUANTILES[mark["quantile"]]}
                rows.append(head | numbers | ends | {"what": "interval"})
            for launch, values in zip(records(curve.launches), curve.values, strict=True):
                place = {name: launch[name] for name in ("cohort", "launch", "steps")} | {"what": "launch"}
                rows += [head | place | {"share": share, "ms": ms} for share, ms in zip(SHARES, values, strict=True)]
            rows += [head | {"what": "together", "share": share, "ms": ms} for ms, share in curve.pooled.tolist()]
    return pd.DataFrame(rows, columns=SHOWN)


def _looks(panels: Sequence[Panel], results: Results) -> dict[str, Look]:
    """Colour and marker of every condition, the same in all panels: by the first word where there is no antagonist."""
    labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    beside = looks(results, [label.removeprefix(BESIDE) for label in labels if label.startswith(BESIDE)])
    without = {label: BASELINES[label.partition(" ")[0]] for label in labels if not label.startswith(BESIDE)}
    return without | {f"{BESIDE}{name}": look for name, look in beside.items()}


def _curves(axes: Axes, panel: Panel, looks: dict[str, Look], room: float) -> None:
    for curve in panel.curves:
        colour = looks[curve.label][0]
        for values in curve.values:
            axes.plot(values, SHARES, color=colour, linewidth=0.5, alpha=0.3, zorder=2)
        axes.plot(curve.pooled[:, 0], curve.pooled[:, 1], color=colour, linewidth=1.3, zorder=3)
    axes.set_ylim(0, 1.01)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    axes.set_ylabel("steps (%)", labelpad=1)
    axes.tick_params(axis="x", labelbottom=False)
    axes.set_title(broken(panel.title, int((room - 0.3) / 0.066)), loc="left", pad=4)


def _marks(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    place, middles = 0.0, []
    for turn, quantile in enumerate(QUANTILES):
        begin = place
        place += LINE * len(panel.curves) + GAP
        middles.append((begin + place) / 2)
        if turn % 2:
            axes.axhspan(begin, place, color="#f3f3f3", linewidth=0, zorder=0)
        marks = [
            (begin + GAP / 2 + LINE * (line + 0.5), curve, mark)
            for line, curve in enumerate(panel.curves)
            for mark in curve.marks
            if mark["quantile"] == quantile and not mark["refused"]
        ]
        for y, curve, mark in marks:
            ends = mark["ms_low"], mark["ms_high"]
            bar(axes, y, *ends, looks[curve.label][0], zorder=2)
            words = f"{panel.title}, {curve.label}, {quantile}: {Quantity(mark['ms'], *ends, 'ms', 2)}"
            dot(axes, mark["ms"], y, looks[curve.label], words, size=3, zorder=3)
        if not marks:
            axes.text(
                0.5, middles[-1], "too few steps", transform=axes.get_yaxis_transform(),
                ha="center", va="center", fontsize=SMALL, color=GREY,
            )  # fmt: skip
    axes.set_ylim(place, 0)
    axes.set_yticks(middles, list(QUANTILES))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"ms per {panel.step}", labelpad=1)


def _limits(upper: Axes, lower: Axes, panel: Panel) -> None:
    """One axis of time for both: all that is drawn of the lines and bars, in few ticks."""
    times = [curve.values.ravel() for curve in panel.curves]
    times += [np.array([m["ms"], m["ms_low"], m["ms_high"]], dtype=float) for c in panel.curves for m in c.marks]
    every = np.concatenate(times)
    every = every[np.isfinite(every) & (every > 0)]
    low, high = float(every.min()), float(every.max())
    if high / low < WIDE:
        room = 0.04 * (high - low) or 0.05 * high
        upper.set_xlim(low - room, high + room)
        lower.locator_params(axis="x", nbins=5)
        return
    room = (high / low) ** 0.04
    upper.set_xscale("log")
    upper.set_xlim(low / room, high * room)
    lower.xaxis.set_major_locator(FixedLocator(ticks(low, high)))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    lower.xaxis.set_minor_locator(NullLocator())


def ticks(low: float, high: float) -> list[float]:
    """At most six readable values on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in (TICKS, (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        values = [float(f"{step * 10.0**power:.3g}") for power in powers for step in steps]
        inside = [value for value in values if low <= value <= high]
        if len(inside) <= 6:
            return inside
    return inside[:: math.ceil(len(inside) / 6)]
