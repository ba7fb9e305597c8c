"""The figure `windows`: every program's rate over the time of the study, what was rejected, and why."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.report.figures.antagonists import BASELINES, antagonists, looks, user_first
from castmates.report.figures.panels import (
    NOTE,
    SmallPrint,
    columns_for,
    finish,
    fitting,
    legend,
    lines_across,
    small_print,
    stacked,
    without_axis,
)
from castmates.report.figures.style import (
    ALARM,
    GREY,
    PAGE,
    SMALL,
    Look,
    badge_room,
    empty_figure,
    squeezed,
    styled,
)
from castmates.report.figures.values import with_value
from castmates.report.figures.windows_rows import (
    PARTITIONED,
    SHOWN,
    TOOK,
    WHY,
    WINDOW,
    chosen_launches,
    disturbances,
    in_a_row,
    rates,
)
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import READ_ALOUD, counted, listed, number, plain

FIGURE = {"title": "The study over time", "part": "health", "place": 320}
LEFT, RIGHT = 1.15, 0.12  # inches beside the axes
PANEL, LANE, HEAD = 0.85, 0.17, 0.3  # inches of a program, of a row of others, above a panel
LANES = 8  # below a heading: those who took most, the most frequent reasons
LOST = "#f3dede"
BESIDE = "beside "
NAME = 17  # letters of a line beside the axes


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: every measurement, with its place in the figure where it is drawn."""
    source = rates(results)
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), source
        launches = chosen_launches(source, results.launches)
        drawn, disturbed = in_a_row(source, launches), disturbances(results, launches)
        others = disturbed[disturbed["heading"] == TOOK]
        names = others.groupby(WINDOW)["cause"].agg(", ".join).rename("disturbed_by").reset_index()
        placed = source.merge(drawn[[*WINDOW, "minutes"]], on=WINDOW, how="left").merge(names, on=WINDOW, how="left")
        return _figure(drawn, disturbed, results), placed[[*SHOWN, "minutes", "disturbed_by"]]


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if rates(results)["relative_rate"].notna().any():
        return ""
    return f"No window of the study {results.name} can be compared with one alone."


