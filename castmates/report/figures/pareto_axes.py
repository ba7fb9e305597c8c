"""Draws the panels of the figure `pareto`: points with their crosses, the frontier, the limit, labels that fit."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from castmates.analysis.partitions.pareto import CONFIRMED, SEARCH
from castmates.report.figures.panels import inches_of
from castmates.report.figures.style import ALARM, GREY, INK, SMALL, SMALL_LETTER
from castmates.report.figures.values import with_value
from castmates.report.text.recommendation import count_of
from castmates.report.text.words import counted, interval, number
from castmates.study.spec import UNMANAGED

FAINT, FRESH = "#c2c2c2", INK
TALL = 0.105  # inches of a label's line
EDGE = 0.05  # inches between the end of the axes and the arrow of a point beyond it
FEW, SQUEEZE = 4, 4  # one in so many may lie beyond the axes, where the others reach so many times less far
ROOM = 0.11  # of an axis to either side
LEAST_SPAN = 1.0  # points of a per cent: no closer view than this
Row = dict[str, Any]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Panel:
    """One mix."""

    title: str
    rows: list[Row]
    limit: float
    recommended: str
    colour: str  # of its antagonist: the frontier has it

    def of(self, stage: str) -> list[Row]:
        """What was found in the search, or confirmed."""
        return [row for row in self.rows if row["stage"] == stage]

    def kept_inside(self, row: Row) -> bool:
        """Whether the axes must reach so far, however far that is."""
        return bool(row["stage"] == CONFIRMED or row["partition"] == self.recommended)


def labels_of(rows: Iterable[Row]) -> dict[str, str]:
    """By partition: 6 ways, 9 MiB; its name where the lead has all ways, or as many under another partition."""
    search = {row["partition"]: row for row in rows}
    counts = Counter(count_of(row["lead_ways"]) for row in search.values())
    labels = {}
    for name, row in search.items():
        ways = count_of(row["lead_ways"])
        if name == UNMANAGED or math.isnan(ways):
            labels[name] = "no partition" if name == UNMANAGED else name
            continue
        size = "" if math.isnan(row["lead_bytes"]) else f", {row['lead_bytes'] / 2**20:.3g} MiB"
        labels[name] = (counted(int(ways), "way") if counts[ways] == 1 else name) + size
    return labels


def paint(axes: Axes, panel: Panel) -> None:
    """Draw a mix."""
    search, fresh = panel.of(SEARCH), {row["partition"]: row for row in panel.of(CONFIRMED)}
    frontier = sorted((row for row in search if row["frontier"]), key=lambda row: row["loss_pct"])
    words = labels_of(search)
    for row in search:
        _cross(axes, row, _colour(row, panel), 2 + bool(row["frontier"]))
    axes.plot(
        [row["loss_pct"] for row in frontier], [row["kept_pct"] for row in frontier], color=panel.colour, linewidth=0.8,
        drawstyle="steps-post", zorder=2,
    )  # fmt: skip
    for row in search:
        chosen = row["partition"] == panel.recommended
        point = axes.scatter(
            row["loss_pct"], row["kept_pct"], s=26 if chosen else 17, zorder=5.5 if chosen else 5, facecolors="white",
            marker="s" if row["partition"] == UNMANAGED else "o", edgecolors=INK if chosen else _colour(row, panel),
            linewidths=1.6 if chosen else 0.9,
        )  # fmt: skip
        with_value(point, _value(row, words))
    for name, row in fresh.items():
        _cross(axes, row, FRESH, 4)
        point = axes.scatter(row["loss_pct"], row["kept_pct"], s=22, marker="o", c=FRESH, linewidths=0, zorder=6)
        with_value(point, f"{_value(row, words)}, fresh launches")
        for before in (point for point in search if point["partition"] == name):
            axes.plot(
                [before["loss_pct"], row["loss_pct"]], [before["kept_pct"], row["kept_pct"]], color=FRESH,
                linewidth=0.7, linestyle=(0, (1, 1)), zorder=4,
            )  # fmt: skip
    axes.grid(color="#ececec", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    if not math.isnan(panel.limit):
        axes.axvline(panel.limit, color=ALARM, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.set_xlim(*_reach(panel, "loss"))
    axes.set_ylim(*_reach(panel, "kept"))
    # In steps of 1, 2 or 5: quarters have a digit more, for which there is no room beside the axis' name.
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    _arrows(axes, panel)
    _labels(axes, panel)


def _value(row: Row, words: dict[str, str]) -> str:
    """A partition's name, with what is lost and kept under it."""
    loss = f"{number(row['loss_pct'])} %" + (
        "" if math.isnan(row["loss_low"]) else f" {interval(row['loss_low'], row['loss_high'])}"
    )
    kept = f"{number(row['kept_pct'])} %" + (
        "" if math.isnan(row["kept_low"]) else f" {interval(row['kept_low'], row['kept_high'])}"
    )
    return f"{words.get(row['partition'], row['partition'])}: loses {loss}, antagonists keep {kept}"


