"""The figure `pareto`: what the antagonists keep against what the lead loses; a panel per mix."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from castmates.analysis.partitions.recommendation import CONFIRMED, SEARCH
from castmates.report.figures.antagonists import looks, user_first
from castmates.report.figures.marks import bar, with_value
from castmates.report.figures.sheet import Room, Sheet, drawing, inches_of
from castmates.report.figures.style import ALARM, COLUMN, GREY, INK, PAGE, SMALL, SMALL_LETTER, broken
from castmates.report.results import Results, records
from castmates.report.text.recommendation import count_of
from castmates.report.text.words import Quantity, between_with_others, counted, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "What a share costs the others", "part": "recommendation", "place": 180, "needs": "PARTITIONS"}
MANY = 6  # panels, beyond which they are lower
FAINT, FRESH = "#c2c2c2", INK
TALL = 0.105  # inches of a label's line
EDGE = 0.05  # inches between the end of the axes and the arrow of a point beyond it
FEW, SQUEEZE = 4, 4  # one in so many may lie beyond the axes, where the others reach so many times less far
ROOM = 0.11  # of an axis to either side
LEAST_SPAN = 1.0  # points of a per cent: no closer view than this
Row = dict[str, Any]
Box = tuple[float, float, float, float]
FAR_IN_CAPTION = "A point far from all others is an arrow at the edge of the axes, with its numbers in brackets. "


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

    def reach(self, name: str) -> tuple[float, float]:
        """The ends of an axis: all points inside with their intervals, and what must be on it however far that is."""
        low, high = most_of([row[f"{name}_pct"] for row in self.rows])
        inside = [
            row for row in self.rows
            if low <= row[f"{name}_pct"] <= high
            or row["stage"] == CONFIRMED or row["partition"] == self.recommended
        ]  # fmt: skip
        ends = [row[f"{name}_{end}"] for row in inside for end in ("pct", "low", "high")]
        known = [end for end in [*ends, self.limit if name == "loss" else math.nan] if not math.isnan(end)]
        room = ROOM * (max(known) - min(known)) or LEAST_SPAN
        return min(known) - room, max(known) + room

    @property
    def beyond(self) -> list[Row]:
        """The points that lie beyond the axes, in either direction."""
        ends = {name: self.reach(name) for name in ("loss", "kept")}
        return [
            row for row in self.rows
            if any(not low <= row[f"{name}_pct"] <= high for name, (low, high) in ends.items())
        ]  # fmt: skip

    def colour_of(self, row: Row) -> str:
        """The frontier stands out."""
        return self.colour if row["frontier"] else INK if row["partition"] == UNMANAGED else FAINT


class Inches:
    """Places in axes, in inches from their lower left corner."""

    def __init__(self, axes: Axes) -> None:
        self.size = inches_of(axes)
        self._ends = axes.get_xlim(), axes.get_ylim()

    def at(self, loss: float, kept: float) -> tuple[float, float]:
        """Where this is."""
        x, y = (
            (value - low) / (high - low) * size
            for value, (low, high), size in zip((loss, kept), self._ends, self.size, strict=True)
        )
        return x, y

    def point(self, row: Row) -> tuple[float, float]:
        """Where a point is drawn: at the edge if it lies beyond."""
        x, y = (
            min(max(inch, EDGE), size - EDGE)
            for inch, size in zip(self.at(row["loss_pct"], row["kept_pct"]), self.size, strict=True)
        )
        return x, y

    def lines(self, row: Row) -> list[Box]:
        """The bars of a point's cross."""
        ends = [("loss_low", "kept_pct", "loss_high", "kept_pct"), ("loss_pct", "kept_low", "loss_pct", "kept_high")]
        lines = [(*self.at(row[left], row[low]), *self.at(row[right], row[high])) for left, low, right, high in ends]
        return [box for box in lines if not any(map(math.isnan, box))]

    def beside(self, x: float, y: float, width: float) -> list[Box]:
        """Free places of a label beside a point, the nearest first; above and below it is moved into the axes."""
        gap, (wide, high) = 0.06, self.size
        middle = min(max(x - width / 2, 0.0), max(wide - width, 0.0))
        sides = ((x + gap, gap / 2), (x - width - gap, gap / 2), (middle, gap))
        corners = [(left, bottom) for left, away in sides for bottom in (y + away, y - TALL - away)]
        return [
            (left, bottom, left + width, bottom + TALL) for left, bottom in corners
            if left >= 0 and bottom >= 0 and left + width <= wide and bottom + TALL <= high
        ]  # fmt: skip


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.pareto, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    return "" if _panels(results) else f"No partition of a mix is known in the study {results.name}."