def caption(results: Results) -> str:
    """The caption, without the part that all captions share."""
    source = rates(results)
    drawn = len(chosen_launches(source, results.launches))
    launches = len(source[source["relative_rate"].notna()][["cohort", "launch"]].drop_duplicates())
    which = f"all {counted(launches, 'launch')}" if drawn == launches else f"{drawn} of {launches} launches"
    lost = int(source["relative_rate"].isna().sum())
    without = f" {counted(lost, 'window')} cannot be drawn: there is no rate, or none alone." if lost else ""
    return (
        "Each lead's rate in every window, over the median of those alone in its launch; launches one after "
        f"the other, without the time between them ({which}). Crosses, and shaded: rejected. Below: who else took time "
        f"of the processors, and why else windows were rejected.{without} "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    source = rates(results)
    kept = source[source["valid"] & source["relative_rate"].notna()]
    if kept.empty:
        return "No valid window can be compared with one alone."
    launches = chosen_launches(source, results.launches)
    medians = kept.groupby("what", sort=False)["relative_rate"].median()
    parts = [f"{_said(str(what))} {number(float(value), 2)}" for what, value in medians.head(READ_ALOUD).items()]
    below = "".join(f" {heading}: {listed(lanes)}." for heading, _, lanes in _below(disturbances(results, launches)))
    return f"Rates over time in {counted(len(launches), 'launch')}; medians over alone: {listed(parts)}.{below}"


def _figure(drawn: pd.DataFrame, disturbed: pd.DataFrame, results: Results) -> Figure:
    leads = user_first(results, drawn["lead"])
    below = _below(disturbed)
    tall = sum(HEAD + LANE * len(lanes) for _, _, lanes in below)
    shown = leads[: fitting([HEAD + PANEL] * len(leads), around=tall + 1.2)]
    by_what = _looks(drawn[drawn["lead"].isin(shown)], results)
    keys = _keys(by_what, drawn)
    columns = columns_for((key.get_label() for key in keys), PAGE, key=0.36, letter=0.06, most=6)
    notes = _key(disturbed, len(leads) - len(shown), not drawn["valid"].all(), results)
    foot = 0.5 + 0.16 * math.ceil(len(keys) / columns) + NOTE * len(notes)
    heights = [PANEL] * len(shown) + [LANE * len(lanes) for _, _, lanes in below]
    figure, places = stacked(heights, HEAD, LEFT, RIGHT, badge_room(caveat(results), PAGE), foot)
    for axes, lead in zip(places, shown, strict=False):
        _program(axes, drawn[drawn["lead"] == lead], by_what)
        axes.set_title(squeezed(plain(lead), 60, 1), loc="left", pad=3, fontweight="bold")
    for axes, (heading, rows, lanes) in zip(places[len(shown) :], below, strict=True):
        _causes(axes, rows.merge(drawn[[*WINDOW, "minutes", "valid"]], on=WINDOW), lanes)
        axes.set_title(heading, loc="left", pad=3, fontweight="bold")
    room = 0.01 * float(drawn["minutes"].max()) or 0.01
    for axes in places:
        axes.set_xlim(drawn["minutes"].min() - room, drawn["minutes"].max() + room)
        _rejected(axes, drawn)
        axes.tick_params(labelbottom=axes is places[-1])
    places[-1].set_xlabel("minutes of measuring", labelpad=2)
    places[(len(shown) - 1) // 2].set_ylabel("rate / rate alone")
    legend(figure, keys, (foot - 0.4) / figure.get_figheight(), columns)
    return finish(figure, notes, results)


def _looks(drawn: pd.DataFrame, results: Results) -> dict[str, Look]:
    """Colour and marker by what ran, without its partition: alone first, then antagonists in the study's order."""
    scenes = {what.removesuffix(PARTITIONED) for what in drawn["what"].unique()}
    known = {name: place for place, name in enumerate(antagonists(results))}
    names = {what.removeprefix(BESIDE) for what in scenes if what.startswith(BESIDE)}
    beside = looks(results, sorted(names, key=lambda name: (known.get(plain(name), len(known)), name)))
    return {what: look for what, look in BASELINES.items() if what in scenes} | {
        f"{BESIDE}{name}": look for name, look in beside.items()
    }


def _said(what: str) -> str:
    """What ran, in words: beside 2 × stream (on its siblings), partitioned."""
    scene = what.removesuffix(PARTITIONED)
    if not scene.startswith(BESIDE):
        return plain(what)
    return BESIDE + plain(scene.removeprefix(BESIDE)) + what.removeprefix(scene)


def _program(axes: Axes, rows: pd.DataFrame, by_what: dict[str, Look]) -> None:
    """One program's measurements."""
    axes.axhline(1.0, color=GREY, linewidth=0.6, zorder=1)
    rows = rows[rows["relative_rate"].notna()]
    for what, (colour, marker) in by_what.items():
        for name, face in ((what, colour), (what + PARTITIONED, "white")):
            kept = rows[(rows["what"] == name) & rows["valid"]]
            if len(kept):
                points = axes.scatter(
                    kept["minutes"], kept["relative_rate"], s=9, c=face, edgecolors=colour, marker=marker,
                    linewidths=0.6, zorder=3,
                )  # fmt: skip
                with_value(points, *_values(kept))
        lost = rows[rows["what"].isin([what, what + PARTITIONED]) & ~rows["valid"]]
        if len(lost):
            points = axes.scatter(
                lost["minutes"], lost["relative_rate"], s=22, facecolors="none", edgecolors=colour, marker="X",
                linewidths=0.7, zorder=4,
            )  # fmt: skip
            with_value(points, *_values(lost))
    axes.margins(y=0.1)
    axes.locator_params(axis="y", nbins=4)
    lines_across(axes, "y")


def _values(rows: pd.DataFrame) -> list[str]:
    return [
        f"{plain(row['lead'])}, launch {row['launch']}, round {row['round']}, {_said(row['what'])}: "
        + number(row["relative_rate"], 3)
        + ("" if row["valid"] else f"; rejected: {row['reasons']}")
        for row in records(rows)
    ]


def _rejected(axes: Axes, drawn: pd.DataFrame) -> None:
    """Shade the places of rejected measurements in every panel, so that their culprits stand below them."""
    lost = sorted(drawn.loc[~drawn["valid"], "minutes"].unique())
    axes.vlines(lost, 0, 1, transform=axes.get_xaxis_transform(), color=LOST, linewidth=2.4, zorder=0)


def _below(disturbed: pd.DataFrame) -> list[tuple[str, pd.DataFrame, list[str]]]:
    """What stands below the programs: each heading that has anything, its rows, and its causes, the largest first."""
    groups = [(heading, disturbed[disturbed["heading"] == heading]) for heading in (TOOK, WHY)]
    return [(heading, rows, _lanes(rows)) for heading, rows in groups if len(rows)]


def _lanes(rows: pd.DataFrame) -> list[str]:
    sums = rows["share_pct"].fillna(1.0).groupby(rows["cause"]).sum()
    return [str(cause) for cause in sums.sort_values(ascending=False, kind="stable").index[:LANES]]


def _causes(axes: Axes, rows: pd.DataFrame, lanes: Sequence[str]) -> None:
    """A line for each: a mark is as high as the share that was taken, red where the measurement was lost."""
    most = float(rows["share_pct"].max())
    for lane, cause in enumerate(lanes):
        own = rows[rows["cause"] == cause]
        for valid, colour in ((True, GREY), (False, ALARM)):
            marked = own[own["valid"] == valid]
            if len(marked):
                high = 0.8 * (marked["share_pct"].fillna(most) / most).clip(lower=0.15) if most > 0 else 0.8
                marks = axes.vlines(
                    marked["minutes"], lane + 0.4 - high, lane + 0.4, color=colour, linewidth=1.1, zorder=3
                )
                with_value(marks, *map(_took, records(marked)))
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_yticks(range(len(lanes)), [squeezed(cause, NAME, 1) for cause in lanes], fontsize=SMALL)
    without_axis(axes)


def _took(row: dict[str, Any]) -> str:
    share = "" if math.isnan(row["share_pct"]) else f" took {number(row['share_pct'])} % of a processor"
    return f"{row['cause']}{share}" + ("" if row["valid"] else "; the window was rejected")


def _keys(by_what: dict[str, Look], drawn: pd.DataFrame) -> list[Line2D]:
    def key(colour: str, marker: str, label: str, face: str) -> Line2D:
        return Line2D(
            [], [], linestyle="", marker=marker, markersize=4.5, markeredgecolor=colour, markerfacecolor=face,
            label=label,
        )  # fmt: skip

    keys = [key(colour, marker, _said(what), colour) for what, (colour, marker) in by_what.items()]
    masked = drawn["what"].str.endswith(PARTITIONED).any()
    keys += [key(GREY, "o", "hollow: under a partition", "white")] if masked else []
    return [*keys, key(GREY, "X", "rejected", "none")] if not drawn["valid"].all() else keys


def _key(disturbed: pd.DataFrame, hidden: int, lost: bool, results: Results) -> SmallPrint:
    parts = [] if (disturbed["heading"] == TOOK).any() else ["no time that others took was recorded"]
    if disturbed["share_pct"].notna().any():
        parts.append(f"tallest mark: {number(float(disturbed['share_pct'].max()))} % of a processor")
        parts += ["red: rejected"] if lost else []
    more = sum(rows["cause"].nunique() - len(lanes) for _, rows, lanes in _below(disturbed))
    parts += [f"{more} more in the CSV"] if more > 0 else []
    parts += [f"{counted(hidden, 'more lead')} in the CSV"] if hidden else []
    return small_print(PAGE, "; ".join(parts), results)
