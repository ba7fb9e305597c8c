"""The figure `pareto`: what the antagonists keep against what the lead loses; a panel per mix."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from castmates.analysis.frontier import CONFIRMED, SEARCH
from castmates.report.panels import Grid, drawn_grid, inches_of
from castmates.report.read import Results, records
from castmates.report.recommendation import count_of
from castmates.report.stamps import caveat
from castmates.report.style import ALARM, COLOURS, COLUMN, GREY, INK, broken, empty_figure, plain, stamp, styled
from castmates.report.words import interval, number
from castmates.study.spec import UNMANAGED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAINT, LINE, FRESH = "#c2c2c2", COLOURS[0], COLOURS[1]
LETTER, TALL = 0.055, 0.105  # inches of a label's letter and line
Row = dict[str, Any]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Panel:
    """One mix."""

    title: str
    rows: list[Row]
    limit: float
    recommended: str


def draw(results: Results) -> "tuple[Figure, pd.DataFrame]":
    """The figure and its source data."""
    source = results.pareto
    with styled():
        panels = _panels(records(source), records(results.recommendations))
        if not panels:
            message = f"No partition of a mix with an antagonist is known in the study {results.name}."
            return empty_figure(message, caveat(results)), source
        return _figure(panels, results), source


def _panels(rows: list[Row], advice: list[Row]) -> list[Panel]:
    platforms = {row["platform"] for row in rows}
    found = {(row["mix"], row["platform"]): row for row in advice}
    panels = []
    for key in dict.fromkeys((row["mix"], row["platform"]) for row in rows):
        own = [row for row in rows if (row["mix"], row["platform"]) == key and _known(row)]
        if not any(row["partition"] != UNMANAGED for row in own):
            continue
        advised = found.get(key)
        title = f"{plain(own[0]['lead'])} beside {plain(own[0]['antagonists'])}"
        title += f" ({key[1]})" if len(platforms) > 1 else ""
        limit = advised["limit_pct"] if advised else math.nan
        met = advised["partition"] if advised and advised["verdict"] == "met" else ""
        panels.append(Panel(title, own, limit, met))
    return panels


def _known(row: Row) -> bool:
    return not (math.isnan(row["loss_pct"]) or math.isnan(row["kept_pct"]))


def _figure(panels: list[Panel], results: Results) -> "Figure":
    grid = drawn_grid(
        [broken(panel.title, 44) for panel in panels],
        notes=_key(panels, results),
        caveat=caveat(results),
        room=Grid(width=COLUMN, axes=2.1, above=0.12, below=0.34, left=0.58, right=0.12),
    )
    for axes, panel in zip(grid.places, panels, strict=False):
        _panel(axes, panel)
    grid.labels("loss of the lead against solo (%)", "rate that the antagonists keep (%)")
    return grid.figure


def _panel(axes: "Axes", panel: Panel) -> None:
    search = [row for row in panel.rows if row["stage"] == SEARCH]
    fresh = {row["partition"]: row for row in panel.rows if row["stage"] == CONFIRMED}
    frontier = sorted((row for row in search if row["frontier"]), key=lambda row: row["loss_pct"])
    for row in search:
        _cross(axes, row, _colour(row), 2 + bool(row["frontier"]))
    axes.plot(
        [row["loss_pct"] for row in frontier], [row["kept_pct"] for row in frontier], color=LINE, linewidth=0.8,
        drawstyle="steps-post", zorder=2,
    )  # fmt: skip
    for row in search:
        axes.scatter(
            row["loss_pct"], row["kept_pct"], s=17, marker="s" if row["partition"] == UNMANAGED else "o",
            facecolors="white", edgecolors=_colour(row), linewidths=0.9, zorder=5,
        )  # fmt: skip
    for name, row in fresh.items():
        _cross(axes, row, FRESH, 4)
        axes.scatter(row["loss_pct"], row["kept_pct"], s=22, marker="o", c=FRESH, linewidths=0, zorder=6)
        for before in (one for one in search if one["partition"] == name):
            axes.plot(
                [before["loss_pct"], row["loss_pct"]], [before["kept_pct"], row["kept_pct"]], color=FRESH,
                linewidth=0.7, linestyle=(0, (1, 1)), zorder=4,
            )  # fmt: skip
    axes.margins(x=0.1, y=0.12)
    axes.grid(color="#ececec", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    if not math.isnan(panel.limit):
        axes.axvline(panel.limit, color=ALARM, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    _labels(axes, panel, search)


def _colour(row: Row) -> str:
    return LINE if row["frontier"] else INK if row["partition"] == UNMANAGED else FAINT


def _cross(axes: "Axes", row: Row, colour: str, above: int) -> None:
    loss, kept = row["loss_pct"], row["kept_pct"]
    if not math.isnan(row["loss_low"]):
        axes.plot([row["loss_low"], row["loss_high"]], [kept, kept], color=colour, linewidth=0.8, zorder=above)
    if not math.isnan(row["kept_low"]):
        axes.plot([loss, loss], [row["kept_low"], row["kept_high"]], color=colour, linewidth=0.8, zorder=above)


def label_of(row: Row) -> str:
    """6 ways, 9 MiB; the partition's name where the lead has all ways."""
    if row["partition"] == UNMANAGED:
        return "no partition"
    if math.isnan(count_of(row["lead_ways"])):
        return str(row["partition"])
    size = "" if math.isnan(row["lead_bytes"]) else f", {row['lead_bytes'] / 2**20:.3g} MiB"
    return f"{row['lead_ways']} way{'s' * (row['lead_ways'] != 1)}{size}"


