"""One cell of a heatmap, its colour, its words, and the bar of colours; the same for every heatmap."""

import math
from collections.abc import Collection
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from castmates.analysis.effects.verdicts import GAIN, LOSS, NO_DATA, NO_LOSS, TOO_FEW, UNCLEAR
from castmates.analysis.partitions.sensitivity import INTERPOLATED
from castmates.report.figures.marks import with_value
from castmates.report.figures.sheet import Sheet
from castmates.report.figures.style import INK, NOT_MEASURED_HATCH, PALE, SHADES, SMALL
from castmates.report.text.words import counted, interval, number, percent_of, plain, within

PREDICTED = "predicted"
KEYS = {
    LOSS: "▼ loss",
    GAIN: "▲ gain",
    NO_LOSS: "≈ 0: no loss, within {margin}",
    UNCLEAR: "grey: unclear, not proven after Holm's adjustment",
    TOO_FEW: "dashed [ ]: too few launches, within launch only",
    NO_DATA: "hatched: no data",
    PREDICTED: "colour and hatches: predicted, not measured",
    INTERPOLATED: "colour and hatches, ≈: interpolated, with its bound; not measured",
}
VALUES = {PREDICTED: "predicted, not measured"}  # what a cell says when it is pointed at, instead of its verdict
SURE = (LOSS, GAIN)
GREY_INK = "#555555"
DARK, LIGHT = "#111111", "#fefefe"  # on a colour that is the same on every page, so the page's own ink will not do


def round_limit(largest: float) -> float:
    """The next round number, at least 5 %, so that noise does not get strong colours; 5 % where nothing is known."""
    if math.isnan(largest):
        return 5.0
    return next(
        (step for step in (5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0) if step >= largest), 10 * math.ceil(largest / 10)
    )


def key(seen: Collection[str], margin: float | None, close: bool) -> str:
    """What the marks that occur mean."""
    size = f"±{percent_of(margin)}" if margin is not None else "the study's margin"
    keys = KEYS
    if close:
        keys = {**KEYS, LOSS: "bold: loss or gain", GAIN: "bold: loss or gain"}
        keys[NO_LOSS] = "neither bold nor grey: no loss, within {margin}"
    parts = list(dict.fromkeys(text.format(margin=size) for verdict, text in keys.items() if verdict in seen))
    if not set(seen) <= {TOO_FEW, NO_DATA}:
        parts = ["± half of the 95 % interval between launches", *parts]
    return "; ".join(parts)


def cell(
    axes: Axes,
    x: float,
    y: float,
    row: dict[str, Any] | None,
    limit: float,
    close: bool = False,
    grey: Collection[str] = (UNCLEAR,),
) -> None:
    """Draw one; hatched where there is nothing, and without a colour where the verdict is one of `grey`.

    `close` cells have no room for marks and further decimals.
    """
    verdict = row["verdict"] if row else NO_DATA
    if row is None or verdict == NO_DATA or math.isnan(row["loss_pct"]):
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor="white", edgecolor="#a8a8a8", hatch="////", linewidth=0))
        _frame(axes, x, y, "white", dashed=False)
        if row is not None and not close:
            axes.text(
                x + 0.5, y + 0.5, NO_DATA, ha="center", va="center", fontsize=SMALL, color=INK, backgroundcolor="w"
            )
        return
    fill, ink = (PALE, GREY_INK) if verdict in grey else colours(row["loss_pct"], limit)
    axes.add_patch(with_value(Rectangle((x, y), 1, 1, facecolor=fill, linewidth=0), _value(row)))
    if verdict in (PREDICTED, INTERPOLATED):
        axes.add_patch(
            Rectangle((x, y), 1, 1, fill=False, edgecolor=ink, hatch=NOT_MEASURED_HATCH, alpha=0.6, linewidth=0)
        )
    _frame(axes, x, y, "white", dashed=False)
    if verdict == TOO_FEW and not close:
        _frame(axes, x, y, ink, dashed=True)
    first, second = (_close_words if close else _words)(row)
    first += " †" if row.get("possibly_biased") else ""
    size, weight = (SMALL if close else 8), "bold" if verdict in SURE else "normal"
    texts = [
        axes.text(x + 0.5, y + 0.32, first, ha="center", va="center", fontsize=size, color=ink, fontweight=weight),
        axes.text(x + 0.5, y + 0.72, second, ha="center", va="center", fontsize=SMALL, color=ink),
    ]
    if verdict in (PREDICTED, INTERPOLATED):  # no hatch runs through a number
        for text in texts:
            text.set_path_effects([withStroke(linewidth=2.5, foreground=fill)])


