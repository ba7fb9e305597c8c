"""The figure `scheduler`: what the busiest threads of a trace did in a few steps, alone and beside others.

The window is chosen by a rule and not by eye: some steps of the lead from the middle of a scene's first recording.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from castmates.analysis.core import once
from castmates.report.figures.marks import with_value
from castmates.report.figures.sheet import Sheet, drawing, fitting, without_axis
from castmates.report.figures.style import GREY, INK, SMALL, squeezed
from castmates.report.results import Results
from castmates.report.text.trace_states import WORDS
from castmates.report.text.words import counted, number, plain
from castmates.report.traces import Ask, Trace, traces

FIGURE = {"title": "What threads did", "part": "traces", "place": 290, "needs": "TRACES"}
COLOURS = {"running": "#009e73", "runnable": "#e69f00", "preempted": "#d55e00", "blocked": "#d0d0d0"}
LEFT, RIGHT, LINE, HEAD, AXIS = 1.75, 0.15, 0.15, 0.3, 0.32  # inches
LETTERS = 29  # of a thread's name
HIGH = 0.72  # of a line
THREADS, OTHERS = 7, 3  # rows of the lead, and of all other members: the busiest
SCENES = 2  # of a trace: alone, and beside others
PARTS = 700  # of a window; each has the colour of the state that fills most of it
STATES = ("running", "runnable", "preempted", "blocked")  # of `unknown` nothing is drawn
SHOWN = ["trace", "scene", "member", "thread", "tid", "begin_ms", "end_ms", "state", "reason", "instead"]
_BEATS = "SELECT scene, t_ns FROM heartbeats h JOIN traces t USING (trace) WHERE h.member = t.lead ORDER BY t_ns"
_STATES = """
SELECT member, thread, tid, t0_ns, t1_ns, state, reason, instead FROM states
WHERE scene = $scene AND t0_ns < $end::BIGINT AND t1_ns > $begin::BIGINT
"""
STEPS = 3  # in a window
LONGEST, USUAL = 2_000_000_000, 100_000_000  # nanoseconds of a window at most, and without steps


@dataclass(frozen=True)
class Shown:
    """A scene of a trace: the states of its busiest threads in the window, and where steps of the lead end."""

    trace: Trace
    scene: str
    seconds: float  # that the window lasts
    at_s: float  # where it begins in the trace
    states: pd.DataFrame  # the columns of SHOWN, times from the begin of the window
    steps_ms: Sequence[float]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    source = pd.concat([pd.DataFrame(columns=SHOWN), *(each.states for each in shown(results))], ignore_index=True)
    return drawing(results, source, lacking, lambda: _figure(shown(results), results))


def lacking(results: Results) -> str:
    if shown(results):
        return ""
    return f"No trace of the study {results.name} has states of threads (castmates help tracing)."


def caption(results: Results) -> str:
    found = shown(results)
    if not found:
        return lacking(results)
    steps = max(len(each.steps_ms) for each in found)
    what = (
        f"about {counted(max(1, steps - 1), 'step')} of the lead" if steps else f"{number(1e3 * found[0].seconds)} ms"
    )
    kinds = {each.scene == "alone" for each in found}
    order = ", alone above beside others" if len(kinds) > 1 else ""
    return (
        f"The threads that were busiest in {what}, from the middle of a recording{order}. Lines: a "
        "step ends. Each part of a row has the colour of the state that fills most of it. One launch, while it was "
        "recorded; hence no interval. "
    )


def alternative(results: Results) -> str:
    parts = []
    for each in shown(results):
        times = (each.states["end_ms"] - each.states["begin_ms"]).groupby(each.states["state"]).sum()
        threads = each.states["tid"].nunique()
        shares = [
            f"{WORDS[state]} {number(100 * times.get(state, 0.0) / (1e3 * each.seconds * threads), 0)} %"
            for state in STATES
        ]
        parts.append(f"{_scene_words(each)}: {', '.join(shares)} of the time of {counted(threads, 'thread')}")
    return f"What threads did: {'; '.join(parts)}."


def _scene_words(each: Shown) -> str:
    """Who it is about: the lead alone, or beside whom."""
    lead, scene = plain(each.trace.lead) or each.trace.name, each.scene
    if scene == "alone":
        return f"{lead} alone"
    if not scene:
        return lead  # a trace without scenes, as imported ones: who ran beside whom is not known
    beside, _, partition = scene.removeprefix("corun:").partition("+")[2].partition("@")
    return f"{lead} beside {plain(beside) or scene}{f' @{partition}' if partition else ''}"


def _figure(found: list[Shown], results: Results) -> Figure:
    threads = [list(each.states.groupby(["member", "tid", "thread"], sort=False)) for each in found]
    heights = [LINE * len(each) for each in threads]
    count = fitting([HEAD + AXIS + height for height in heights], around=1.0)
    several = len({each.trace.name for each in found}) > 1
    sheet = Sheet(results, head=0.02)
    sheet.legend([Patch(facecolor=COLOURS[state], label=WORDS[state]) for state in STATES], handlelength=1.2)
    for each, own, height in zip(found[:count], threads, heights, strict=False):
        axes = sheet.panel(height, LEFT, RIGHT, above=HEAD)
        _panel(axes, each, own)
        trace = f" ({each.trace.name})" if several else ""
        axes.set_title(f"{_scene_words(each)}, traced{trace}", loc="left", pad=4, fontweight="bold")
        sheet.skip(AXIS)
    more = f"; not drawn: {counted(len(found) - count, 'more scene')}" if len(found) > count else ""
    return sheet.finish(f"a part is 1/{PARTS} of the window; white: nothing is known; the CSV has every state{more}")


def _panel(axes: Axes, each: Shown, threads: Sequence[tuple[Any, pd.DataFrame]]) -> None:
    length, names = 1e3 * each.seconds, []
    for y, ((member, tid, thread), own) in enumerate(threads):
        whole = (own["end_ms"] - own["begin_ms"]).groupby(own["state"]).sum()
        words = ", ".join(f"{WORDS[state]} {number(whole[state], 2)} ms" for state in STATES if state in whole)
        for begin, wide, state in coloured(own, length):
            colour = COLOURS.get(state, GREY)
            mark = Rectangle((begin, y + (1 - HIGH) / 2), wide, HIGH, facecolor=colour, linewidth=0, zorder=2)
            axes.add_patch(with_value(mark, f"{plain(member)}, {thread} {tid}: {words}"))
        names.append(f"{plain(member)} {squeezed(thread, max(8, LETTERS - len(plain(member))), 1)}")
    for at in each.steps_ms:
        axes.axvline(at, color=INK, linewidth=0.7, zorder=3)
    axes.set_xlim(0, length)
    axes.set_ylim(len(threads), 0)
    axes.set_yticks([y + 0.5 for y in range(len(threads))], names, fontsize=SMALL)
    axes.set_xlabel(f"ms, from {number(each.at_s, 2)} s of the trace", labelpad=1, fontsize=SMALL)
    axes.tick_params(axis="x", labelsize=SMALL, pad=1)
    without_axis(axes)


@once
def shown(results: Results) -> list[Shown]:
    """The windows, those of a trace together, the lead alone first."""
    return [each for trace in traces(results) for each in windows(trace)]


def windows(trace: Trace) -> list[Shown]:
    """The windows of a trace: equally long in every scene."""
    with trace.opened() as ask:
        recordings = ask("SELECT scene, t0_ns, t1_ns FROM recordings ORDER BY scene <> 'alone', recording")
        firsts = recordings.drop_duplicates("scene").head(SCENES)
        beats = ask(_BEATS)
        # Some steps of the scene in which they take longest, if they fit into every recording.
        step = beats.dropna(subset="scene").groupby("scene")["t_ns"].apply(lambda times: times.diff().median()).max()
        wanted = USUAL if pd.isna(step) else min(LONGEST, int(STEPS * step))
        length = max(1, min([wanted, *(firsts["t1_ns"] - firsts["t0_ns"]).astype(int)]))
        found = [_window(trace, ask, row, beats, length) for row in firsts.itertuples()]
    busiest = _ranks([each.states for each in found], trace.lead)
    return [replace(each, states=_busiest(each.states, busiest)) for each in found if len(each.states)]


def _ranks(tables: Sequence[pd.DataFrame], lead: str) -> dict[tuple[str, int], int]:
    """The threads that ran or wanted to for the longest time in all windows: those of the lead first."""
    every = pd.concat([pd.DataFrame(columns=SHOWN), *tables])
    busy = every[~every["state"].isin(["blocked", "unknown"])]
    took = (busy["end_ms"] - busy["begin_ms"]).groupby([busy["member"], busy["tid"]]).sum().sort_values(ascending=False)
    names = [(str(member), int(tid)) for member, tid in took.index]
    ours, others = [one for one in names if one[0] == lead], [one for one in names if one[0] != lead]
    return {thread: number for number, thread in enumerate([*ours[:THREADS], *others[:OTHERS]])}


def _busiest(states: pd.DataFrame, ranks: Mapping[tuple[str, int], int]) -> pd.DataFrame:
    rows = [ranks.get((member, tid), -1) for member, tid in zip(states["member"], states["tid"], strict=True)]
    own = states.assign(row=rows)
    return own[own["row"] >= 0].sort_values(["row", "begin_ms"]).drop(columns="row").reset_index(drop=True)


def _window(trace: Trace, ask: Ask, row: object, beats: pd.DataFrame, length: int) -> Shown:
    begin, end, scene = int(row.t0_ns), int(row.t1_ns), str(row.scene)  # type: ignore[attr-defined]
    middle = min((begin + end) // 2, end - length)
    own = beats[(beats["scene"] == scene) & (beats["t_ns"] >= middle) & (beats["t_ns"] <= end - length)]["t_ns"]
    at = int(own.iloc[0]) if len(own) else middle
    states = ask(_STATES, {"scene": scene, "begin": str(at), "end": str(at + length)})
    states["begin_ms"] = (states["t0_ns"].clip(lower=at) - at) / 1e6
    states["end_ms"] = (states["t1_ns"].clip(upper=at + length) - at) / 1e6
    states["trace"], states["scene"] = trace.name, scene
    inside = beats[(beats["t_ns"] >= at) & (beats["t_ns"] <= at + length)]["t_ns"]
    first = int(ask("SELECT origin_ns FROM traces")["origin_ns"].iloc[0])
    return Shown(trace, scene, length / 1e9, (at - first) / 1e9, states[SHOWN], [(t - at) / 1e6 for t in inside])


def coloured(states: pd.DataFrame, length_ms: float) -> list[tuple[float, float, str]]:
    """Begin, length and state of each stretch of one thread, as fine as can be seen."""
    width = length_ms / PARTS
    parts = [dict.fromkeys(STATES, 0.0) for _ in range(PARTS)]
    states = states[states["state"].isin(STATES)]
    for begin, end, state in zip(states["begin_ms"], states["end_ms"], states["state"], strict=True):
        first = min(PARTS - 1, int(begin / width))
        for part in range(first, min(PARTS - 1, int(end / width)) + 1):
            time = min(end, (part + 1) * width) - max(begin, part * width)
            parts[part][state] += time
    found: list[tuple[float, float, str]] = []
    for place, times in enumerate(parts):
        state = max(times, key=lambda name: times[name])
        if times[state] < width - sum(times.values()):
            continue  # of most of this part nothing is known
        if found and found[-1][2] == state and abs(found[-1][0] + found[-1][1] - place * width) < width / 2:
            found[-1] = (found[-1][0], found[-1][1] + width, state)
        else:
            found.append((place * width, width, state))
    return found
