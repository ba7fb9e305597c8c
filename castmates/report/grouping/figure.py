"""The figure `placement`: what each kind of job loses in the best grouping, by spreading and at random.

Filled marks are measured, hollow ones predicted; diamonds are fresh launches.
"""

import textwrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.analysis.grouping.advice import ALONE
from castmates.report.figures.style import (
    ALARM,
    COLOURS,
    GREY,
    INK,
    PAGE,
    SMALL,
    SMALL_LETTER,
    badge,
    badge_room,
    broken,
    empty_figure,
    styled,
)
from castmates.report.figures.values import with_value
from castmates.report.grouping.shown import Shown
from castmates.report.grouping.words import fresh_words, loss_words
from castmates.report.results import records
from castmates.report.text.words import number

Row = dict[str, Any]
BEST, SPREADING, RANDOM = COLOURS[0], COLOURS[1], GREY
LANES = {"best": 0.26, "spreading": 0.56, "random": 0.78}  # of a row's height, from its top
ROW, LEFT, RIGHT, NOTE = 0.52, 1.35, 0.15, 0.115  # inches
ALL = "all jobs (mean)"


def draw(shown: Shown) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = shown.ways[shown.ways["way"].isin([*LANES])].reset_index(drop=True)
    with styled():
        if not shown.advice.found.best:
            return empty_figure("No grouping of these jobs can be judged.", shown.origin), source
        return _figure(shown, source), source


def _figure(shown: Shown, source: pd.DataFrame) -> Figure:
    jobs = ["", *shown.advice.problem.by_name]
    notes = textwrap.wrap(_key(shown), int((PAGE - 0.2) / SMALL_LETTER))
    head, foot = 0.36 + badge_room(shown.origin, PAGE), 0.5 + NOTE * len(notes)
    height = head + ROW * len(jobs) + foot
    figure = Figure(figsize=(PAGE, height))
    box = (LEFT / PAGE, foot / height, (PAGE - LEFT - RIGHT) / PAGE, ROW * len(jobs) / height)
    axes = figure.add_axes(box)
    for place, job in enumerate(jobs):
        if place % 2:
            axes.axhspan(place, place + 1, color="#f5f5f5", linewidth=0, zorder=0)
        for row in records(source[source["job"] == job]):
            _usual(axes, place, row) if row["way"] != "best" else None
        _best(axes, place, job, shown)
    _frame(axes, jobs)
    _legend(axes, shown)
    figure.text(0.1 / PAGE, 0.05 / height, "\n".join(notes), fontsize=SMALL, color=GREY, va="bottom")
    badge(figure, shown.origin)
    return figure


def _usual(axes: Axes, place: int, row: Row) -> None:
    """What is lost on average, and by nine of ten groupings."""
    y, colour = place + LANES[row["way"]], SPREADING if row["way"] == "spreading" else RANDOM
    axes.plot([row["loss_p5"], row["loss_p95"]], [y, y], color=colour, linewidth=4, alpha=0.35, solid_capstyle="butt")
    (point,) = axes.plot([row["loss_pct"]], [y], "|", color=colour, markersize=7, markeredgewidth=1.6)
    who = row["job"] or "all jobs"
    words = f"{who}, {row['way']}: {number(row['loss_pct'])} % on average over {row['groupings']} groupings"
    with_value(point, f"{words}, {number(row['loss_p5'])} to {number(row['loss_p95'])} % in nine of ten")


def _best(axes: Axes, place: int, job: str, shown: Shown) -> None:
    """Every single job of the best grouping; of all jobs the mean."""
    rows = records(shown.groupings[shown.groupings["rank"] == 1])
    y = place + LANES["best"]
    if not job:
        mean = shown.advice.found.best[0].mean_loss
        face = "white" if shown.is_predicted else BEST
        (point,) = axes.plot([mean], [y], "o", color=BEST, markerfacecolor=face, markersize=4.6, zorder=4)
        with_value(point, f"all jobs, best grouping: {number(mean)} % on average")
        found = [0.0 if row["source"] == ALONE else row["fresh_pct"] for row in rows]
        if any(row["source"] != ALONE for row in rows) and all(loss == loss for loss in found):
            fresh = sum(found) / len(found)
            (mark,) = axes.plot([fresh], [y], "D", color=INK, markersize=2.8, zorder=5)
            with_value(mark, f"all jobs, best grouping: fresh launches found {number(fresh)} % on average")
        return
    own = [row for row in rows if row["job"] == job]
    step = 0.2 / max(1, len(own) - 1) if len(own) > 1 else 0.0
    for number_of, row in enumerate(own):
        _one(axes, y + step * (number_of - (len(own) - 1) / 2), row)
    limit = own[0]["limit_pct"]
    if limit == limit:
        axes.plot([limit, limit], [place + 0.06, place + 0.94], color=ALARM, linewidth=1.1, zorder=3)


def _one(axes: Axes, y: float, row: Row) -> None:
    face = "white" if row["source"] == "predicted" else BEST
    axes.plot([row["loss_low"], row["loss_high"]], [y, y], color=BEST, linewidth=1.3, zorder=3)
    (point,) = axes.plot([row["loss_pct"]], [y], "o", color=BEST, markerfacecolor=face, markersize=3.8, zorder=4)
    beside = "alone" if row["source"] == ALONE else f"beside {row['beside'].replace('+', ' + ')}, {row['source']}"
    with_value(point, f"{row['job']} {beside}: {loss_words(row)} %")
    if row["fresh_pct"] == row["fresh_pct"]:
        axes.plot([row["fresh_low"], row["fresh_high"]], [y, y], color=INK, linewidth=0.8, zorder=5)
        (mark,) = axes.plot([row["fresh_pct"]], [y], "D", color=INK, markersize=2.8, zorder=5)
        with_value(mark, f"{row['job']} {beside}: fresh launches found {fresh_words(row)}")


def _frame(axes: Axes, jobs: list[str]) -> None:
    axes.set_ylim(len(jobs), 0)
    axes.set_yticks([place + 0.5 for place in range(len(jobs))], [broken(job, 18) if job else ALL for job in jobs])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    axes.set_xlabel("loss of the rate when alone (%)")


def _legend(axes: Axes, shown: Shown) -> None:
    """What the marks are, of those that are there."""
    keys = [
        Line2D([], [], marker="o", color=BEST, label="best grouping", markersize=3.8),
        Line2D([], [], marker="|", color=SPREADING, label="spreading", linewidth=4, alpha=0.5),
        Line2D([], [], marker="|", color=RANDOM, label="random", linewidth=4, alpha=0.5),
    ]
    if shown.groupings["limit_pct"].notna().any():
        keys.append(Line2D([], [], color=ALARM, label="limit"))
    if shown.groupings["fresh_pct"].notna().any():
        keys.append(Line2D([], [], marker="D", color=INK, linestyle="", markersize=2.8, label="fresh launches"))
    axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=len(keys), borderaxespad=0.3)


def _key(shown: Shown) -> str:
    parts = [
        "best grouping: every single job, with its 95 % interval between launches",
        *(["hollow: predicted, and its interval may leave out how far that is off"] if shown.is_predicted else []),
        "random and spreading: the mean over drawn groupings, and where nine of ten of them lie",
        f"{shown.advice.place.platform}, study {shown.advice.place.study}",
    ]
    return "; ".join(parts)