def _reach(panel: Panel, name: str) -> tuple[float, float]:
    """The ends of an axis: all points inside with their intervals, and what must be on it anyway."""
    low, high = most_of([row[f"{name}_pct"] for row in panel.rows])
    inside = [row for row in panel.rows if panel.kept_inside(row) or low <= row[f"{name}_pct"] <= high]
    ends = [row[f"{name}_{end}"] for row in inside for end in ("pct", "low", "high")]
    known = [end for end in [*ends, panel.limit if name == "loss" else math.nan] if not math.isnan(end)]
    room = ROOM * (max(known) - min(known)) or LEAST_SPAN
    return min(known) - room, max(known) + room


def most_of(values: list[float]) -> tuple[float, float]:
    """The ends of the values without those few that would squeeze all others together; of all if there are none."""
    ordered, count = sorted(values), len(values)
    for fewer in range(1, count // FEW + 1):
        spans = ((ordered[begin + count - fewer - 1] - ordered[begin], begin) for begin in range(fewer + 1))
        span, begin = min(spans)
        if SQUEEZE * max(span, LEAST_SPAN) < ordered[-1] - ordered[0]:
            return ordered[begin], ordered[begin + count - fewer - 1]
    return ordered[0], ordered[-1]


def beyond(panel: Panel) -> list[Row]:
    """The points that lie beyond the axes, in either direction."""
    ends = {name: _reach(panel, name) for name in ("loss", "kept")}
    return [
        row for row in panel.rows
        if any(not low <= row[f"{name}_pct"] <= high for name, (low, high) in ends.items())
    ]  # fmt: skip


def _arrows(axes: Axes, panel: Panel) -> None:
    """Stand at the edge for the points beyond it."""
    left, (low, high) = axes.get_xlim()[0], axes.get_ylim()
    size = inches_of(axes)
    for row in beyond(panel):
        x, y = _place(axes, row, size)
        marker = "v" if row["kept_pct"] < low else "^" if row["kept_pct"] > high else ""
        marker = marker or ("<" if row["loss_pct"] < left else ">")
        colour = _colour(row, panel)
        axes.scatter(
            x / size[0], y / size[1], s=26, marker=marker, c=GREY if colour == FAINT else colour, linewidths=0,
            transform=axes.transAxes, zorder=6,
        )  # fmt: skip


def _colour(row: Row, panel: Panel) -> str:
    return panel.colour if row["frontier"] else INK if row["partition"] == UNMANAGED else FAINT


def _cross(axes: Axes, row: Row, colour: str, above: int) -> None:
    loss, kept = row["loss_pct"], row["kept_pct"]
    if not math.isnan(row["loss_low"]):
        axes.plot([row["loss_low"], row["loss_high"]], [kept, kept], color=colour, linewidth=0.8, zorder=above)
    if not math.isnan(row["kept_low"]):
        axes.plot([loss, loss], [row["kept_low"], row["kept_high"]], color=colour, linewidth=0.8, zorder=above)


def _labels(axes: Axes, panel: Panel) -> None:
    """What lies beyond, what is recommended, no partition, the frontier; what finds no free place has no label."""
    size, search, far = inches_of(axes), panel.of(SEARCH), [row["partition"] for row in beyond(panel)]
    taken = [_around(*_place(axes, row, size), 0.035) for row in panel.rows]
    lines = [box for row in panel.rows for box in _lines(axes, row, size)] + _limit(axes, panel, size)
    words = labels_of(search)
    ranks = {panel.recommended: 1, UNMANAGED: 2} | dict.fromkeys(far, 0)
    named = [row for row in search if row["frontier"] or row["partition"] in ranks]
    for row in sorted(named, key=lambda row: ranks.get(row["partition"], 3)):
        text, chosen = words[row["partition"]], row["partition"] == panel.recommended
        if row["partition"] in far:
            text += f" ({number(row['loss_pct'])}, {number(row['kept_pct'])})"
        width = SMALL_LETTER * len(text) * (1.1 if chosen else 1.0)
        free = [
            box for box in _beside(*_place(axes, row, size), width, size)
            if box[0] >= 0 and box[1] >= 0 and box[2] <= size[0] and box[3] <= size[1]
            and not any(_meet(box, other) for other in taken)
        ]  # fmt: skip
        if not free:
            continue
        box = min(free, key=lambda other: sum(_meet(other, line) for line in lines))  # the first of the best
        taken.append(box)
        axes.text(
            box[0] / size[0], box[1] / size[1], text, transform=axes.transAxes, fontsize=SMALL, va="bottom", ha="left",
            color=INK if chosen else GREY, fontweight="bold" if chosen else "normal", zorder=4.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.8},
        )  # fmt: skip


