"""The figure `evolution`: a lead's step time by iteration in each scene, its warm-up and the changes of its level."""

import math
import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter
from matplotlib.typing import LineStyleType

from castmates.analysis.core import once
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.explanations.evolution import LEAD_LAUNCH, Evolution, evolutions, step_times
from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics import change_points
from castmates.report.figures.antagonists import looks_of_scenes
from castmates.report.figures.marks import legend_key
from castmates.report.figures.sheet import UNDER, Sheet, drawing, evenly
from castmates.report.figures.style import ALARM, GREY
from castmates.report.results import Results
from castmates.report.text.words import counted, listed, number, plain
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Step by step", "part": "why", "place": 280, "needs": "PROGRAMS"}
PANELS = 6
WINDOW = 21  # steps of the rolling median, at most
DRAWN = 3000  # steps of a panel, at most
LOWEST, HIGHEST = 0.005, 0.995  # quantiles between which the axis shows every step
PANEL, ABOVE, LEFT, RIGHT = 1.25, 0.2, 0.62, 0.15  # inches
STEP, LOST, WARM = "#9db4c6", "#e3b7b3", "#fbe9c6"  # a step, one of a rejected window, the warm-up
PARTITIONED, DASHES = ", partitioned", (0, (2, 1))
SHOWN = ["study", "cohort", "launch", "member", "lead", "window", "scene", "what", "iteration", "seconds", "relative"]
SHOWN += ["valid", "rolling_median_seconds", "level", "warm_up", "change", "platform"]
BREAK = (0, (4, 2))  # dashes where the level changes


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the steps that are drawn, with the level that they belong to."""
    source, launches = evolution(results)
    return drawing(results, source, lacking, lambda: _figure(source, launches, results))


@once
def evolution(results: Results) -> tuple[pd.DataFrame, list[Evolution]]:
    """The steps of the launches that are shown, of each no more than can be drawn, and what was found in all steps."""
    times = step_times(results.launch_table("steps", only=shown_launches(results)[0]), results.windows)
    launches = evolutions(times)
    beside = times["mix"].str.partition("+")[2] if len(times) else times["mix"]
    what = times["kind"].where(times["kind"] != "corun", "beside " + beside.map(plain))
    times["what"] = what.where(times["partition"] == UNMANAGED, what + PARTITIONED)
    number = times.groupby([*LEAD_LAUNCH, "window"], sort=False).ngroup()
    rolling = times["seconds"].groupby(number).rolling(WINDOW, center=True, min_periods=1).median()
    times["rolling_median_seconds"] = rolling.droplevel(0)
    times["level"], times["warm_up"], times["change"] = math.nan, None, False
    drawn = []
    for launch in launches:
        steps = _of(times, launch)
        for level in launch.levels:
            steps.loc[steps["iteration"].between(level.first, level.last), "level"] = level.relative
        if launch.warm_from is not None:
            steps["warm_up"] = steps["iteration"] < launch.warm_from
        steps["change"] = steps["iteration"].isin(launch.changes)
        thinned = (np.arange(len(steps)) % math.ceil(len(steps) / DRAWN) == 0) | steps["change"].to_numpy(dtype=bool)
        drawn.append(steps[thinned])
    return (pd.concat(drawn, ignore_index=True) if drawn else times)[SHOWN], launches


def shown_launches(results: Results) -> tuple[list[tuple[str, int]], int]:
    """The launches shown: all, or the first, the last and evenly spaced ones between; and how many there are."""
    rows = results.windows[(results.windows["role"] == "lead") & (results.windows["beats"] > 1)]
    own = workloads_of(rows["member"]).isin(set(results.effects["lead"]))  # the programs that the study is about
    rows = rows[own] if own.any() else rows  # those of controls only where there are no others
    rows = rows[LAUNCH].drop_duplicates().sort_values(LAUNCH)
    launches = [(str(cohort), int(launch)) for cohort, launch in rows.itertuples(index=False)]
    return evenly(launches, PANELS), len(launches)


def lacking(results: Results) -> str:
    if len(evolution(results)[0]):
        return ""
    return f"No lead of the study {results.name} completed two steps in a window, so no step has a length."


def caption(results: Results) -> str:
    _, seen = evolution(results)
    shown, launches = shown_launches(results)
    which = f"{len(shown)} of {counted(launches, 'launch')} of the study's leads" if launches else "no launches"
    looked = "" if change_points.available() else " No changes of level were looked for."
    few = [launch for launch in seen if launch.note]
    if few and change_points.available():
        looked = f" In {counted(len(few), 'launch')} too few steps were seen to look for changes of level."
    return (
        f"How long each step took, by its number since the program's start ({which}). Points: steps; lines: the "
        f"rolling median beside one antagonist.{looked} "
    )


def alternative(results: Results) -> str:
    source, launches = evolution(results)
    if source.empty:
        return lacking(results)
    if not change_points.available():
        return f"Step times of {counted(len(launches), 'launch')}; no changes of level were looked for."
    parts = []
    for launch in launches:
        name = f"{plain(launch.member)}, launch {launch.launch}"
        if launch.note:
            parts.append(f"{name}: {launch.note}")
            continue
        changes = [
            f"at {after.first} by {number(100 * (after.relative / before.relative - 1))} %"
            for before, after in zip(launch.levels, launch.levels[1:], strict=False)
        ]
        warm = f", warm-up until {launch.warm_from}" if launch.warmed_up else ""
        warm = ", not steady in its first half" if launch.warm_from is None else warm
        parts.append(f"{name}: {'changes ' + listed(changes) if changes else 'no change'}{warm}")
    return f"Step times by iteration. {'; '.join(parts)}."


def _colours(source: pd.DataFrame, results: Results) -> dict[str, str]:
    """By what ran, without its partition: alone first, then antagonists in the study's order."""
    scenes = {what.removesuffix(PARTITIONED) for what in source["what"]}
    return {what: look[0] for what, look in looks_of_scenes(results, scenes).items()}