def _panels(results: Results) -> list[Panel]:
    rows = records(results.pareto)
    platforms = {row["platform"] for row in rows}
    advice_of = {(row["mix"], row["platform"]): row for row in records(results.recommendations)}
    panels = []
    lead = {row["mix"]: row["lead"] for row in rows}
    order = user_first(results, lead.values())
    mixes = dict.fromkeys((row["mix"], row["platform"]) for row in rows)
    for key in sorted(mixes, key=lambda pair: order.index(lead[pair[0]])):
        own = [row for row in _known(rows) if (row["mix"], row["platform"]) == key]
        if not any(row["partition"] != UNMANAGED for row in own):
            continue
        advised = advice_of.get(key)
        title = f"{plain(own[0]['lead'])} beside {plain(own[0]['antagonists'])}"
        title += f" ({key[1]})" if len(platforms) > 1 else ""
        limit = advised["limit_pct"] if advised else math.nan
        met = advised["partition"] if advised and advised["verdict"] == "met" else ""
        colour = looks(results, [own[0]["antagonists"]])[own[0]["antagonists"]][0]
        panels.append(Panel(title, own, limit, met, colour))
    return panels


def _known(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not (math.isnan(row["loss_pct"]) or math.isnan(row["kept_pct"]))]


def _figure(panels: list[Panel], results: Results) -> Figure:
    many = len(panels) > MANY
    room = Room(axes=1.4 if many else 2.1, above=0.12, below=0.34, left=0.72 if many else 0.58, right=0.12)
    sheet = Sheet(results, COLUMN if len(panels) == 1 else PAGE)
    for axes, panel in zip(sheet.grid([broken(panel.title, 44) for panel in panels], room), panels, strict=False):
        _panel(axes, panel)
    beside = "rate that the\nneighbours keep (%)" if many else "rate that the antagonists keep (%)"
    sheet.labels("loss of the lead (%)", beside)
    return sheet.finish(_key(panels, between_with_others(results.effects)))


def _key(panels: list[Panel], level: str) -> str:
    rows = [row for panel in panels for row in panel.rows]
    crossed = any(not math.isnan(row["loss_low"]) for row in rows)
    parts = [f"crosses: 95 % {level}" if crossed else "no crosses: too few launches for intervals"]
    parts += ["hollow: as found in the search; grey: dominated; stairs: the frontier; square: no partition"]
    parts += ["filled: fresh launches"] if any(row["stage"] == CONFIRMED for row in rows) else []
    parts += ["arrow: beyond the axes, with its loss and what is kept"] if any(panel.beyond for panel in panels) else []
    limits = [panel.limit for panel in panels if not math.isnan(panel.limit)]
    parts += [f"dashed: the limit of {limits[0]:g} %"] if limits else []
    parts += ["bold: recommended"] if any(panel.recommended for panel in panels) else []
    return "; ".join(parts)


def caption(results: Results) -> str:
    fresh = bool((results.pareto["stage"] == CONFIRMED).any())
    panels = _panels(results)
    rows = [row for panel in panels for row in panel.rows]
    of = units(row["launches"] for row in rows)
    crossed = any(not math.isnan(row["loss_low"]) for row in rows)
    level = between_with_others(results.effects)
    how = f"Crosses are 95 % t intervals {level}" if crossed else "There are too few launches for intervals"
    return (
        "What the antagonists keep of their rate alone (mean over them) against what the lead loses, under each "
        f"partition and without one. {how} ({of}). What stands out in a search does so partly by luck: "
        + ("filled points are fresh launches of a separate study. " if fresh else "no point is confirmed yet. ")
        + (FAR_IN_CAPTION if any(panel.beyond for panel in panels) else "")
    )


def alternative(results: Results) -> str:
    """The frontier in words."""
    rows = _known(records(results.pareto))
    parts = []
    for mix in list(dict.fromkeys(row["mix"] for row in rows))[:6]:
        every = [row for row in rows if row["mix"] == mix]
        names = labels_of(every)
        own = [row for row in every if row["stage"] == SEARCH and row["frontier"]]
        points = [_told(row, names) for row in sorted(own, key=lambda row: row["loss_pct"])[:5]]
        fresh = [f"; confirmed {_told(row, names)}" for row in every if row["stage"] == CONFIRMED]
        parts.append(f"{plain(mix)}: frontier {', '.join(points)}{''.join(fresh)}")
    return f"Loss of the lead against what the antagonists keep. {'. '.join(parts)}." if parts else "Nothing is known."


def _told(row: Row, names: dict[str, str]) -> str:
    return (
        f"{names[row['partition']]}: loss {Quantity.of(row, 'loss_pct', '%').whole}, "
        f"kept {Quantity.of(row, 'kept_pct', '%').whole}"
    )