def _labels(axes: "Axes", panel: Panel, search: list[Row]) -> None:
    """What is recommended first, then no partition, then the frontier; a label that finds no free place is left out."""
    from matplotlib.patheffects import withStroke

    size = inches_of(axes)
    taken = [_point(axes, row, size) for row in panel.rows]
    order = sorted(
        (row for row in search if row["frontier"] or row["partition"] in (UNMANAGED, panel.recommended)),
        key=lambda row: (row["partition"] != panel.recommended, row["partition"] != UNMANAGED),
    )
    for row in order:
        text, chosen = label_of(row), row["partition"] == panel.recommended
        x, y, *_ = _point(axes, row, size, 0.0)
        width = LETTER * len(text) * (1.1 if chosen else 1.0)
        for left, bottom in _around(x, y, width):
            box = (left, bottom, left + width, bottom + TALL)
            if (
                box[0] < 0
                or box[2] > size[0]
                or box[1] < 0
                or box[3] > size[1]
                or any(_meet(box, one) for one in taken)
            ):
                continue
            taken.append(box)
            axes.text(
                left / size[0], bottom / size[1], text, transform=axes.transAxes, fontsize=6.5, va="bottom", ha="left",
                color=INK if chosen else GREY, fontweight="bold" if chosen else "normal", zorder=7,
                path_effects=[withStroke(linewidth=1.8, foreground="white")],
            )  # fmt: skip
            break


def _point(axes: "Axes", row: Row, size: tuple[float, float], around: float = 0.035) -> Box:
    """Where a point lies in its axes, in inches."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    x = (row["loss_pct"] - left) / (right - left) * size[0]
    y = (row["kept_pct"] - low) / (high - low) * size[1]
    return (x - around, y - around, x + around, y + around)


def _around(x: float, y: float, width: float) -> list[tuple[float, float]]:
    """Lower left corners of a label beside a point, the best first."""
    gap = 0.06
    return [
        (x + gap, y + gap * 0.5),
        (x + gap, y - TALL - gap * 0.5),
        (x - width - gap, y + gap * 0.5),
        (x - width - gap, y - TALL - gap * 0.5),
        (x - width / 2, y + gap),
        (x - width / 2, y - TALL - gap),
    ]


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _key(panels: list[Panel], results: Results) -> str:
    rows = [row for panel in panels for row in panel.rows]
    parts = ["crosses: 95 % between launches"] if any(not math.isnan(row["loss_low"]) for row in rows) else []
    parts += ["hollow: as found in the search; grey: dominated; stairs: the frontier; square: no partition"]
    parts += ["filled: fresh blocks"] if any(row["stage"] == CONFIRMED for row in rows) else []
    limits = [panel.limit for panel in panels if not math.isnan(panel.limit)]
    parts += [f"dashed: the limit of {limits[0]:g} %; bold: recommended"] if limits else []
    return f"{'; '.join(parts)} · {stamp(results.platforms, results.name)}"


def caption(results: Results) -> str:
    """What is shown, with the method of its intervals."""
    fresh = bool((results.pareto["stage"] == CONFIRMED).any())
    return (
        "Rate that the antagonists keep of theirs alone (mean over them) against what the lead loses against solo, "
        "under every measured partition of a mix and without one. Crosses are 95 % t intervals between launches. A "
        "partition is dominated if another loses less and keeps more, by the estimates. What stands out in a search "
        "does so partly by luck: "
        + ("filled points are fresh blocks of a study of their own. " if fresh else "no point is confirmed yet. ")
        + "Labels that would overlap are left out; the CSV has every partition. "
    )


def alternative(results: Results) -> str:
    """The frontier in words."""
    rows = [row for row in records(results.pareto) if _known(row)]
    parts = []
    for mix in list(dict.fromkeys(row["mix"] for row in rows))[:6]:
        own = [row for row in rows if row["mix"] == mix and row["stage"] == SEARCH and row["frontier"]]
        points = ", ".join(f"{label_of(row)}: {_told(row)}" for row in sorted(own, key=lambda row: row["loss_pct"])[:5])
        fresh = [row for row in rows if row["mix"] == mix and row["stage"] == CONFIRMED]
        told = "".join(f"; confirmed {label_of(row)}: {_told(row)}" for row in fresh)
        parts.append(f"{plain(mix)}: frontier {points}{told}")
    return f"Loss of the lead against what the antagonists keep. {'. '.join(parts)}." if parts else "Nothing is known."


def _told(row: Row) -> str:
    return (
        f"loss {number(row['loss_pct'])} % {interval(row['loss_low'], row['loss_high'])}, kept "
        f"{number(row['kept_pct'])} % {interval(row['kept_low'], row['kept_high'])}"
    )
