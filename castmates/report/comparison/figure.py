"""The figure `comparison`: what the leads lose in A and in B, and by how much their slowdowns differ.

Colour and marker are those of the antagonist; A, the baseline, is grey.
"""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.comparison.compared import Compared
from castmates.report.figures.antagonists import looks_in_order
from castmates.report.figures.marks import bar, dot, legend_key, with_ends
from castmates.report.figures.sheet import UNDER, Origin, Sheet, empty_figure, evenly, rows_of
from castmates.report.figures.style import GREY, INK, PAGE, Look, broken, styled
from castmates.report.results import records
from castmates.report.text.words import Row, as_loss
from castmates.study.spec import UNMANAGED

ROWS = 24
ROW, LINE = 0.36, 0.125  # inches: a row, a line of its name
LEFT, BETWEEN, RIGHT = 1.75, 0.3, 1.15
SHIFTS = {"a": -0.17, "b": 0.17}  # of a row's height
BAND = "#dcebf5"


def draw(compared: Compared) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the leads of both, against alone."""
    source = pd.concat([compared.leads(partitioned=False), compared.leads(partitioned=True)], ignore_index=True)
    known = records(source[source["slowdown_a"].notna() & source["slowdown_b"].notna()])
    with styled():
        if not known:
            return empty_figure("A and B have no lead's loss against alone in common.", compared.origin), source
        return _figure(compared, _chosen(known), len(known)), source


def _chosen(rows: Sequence[Row]) -> list[Row]:
    """All rows without a partition as far as they fit, and evenly spaced ones of the others."""
    first = [row for row in rows if row["partition_a"] == UNMANAGED][:ROWS]
    rest = [row for row in rows if row["partition_a"] != UNMANAGED]
    return first + evenly(rest, ROWS - len(first))


def _figure(compared: Compared, rows: list[Row], known: int) -> Figure:
    names = [_name(row) for row in rows]
    heights = [max(ROW, 0.08 + LINE * (name.count("\n") + 1)) for name in names]
    sheet = Sheet(Origin(compared.origin), head=0.36)
    losses, changes = pair_of_axes(sheet, LEFT, sum(heights), compared.margin)
    places = [sum(heights[:index]) + own / 2 for index, own in enumerate(heights)]
    losses.set_yticks(places, names)
    looks = looks_in_order(compared.antagonists, [row["antagonists"] for row in rows])
    for place, row in zip(places, rows, strict=True):
        look = looks[row["antagonists"]]
        values = [as_loss(row[f"slowdown_{letter}"]) for letter in SHIFTS]
        losses.plot(values, [place, place], color="#c4c4c4", linewidth=1.0, zorder=1)
        for (letter, shift), value in zip(SHIFTS.items(), values, strict=True):
            own = (GREY, look[1]) if letter == "a" else look
            ends = (as_loss(row[f"slowdown_{letter}_{end}"]) for end in ("low", "high"))
            certain_dot(losses, place + shift * ROW, (value, *ends), own, f"{letter.upper()}, {_who(row)}: {{}}")
        bold = row["verdict"].startswith(("loses", "differs"))
        verdict(changes, place, row["verdict"], INK, bold)
        low, value, high = (100 * (row[name] - 1) for name in ("ratio_low", "ratio", "ratio_high"))
        said = f"{_who(row)}: slowdown {{}} above A's; {row['verdict']}"
        certain_dot(changes, place, (value, low, high), look, said)
    losses.set_xlabel("loss of the lead against alone (%)")
    changes.set_xlabel("slowdown in B above A's (%)")
    sides = ((compared.a, GREY, ""), (compared.b, INK, ", in its antagonist's colour"))
    keys = [
        legend_key(f"{side.letter} ({' and '.join(side.platforms)}){how}", (colour, ""), line="-")
        for side, colour, how in sides
    ]
    losses.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.3)
    return sheet.finish(_key(compared, rows, known))


def pair_of_axes(sheet: Sheet, left: float, high: float, margin: float) -> tuple[Axes, Axes]:
    """What is lost, and beside it the changes with the margin; the rows are placed in inches from above."""
    wide = (PAGE - left - BETWEEN - RIGHT) / 2
    losses, changes = sheet.beside(high, (left, wide), (left + wide + BETWEEN, wide))
    for axes in (losses, changes):
        rows_of(axes, [], at_zero=0.0)
        axes.set_ylim(high, 0)
        axes.locator_params(axis="x", nbins=6)
        axes.margins(x=0.06)
    changes.axvspan(100 * (1 / (1 + margin) - 1), 100 * margin, color=BAND, linewidth=0, zorder=0)
    sheet.skip(UNDER)
    return losses, changes


def verdict(axes: Axes, place: float, words: str, colour: str, bold: bool) -> None:
    """What was found, beside the axes."""
    style = {"va": "center", "fontsize": 6.8, "color": colour, "fontweight": "bold" if bold else "normal"}
    axes.text(1.03, place, words, transform=axes.get_yaxis_transform(), **style)


def certain_dot(axes: Axes, y: float, numbers: Sequence[float], look: Look, said: str) -> None:
    """A value with its interval; hollow where it has none, and nothing where there is no value."""
    value, low, high = numbers
    if not math.isnan(value):
        bar(axes, y, low, high, look[0], width=1.4, zorder=2)
        words = said.format(with_ends(value, low, high))
        dot(axes, value, y, look, words, hollow=math.isnan(low), size=3.6, zorder=3)


def _name(row: Row) -> str:
    who = broken(f"{row['lead']} + {row['antagonists']}" if row["antagonists"] else row["lead"], 26)
    if row["partition_a"] == UNMANAGED:
        return who
    return f"{who}\n{broken('@' + row['partition_a'], 25)}" + ("" if row["masks"] == "same" else "*")


def _who(row: Row) -> str:
    beside = f" beside {row['antagonists'].replace('+', ' + ')}" if row["antagonists"] else ""
    return f"{row['lead']}{beside}" + ("" if row["partition_a"] == UNMANAGED else f" under {row['partition_a']}")


def _key(compared: Compared, rows: list[Row], known: int) -> str:
    counts = [
        f"{min(values)} to {max(values)}" if min(values) != max(values) else f"{values[0]}"
        for values in ([int(row[f"launches_{letter}"]) for row in rows] for letter in SHIFTS)
    ]
    parts = [f"bars: 95 % between launches ({counts[0]} of A, {counts[1]} of B), on the right Welch's t over both"]
    parts.append(f"band: margin of ±{100 * compared.margin:.3g} %")
    parts += ["words: p < 0.05 after Holm's adjustment, or inside the margin"]
    named = [(row, name) for row in rows for name in ("slowdown_a", "slowdown_b", "ratio")]
    hollow = any(math.isnan(row[f"{name}_low"]) and not math.isnan(row[name]) for row, name in named)
    parts += ["hollow: fewer than three launches, no interval"] if hollow else []
    parts += ["*: its masks are not the same in B"] if any(row["masks"] == "differ" for row in rows) else []
    parts += [f"{known - len(rows)} more rows are in the CSV"] if known > len(rows) else []
    sides = [f"{side.letter}: {' and '.join(side.platforms)}, study {side.name}" for side in (compared.a, compared.b)]
    return f"{'; '.join(parts)} · {' · '.join(sides)}"