def _inches(axes: Axes, loss: float, kept: float, size: tuple[float, float]) -> tuple[float, float]:
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return (loss - left) / (right - left) * size[0], (kept - low) / (high - low) * size[1]


def _place(axes: Axes, row: Row, size: tuple[float, float]) -> tuple[float, float]:
    """Where a point is drawn in its axes, in inches: at the edge if it lies beyond."""
    x, y = _inches(axes, row["loss_pct"], row["kept_pct"], size)
    return min(max(x, EDGE), size[0] - EDGE), min(max(y, EDGE), size[1] - EDGE)


def _lines(axes: Axes, row: Row, size: tuple[float, float]) -> list[Box]:
    """The bars of a point's cross, in inches."""
    ends = [("loss_low", "kept_pct", "loss_high", "kept_pct"), ("loss_pct", "kept_low", "loss_pct", "kept_high")]
    lines = [
        (*_inches(axes, row[left], row[low], size), *_inches(axes, row[right], row[high], size))
        for left, low, right, high in ends
    ]
    return [box for box in lines if not any(map(math.isnan, box))]


def _limit(axes: Axes, panel: Panel, size: tuple[float, float]) -> list[Box]:
    if math.isnan(panel.limit):
        return []
    x, _ = _inches(axes, panel.limit, 0.0, size)
    return [(x, 0.0, x, size[1])]


def _around(x: float, y: float, reach: float) -> Box:
    return (x - reach, y - reach, x + reach, y + reach)


def _beside(x: float, y: float, width: float, size: tuple[float, float]) -> list[Box]:
    """Places of a label beside a point, the nearest first; above and below it is moved into the axes."""
    gap = 0.06
    middle = min(max(x - width / 2, 0.0), max(size[0] - width, 0.0))
    corners = [
        (x + gap, y + gap * 0.5),
        (x + gap, y - TALL - gap * 0.5),
        (x - width - gap, y + gap * 0.5),
        (x - width - gap, y - TALL - gap * 0.5),
        (middle, y + gap),
        (middle, y - TALL - gap),
    ]
    return [(left, bottom, left + width, bottom + TALL) for left, bottom in corners]


def _meet(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