def colours(value: float, limit: float) -> tuple[str, str]:
    """Fill and ink of a cell."""
    red, green, blue, _ = mpl.colormaps[SHADES](0.5 + value / (2 * limit))
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5
    return to_hex((red, green, blue)), DARK if light else LIGHT


def colour_bar(sheet: Sheet, limit: float) -> None:
    """The scale, the same for all cells of a figure, no change in its middle."""
    (axes,) = sheet.beside(0.09, (0.2 * sheet.width, 0.6 * sheet.width), above=0.2)
    scale = ScalarMappable(Normalize(-limit, limit), SHADES)
    ticks = [-limit, -limit / 2, 0, limit / 2, limit]
    bar = sheet.figure.colorbar(scale, cax=axes, orientation="horizontal", ticks=ticks)
    bar.outline.set_linewidth(0.4)
    bar.ax.set_xticklabels([number(tick, 0 if float(tick).is_integer() else 1) for tick in ticks])
    bar.ax.tick_params(length=2, pad=1.5)
    bar.set_label("loss (%)", labelpad=1.5)
    sheet.skip(0.3)


def _frame(axes: Axes, x: float, y: float, colour: str, dashed: bool) -> None:
    inset = 0.06 if dashed else 0.0
    axes.add_patch(
        Rectangle(
            (x + inset / 2, y + inset),
            1 - inset,
            1 - 2 * inset,
            fill=False,
            edgecolor=colour,
            linewidth=0.6 if dashed else 1.5,
            linestyle=(0, (3, 2)) if dashed else "-",
        )
    )


def _value(row: dict[str, Any]) -> str:
    """All of a cell in a line: who beside whom, loss, interval, verdict and launches."""
    few = row["verdict"] == TOO_FEW and "within_low" in row  # operations have no interval within a launch
    low, high = within(row) if few else (row["loss_low"], row["loss_high"])
    who = f"mean of {plain(row['who'])}" if "who" in row else f"{plain(row['lead'])} beside {plain(row['antagonists'])}"
    parts = [f"{number(row['loss_pct'])} %" + ("" if math.isnan(low) else f" {interval(low, high)}")]
    parts += [VALUES.get(row["verdict"], row["verdict"])] if row["verdict"] in KEYS else []
    parts += [counted(int(row["launches"]), "launch")] if row["verdict"] != PREDICTED else []
    return f"{who}: {', '.join(parts)}"


def _words(row: dict[str, Any]) -> tuple[str, str]:
    verdict, value = row["verdict"], number(row["loss_pct"])
    if verdict == TOO_FEW:
        return value, interval(*within(row)) if "within_low" in row else ""
    half = (row["loss_high"] - row["loss_low"]) / 2
    spread = "" if math.isnan(half) else f"± {number(half)}"
    if verdict == INTERPOLATED:
        return f"≈ {value}", "" if math.isnan(half) else interval(row["loss_low"], row["loss_high"])
    if verdict == NO_LOSS:
        return "≈ 0", f"{value} {spread}"
    return {LOSS: "▼ ", GAIN: "▲ "}.get(verdict, "") + value, spread


def _close_words(row: dict[str, Any]) -> tuple[str, str]:
    """Two figures at most, so that they fit into a quarter of an inch."""

    def short(value: float) -> str:
        return number(value, 0 if abs(value) >= 9.95 else 1)

    half = (row["loss_high"] - row["loss_low"]) / 2
    return short(row["loss_pct"]), "" if math.isnan(half) else f"±{short(half)}"
