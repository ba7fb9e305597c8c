"""The figure `distances`: what a lead loses by the nearness of its antagonists, a bar for each number of them."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from castmates.analysis.effects.verdicts import NO_LOSS, TOO_FEW, UNCLEAR
from castmates.report.figures.antagonists import other_looks
from castmates.report.figures.marks import bar, with_value
from castmates.report.figures.sheet import Room, Sheet, drawing, inches_of, lines_across
from castmates.report.figures.style import GREY, INK, SMALL, SMALL_LETTER
from castmates.report.results import Results, records
from castmates.report.text.words import AXIS, WORDS, Quantity, between, counted, number, plain, units

FIGURE = {"title": "Number and nearness of antagonists", "part": "losses", "place": 20, "needs": "DISTANCES"}
ROOM = Room(axes=2.1, above=0.16, below=0.72, left=0.7, right=0.1)
PALEST = 0.4  # how much colour the bar of the fewest antagonists has
BAR = 0.8  # of the room of each
BETWEEN = 0.7  # two places, in bars
MOST_TOLD = 8  # panels in the alternative text
MOST_REASONS = 3  # in the key
HOLLOW = (UNCLEAR, NO_LOSS, TOO_FEW)
Row = dict[str, object]
Panels = list[tuple[str, pd.DataFrame]]  # of each lead and its antagonists, on one platform: the title and the rows


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.distances, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    known = results.distances["loss_pct"].notna().any()
    return "" if known else f"No loss by distance or number of antagonists is known in the study {results.name}."


def caption(results: Results) -> str:
    return (
        "What the lead loses against running alone, in per cent, by where its antagonists sit, from near to far, "
        "and by how many there are (the numbers below the bars). Lines on the bars: 95 % t intervals "
        f"{between(results.lead_effects('alone'))} ({units(results.distances['launches'])}). "
    )


def alternative(results: Results) -> str:
    parts = []
    for title, rows in _panels(results)[:MOST_TOLD]:
        known = records(rows[rows["loss_pct"].notna()])
        told = [f"{row['count']} {WORDS[row['distance']]} {number(row['loss_pct'])} %" for row in known]
        told += [f"not possible here: {words}" for words in _not_possible(rows)]
        parts.append(f"{title}: {', '.join(told)}")
    return f"Loss by number and nearness of antagonists. {'; '.join(parts)}." if parts else lacking(results)


def _panels(results: Results) -> Panels:
    several = results.distances["platform"].nunique() > 1
    groups = results.distances.groupby(["lead", "antagonists", "platform"], sort=False)
    return [
        (f"{plain(str(lead))} beside {plain(str(antagonists))}" + (f" ({platform})" if several else ""), rows)
        for (lead, antagonists, platform), rows in groups
    ]


def _not_possible(rows: pd.DataFrame) -> list[str]:
    """What the machine has no place for, with the reason."""
    return [f"{_arrangement(row)}, which {row['reason']}" for row in records(rows[rows["reason"] != ""])]


def _figure(panels: Panels, results: Results) -> Figure:
    every = pd.concat([rows for _, rows in panels])
    shades = _shades(other_looks(results, ["antagonists"])["antagonists"][0], sorted({*every["count"].astype(int)}))
    sheet = Sheet(results)
    for axes, (_, rows) in zip(sheet.grid([title for title, _ in panels], ROOM), panels, strict=False):
        _panel(axes, rows, shades)
    sheet.labels("where the antagonists sit, from near to far", "loss (%)")
    reasons = list(dict.fromkeys(_not_possible(every)))
    parts = []
    if every["verdict"].isin(HOLLOW).any():
        parts.append("hollow: no loss proven (Holm-adjusted), or too few launches")
    parts += [f"\N{EN DASH}: not possible here: {words}" for words in reasons[:MOST_REASONS]]
    parts += [f"{len(reasons) - MOST_REASONS} more are in the CSV"] if len(reasons) > MOST_REASONS else []
    return sheet.finish("; ".join(parts))


def _shades(colour: str, counts: list[int]) -> dict[int, str]:
    """The more antagonists, the more colour."""
    most = max(1, len(counts) - 1)
    strengths = [1 - (1 - PALEST) * (len(counts) - 1 - place) / most for place in range(len(counts))]
    red, green, blue = to_rgb(colour)
    mixed = [to_hex((1 - (1 - red) * part, 1 - (1 - green) * part, 1 - (1 - blue) * part)) for part in strengths]
    return dict(zip(counts, mixed, strict=True))


def _panel(axes: Axes, rows: pd.DataFrame, shades: dict[int, str]) -> None:
    places = list(dict.fromkeys(rows["distance"]))  # nearest first
    counts = [count for count in shades if (rows["count"] == count).any()]
    wide = len(counts) + BETWEEN
    axes.set_xlim(-(1 + BETWEEN) / 2, len(places) * wide - (1 + BETWEEN) / 2)
    room = inches_of(axes)[0] / (len(places) * wide)
    below: Any = {"textcoords": "offset points", "va": "top", "fontsize": SMALL, "annotation_clip": False}
    for row in records(rows):
        x, count = places.index(row["distance"]) * wide + counts.index(row["count"]), str(row["count"])
        axes.annotate(count, (x, 0), xycoords=("data", "axes fraction"), xytext=(0, -4), ha="center", **below)
        if math.isnan(row["loss_pct"]):
            axes.annotate("\N{EN DASH}", (x, 0), xytext=(0, 2), textcoords="offset points", ha="center", va="bottom")
        else:
            _bar(axes, x, row, shades[int(row["count"])], room)
    middles = [place * wide + (len(counts) - 1) / 2 for place in range(len(places))]
    axes.set_xticks(middles, [AXIS[place] for place in places], fontsize=7)
    axes.tick_params(axis="x", length=0, pad=14)
    left: Any = {"xycoords": "axes fraction", "xytext": (-4, -4), "ha": "right", "color": GREY}
    axes.annotate("antagonists", (0, 0), **left, **below)
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=3)
    axes.margins(y=0.12)
    lines_across(axes, "y")


def _bar(axes: Axes, x: float, row: Row, shade: str, room: float) -> None:
    """What one arrangement costs, with its interval, and the number above it where there is room."""
    loss, low, high = (float(str(row[f"loss_{end}"])) for end in ("pct", "low", "high"))
    face = "white" if row["verdict"] in HOLLOW else shade
    (drawn,) = axes.bar(x, loss, width=BAR, color=face, edgecolor=shade, linewidth=0.8, zorder=2)
    with_value(drawn, f"{_arrangement(row)}: {Quantity(loss, low, high, '%')}")
    bar(axes, x, low, high, INK, width=0.9, upright=True, zorder=4)
    texts = [f"{number(loss)} %", number(loss), number(loss, 0)]
    if text := next((text for text in texts if len(text) * SMALL_LETTER < room), ""):
        top = max(0.0, loss, loss if math.isnan(high) else high)
        axes.annotate(text, (x, top), (0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=SMALL)


def _arrangement(row: Row) -> str:
    return f"{counted(int(str(row['count'])), 'antagonist')} {WORDS[str(row['distance'])]}"