def _figure(source: pd.DataFrame, launches: list[Evolution], results: Results) -> Figure:
    colours = _colours(source, results)
    sheet = Sheet(results)
    for name, launch in zip(_names(launches), launches, strict=True):
        axes = sheet.panel(PANEL, LEFT, RIGHT, above=ABOVE)
        _panel(axes, launch, _of(source, launch), colours)
        axes.set_title(textwrap.shorten(name, 60), loc="left", pad=3)
        sheet.skip(UNDER)
    keys: list[Artist] = [legend_key("step", (STEP, "o"), size=3)]
    keys += [] if source["valid"].all() else [legend_key("in a rejected window", (LOST, "o"), size=3)]
    keys += [Patch(facecolor=WARM, label="warm-up")] if any(launch.warmed_up for launch in launches) else []
    lines: list[tuple[str, str, LineStyleType]] = []
    lines += [("level changes", ALARM, BREAK)] if any(launch.changes for launch in launches) else []
    lines += [(what, colour, "-") for what, colour in colours.items()]
    lines += [("under a partition", GREY, DASHES)] if source["what"].str.endswith(PARTITIONED).any() else []
    sheet.legend([*keys, *(legend_key(what, (colour, ""), line=line, width=0.9) for what, colour, line in lines)])
    hidden = "the slowest and the fastest half per cent of the steps may lie beyond the axis"
    if not change_points.available():
        return sheet.finish(hidden)
    return sheet.finish(
        "dashed: the level changes, as a search for change points finds (one launch in twenty has a false alarm, at "
        f"worst); shaded: more than one per cent off the level of the launch's second half; {hidden}"
    )


def _of(source: pd.DataFrame, launch: Evolution) -> pd.DataFrame:
    own = source[(source["cohort"] == launch.cohort) & (source["launch"] == launch.launch)]
    return own[own["member"] == launch.member].copy()


def _names(launches: list[Evolution]) -> list[str]:
    """dlrm, launch 3; with the end of its group's name where several groups have such a launch."""
    short = [f"{plain(launch.member)}, launch {launch.launch}" for launch in launches]
    return [
        f"{name} of {launch.cohort.rpartition('-')[2]}" if short.count(name) > 1 else name
        for name, launch in zip(short, launches, strict=True)
    ]


def _panel(axes: Axes, launch: Evolution, steps: pd.DataFrame, colours: Mapping[str, str]) -> None:
    scale, unit = _unit(float(steps["seconds"].median()))
    low, high = (scale * float(steps["seconds"].quantile(share)) for share in (LOWEST, HIGHEST))
    room = 0.12 * (high - low) or 0.1 * high
    for valid, colour in ((True, STEP), (False, LOST)):
        part = steps[steps["valid"] == valid]
        points = part["iteration"], scale * part["seconds"]
        axes.scatter(*points, s=1.6, c=colour, linewidths=0, rasterized=True, zorder=2)
    for _, window in steps.groupby("window", sort=False):
        what = str(window["what"].iloc[0])
        line = DASHES if what.endswith(PARTITIONED) else "-"
        colour, median = colours[what.removesuffix(PARTITIONED)], scale * window["rolling_median_seconds"]
        axes.plot(window["iteration"], median, linewidth=0.9, zorder=3, color=colour, linestyle=line)
    begin, end = int(steps["iteration"].iloc[0]), int(steps["iteration"].iloc[-1])
    if launch.warmed_up and launch.warm_from is not None:
        axes.axvspan(begin, launch.warm_from, color=WARM, zorder=0, linewidth=0)
    for change in launch.changes:
        axes.axvline(change, color=ALARM, linewidth=0.9, linestyle=BREAK, zorder=4)
    axes.set_ylim(max(0.0, low - room), high + room)
    margin = 0.01 * max(1, end - begin)
    axes.set_xlim(begin - margin, end + margin)
    axes.set_ylabel(f"{unit} of a step")
    axes.set_xlabel("iteration", labelpad=1)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    note = textwrap.shorten(launch.note, 70) if change_points.available() else ""
    axes.set_title(note, loc="right", pad=3, fontsize=6.5, color=GREY)


def _unit(seconds: float) -> tuple[float, str]:
    """How many of which unit a second is, so that steps of this length need no powers of ten."""
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"), (1e12, "ps"))
    return next(((scale, unit) for scale, unit in units if seconds * scale >= 1), units[1])
