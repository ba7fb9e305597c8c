"""The figure `comparison`: what the leads lose in A and in B, and by how much their slowdowns differ.

Colour and marker are those of the antagonist; A, the baseline, is grey.
"""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.report.comparison.compared import Compared
from castmates.report.figures.antagonists import looks_in_order
from castmates.report.figures.panels import NOTE, Origin, finish, small_print
from castmates.report.figures.style import (
    GREY,
    INK,
    PAGE,
    Look,
    badge_room,
    broken,
    empty_figure,
    styled,
)
from castmates.report.figures.values import with_value
from castmates.report.results import records
from castmates.report.text.words import Row, as_loss, interval, number
from castmates.study.spec import UNMANAGED

ROWS = 24
ROW, LINE = 0.36, 0.125  # inches: a row, a line of its name
LEFT, BETWEEN, RIGHT = 1.75, 0.3, 1.15
SHIFTS = {"a": -0.17, "b": 0.17}  # of a row's height
BAND = "#dcebf5"


def draw(compared: Compared) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the leads of both, against alone."""
    source = pd.concat([compared.leads(partitioned=False), compared.leads(partitioned=True)], ignore_index=True)
    known = source[source["slowdown_a"].notna() & source["slowdown_b"].notna()]
    with styled():
        if known.empty:
            return empty_figure("A and B have no lead's loss against alone in common.", compared.origin), source
        return _figure(compared, _chosen(records(known)), len(known)), source


def _chosen(rows: Sequence[Row]) -> list[Row]:
    """All rows without a partition as far as they fit, and evenly spaced ones of the others."""
    first = [row for row in rows if row["partition_a"] == UNMANAGED][:ROWS]
    rest = [row for row in rows if row["partition_a"] != UNMANAGED]
    room = ROWS - len(first)
    if len(rest) <= room or not room:
        return first + rest[:room]
    return first + [rest[round(place * (len(rest) - 1) / max(1, room - 1))] for place in range(room)]


def _figure(compared: Compared, rows: list[Row], known: int) -> Figure:
    names = [_name(row) for row in rows]
    heights = [max(ROW, 0.08 + LINE * (name.count("\n") + 1)) for name in names]
    notes = small_print(PAGE, _key(compared, rows, known), Origin(compared.origin))
    head = 0.36 + badge_room(compared.origin, PAGE)
    foot = 0.5 + NOTE * len(notes)
    height = head + sum(heights) + foot
    width = (PAGE - LEFT - BETWEEN - RIGHT) / 2
    figure = Figure(figsize=(PAGE, height))
    panels = [
        figure.add_axes((left / PAGE, foot / height, width / PAGE, sum(heights) / height))
        for left in (LEFT, LEFT + width + BETWEEN)
    ]
    places = [sum(heights[:index]) + own / 2 for index, own in enumerate(heights)]
    for axes in panels:
        axes.set_ylim(sum(heights), 0)
        axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color="#e4e4e4", linewidth=0.5, zorder=0)
        axes.set_axisbelow(True)
    panels[0].set_yticks(places, names)
    panels[1].set_yticks([])
    looks = looks_in_order(compared.antagonists, [row["antagonists"] for row in rows])
    for place, row in zip(places, rows, strict=True):
        _losses(panels[0], place, row, looks[row["antagonists"]])
        _change(panels[1], place, row, looks[row["antagonists"]])
    _frame(panels, compared)
    return finish(figure, notes, Origin(compared.origin))


def _hollow(row: Row) -> bool:
    """Whether something of it is drawn without an interval."""
    names = ("slowdown_a", "slowdown_b", "ratio")
    return any(math.isnan(row[f"{name}_low"]) and not math.isnan(row[name]) for name in names)


def _name(row: Row) -> str:
    who = broken(f"{row['lead']} + {row['antagonists']}" if row["antagonists"] else row["lead"], 26)
    if row["partition_a"] == UNMANAGED:
        return who
    return f"{who}\n{broken('@' + row['partition_a'], 25)}" + ("" if row["masks"] == "same" else "*")


def _who(row: Row) -> str:
    beside = f" beside {row['antagonists'].replace('+', ' + ')}" if row["antagonists"] else ""
    return f"{row['lead']}{beside}" + ("" if row["partition_a"] == UNMANAGED else f" under {row['partition_a']}")


def _losses(axes: Axes, place: float, row: Row, look: Look) -> None:
    values = {letter: as_loss(row[f"slowdown_{letter}"]) for letter in SHIFTS}
    axes.plot(list(values.values()), [place, place], color="#c4c4c4", linewidth=1.0, zorder=1)
    for letter, shift in SHIFTS.items():
        colour, marker = GREY if letter == "a" else look[0], look[1]
        y = place + shift * ROW
        low, high = (as_loss(row[f"slowdown_{letter}_{end}"]) for end in ("low", "high"))
        if not math.isnan(low):
            axes.plot([low, high], [y, y], color=colour, linewidth=1.4, zorder=2)
        face = "white" if math.isnan(low) else colour
        (point,) = axes.plot(
            [values[letter]], [y], marker, color=colour, markerfacecolor=face, markersize=3.6, zorder=3
        )
        ends = "" if math.isnan(low) else f" {interval(low, high)}"
        with_value(point, f"{letter.upper()}, {_who(row)}: {number(values[letter])} %{ends}")


def _change(axes: Axes, place: float, row: Row, look: Look) -> None:
    colour, marker = look
    weight = "bold" if row["verdict"].startswith(("loses", "differs")) else "normal"
    axes.text(
        1.03, place, row["verdict"], transform=axes.get_yaxis_transform(), va="center", fontsize=6.8, color=INK,
        fontweight=weight,
    )  # fmt: skip
    low, value, high = (100 * (row[name] - 1) for name in ("ratio_low", "ratio", "ratio_high"))
    if not math.isnan(low):
        axes.plot([low, high], [place, place], color=colour, linewidth=1.4, zorder=2)
    if not math.isnan(value):
        face = colour if not math.isnan(low) else "white"
        (point,) = axes.plot([value], [place], marker, color=colour, markerfacecolor=face, markersize=3.6, zorder=3)
        ends = "" if math.isnan(low) else f" {interval(low, high)}"
        with_value(point, f"{_who(row)}: slowdown {number(value)} %{ends} above A's; {row['verdict']}")


def _frame(panels: list[Axes], compared: Compared) -> None:
    panels[1].axvspan(100 * (1 / (1 + compared.margin) - 1), 100 * compared.margin, color=BAND, linewidth=0, zorder=0)
    panels[0].set_xlabel("loss of the lead against alone (%)")
    panels[1].set_xlabel("slowdown in B above A's (%)")
    keys = [
        Line2D([], [], color=colour, label=f"{side.letter} ({' and '.join(side.platforms)}){how}")
        for side, colour, how in ((compared.a, GREY, ""), (compared.b, INK, ", in its antagonist's colour"))
    ]
    panels[0].legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.3)
    for axes in panels:
        axes.locator_params(axis="x", nbins=6)
        axes.margins(x=0.06)


def _key(compared: Compared, rows: list[Row], known: int) -> str:
    counts = [
        f"{min(values)} to {max(values)}" if min(values) != max(values) else f"{values[0]}"
        for values in ([int(row[f"launches_{letter}"]) for row in rows] for letter in SHIFTS)
    ]
    parts = [f"bars: 95 % between launches ({counts[0]} of A, {counts[1]} of B), on the right Welch's t over both"]
    parts.append(f"band: margin of ±{100 * compared.margin:.3g} %")
    parts += ["words: p < 0.05 after Holm's adjustment, or inside the margin"]
    parts += ["hollow: fewer than three launches, no interval"] if any(map(_hollow, rows)) else []
    parts += ["*: its masks are not the same in B"] if any(row["masks"] == "differ" for row in rows) else []
    parts += [f"{known - len(rows)} more rows are in the CSV"] if known > len(rows) else []
    sides = [f"{side.letter}: {' and '.join(side.platforms)}, study {side.name}" for side in (compared.a, compared.b)]
    return f"{'; '.join(parts)} · {' · '.join(sides)}"