def _panel(axes: Axes, panel: Panel) -> None:
    """Draw a mix: points with their crosses, the frontier, the limit, labels that fit."""
    search, fresh = panel.of(SEARCH), {row["partition"]: row for row in panel.of(CONFIRMED)}
    frontier = sorted((row for row in search if row["frontier"]), key=lambda row: row["loss_pct"])
    words = labels_of(search)
    stairs = [row["loss_pct"] for row in frontier], [row["kept_pct"] for row in frontier]
    axes.plot(*stairs, color=panel.colour, linewidth=0.8, drawstyle="steps-post", zorder=2)
    for row in search:
        _cross(axes, row, panel.colour_of(row), 2 + bool(row["frontier"]))
        chosen = row["partition"] == panel.recommended
        point = axes.scatter(
            row["loss_pct"], row["kept_pct"], s=26 if chosen else 17, zorder=5.5 if chosen else 5, facecolors="white",
            marker="s" if row["partition"] == UNMANAGED else "o", linewidths=1.6 if chosen else 0.9,
            edgecolors=INK if chosen else panel.colour_of(row),
        )  # fmt: skip
        with_value(point, _value(row, words))
        if after := fresh.get(row["partition"]):
            way = [row["loss_pct"], after["loss_pct"]], [row["kept_pct"], after["kept_pct"]]
            axes.plot(*way, color=FRESH, linewidth=0.7, linestyle=(0, (1, 1)), zorder=4)
    for row in fresh.values():
        _cross(axes, row, FRESH, 4)
        point = axes.scatter(row["loss_pct"], row["kept_pct"], s=22, marker="o", c=FRESH, linewidths=0, zorder=6)
        with_value(point, f"{_value(row, words)}, fresh launches")
    axes.grid(color="#ececec", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    if not math.isnan(panel.limit):
        axes.axvline(panel.limit, color=ALARM, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.set_xlim(*panel.reach("loss"))
    axes.set_ylim(*panel.reach("kept"))
    # In steps of 1, 2 or 5: quarters have a digit more, for which there is no room beside the axis' name.
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    inches = Inches(axes)
    _arrows(axes, panel, inches)
    _labels(axes, panel, inches)


def _cross(axes: Axes, row: Row, colour: str, above: int) -> None:
    bar(axes, row["kept_pct"], row["loss_low"], row["loss_high"], colour, width=0.8, zorder=above)
    bar(axes, row["loss_pct"], row["kept_low"], row["kept_high"], colour, width=0.8, upright=True, zorder=above)


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


def _value(row: Row, words: dict[str, str]) -> str:
    """A partition's name, with what is lost and kept under it."""
    loss, kept = (Quantity.of(row, name, "%") for name in ("loss_pct", "kept_pct"))
    return f"{words.get(row['partition'], row['partition'])}: loses {loss}, antagonists keep {kept}"


def _arrows(axes: Axes, panel: Panel, inches: Inches) -> None:
    """Stand at the edge for the points beyond it."""
    left, (low, high) = axes.get_xlim()[0], axes.get_ylim()
    for row in panel.beyond:
        (x, y), (wide, tall) = inches.point(row), inches.size
        marker = "v" if row["kept_pct"] < low else "^" if row["kept_pct"] > high else ""
        marker = marker or ("<" if row["loss_pct"] < left else ">")
        colour = GREY if panel.colour_of(row) == FAINT else panel.colour_of(row)
        axes.scatter(
            x / wide, y / tall, s=26, marker=marker, c=colour, linewidths=0, transform=axes.transAxes, zorder=6
        )


def _labels(axes: Axes, panel: Panel, inches: Inches) -> None:
    """What lies beyond, what is recommended, no partition, the frontier; what finds no free place has no label."""
    search, far, near = panel.of(SEARCH), [row["partition"] for row in panel.beyond], 0.035
    points = [inches.point(row) for row in panel.rows]
    taken = [(x - near, y - near, x + near, y + near) for x, y in points]
    lines = [box for row in panel.rows for box in inches.lines(row)]
    if not math.isnan(panel.limit):
        x, _ = inches.at(panel.limit, 0.0)
        lines.append((x, 0.0, x, inches.size[1]))
    words = labels_of(search)
    ranks = {panel.recommended: 1, UNMANAGED: 2} | dict.fromkeys(far, 0)
    named = [row for row in search if row["frontier"] or row["partition"] in ranks]
    for row in sorted(named, key=lambda row: ranks.get(row["partition"], 3)):
        text, chosen = words[row["partition"]], row["partition"] == panel.recommended
        if row["partition"] in far:
            text += f" ({number(row['loss_pct'])}, {number(row['kept_pct'])})"
        width = SMALL_LETTER * len(text) * (1.1 if chosen else 1.0)
        places = inches.beside(*inches.point(row), width)
        free = [box for box in places if not any(_meet(box, other) for other in taken)]
        if not free:
            continue
        box = min(free, key=lambda other: sum(_meet(other, line) for line in lines))  # the first of the best
        taken.append(box)
        axes.text(
            box[0] / inches.size[0], box[1] / inches.size[1], text, transform=axes.transAxes, fontsize=SMALL,
            va="bottom", ha="left", color=INK if chosen else GREY, fontweight="bold" if chosen else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.8}, zorder=4.5,
        )  # fmt: skip


def _meet(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def most_of(values: list[float]) -> tuple[float, float]:
    """The ends of the values without those few that would squeeze all others together; of all if there are none."""
    ordered, count = sorted(values), len(values)
    for fewer in range(1, count // FEW + 1):
        spans = ((ordered[begin + count - fewer - 1] - ordered[begin], begin) for begin in range(fewer + 1))
        span, begin = min(spans)
        if SQUEEZE * max(span, LEAST_SPAN) < ordered[-1] - ordered[0]:
            return ordered[begin], ordered[begin + count - fewer - 1]
    return ordered[0], ordered[-1]
