"""The figure `scheduler`: what the busiest threads of a trace did in a few steps, alone and beside others."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from castmates.report.figures.panels import NOTE, finish, fitting, legend, small_print, stacked, without_axis
from castmates.report.figures.scheduler_rows import SHOWN, STATES, Shown, coloured, shown
from castmates.report.figures.style import GREY, INK, PAGE, SMALL, badge_room, empty_figure, squeezed, styled
from castmates.report.figures.values import with_value
from castmates.report.results import Results
from castmates.report.text.stamps import caveat
from castmates.report.text.trace_states import WORDS
from castmates.report.text.words import counted, number, plain

FIGURE = {"title": "What threads did", "part": "traces", "place": 290, "needs": "TRACES"}
COLOURS = {"running": "#009e73", "runnable": "#e69f00", "preempted": "#d55e00", "blocked": "#d0d0d0"}
LEFT, RIGHT, LINE, HEAD, AXIS, KEYS = 1.75, 0.15, 0.15, 0.3, 0.32, 0.24  # inches
LETTERS = 29  # of a thread's name
HIGH = 0.72  # of a line


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    found = shown(results)
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), pd.DataFrame(columns=SHOWN)
        return _figure(found, results), pd.concat([each.states for each in found], ignore_index=True)


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if shown(results):
        return ""
    return f"No trace of the study {results.name} has states of threads (castmates help tracing)."


def caption(results: Results) -> str:
    """What stands below the figure."""
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
    """What is read aloud in the figure's place."""
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
    rows = [_threads(each.states) for each in found]
    heights = [LINE * len(each) for each in rows]
    count = fitting([HEAD + AXIS + height for height in heights], around=1.0)
    key = "a part is 1/700 of the window; white: nothing is known; the CSV has every state"
    key += f"; not drawn: {counted(len(found) - count, 'more scene')}" if len(found) > count else ""
    notes = small_print(PAGE, key, results)
    foot = 0.08 + NOTE * len(notes)
    top = KEYS + badge_room(caveat(results), PAGE)
    figure, places = stacked([height + AXIS for height in heights[:count]], HEAD, LEFT, RIGHT, top, foot)
    several = len({each.trace.name for each in found}) > 1
    for axes, each, threads in zip(places, found[:count], rows, strict=False):
        place = axes.get_position()
        whole = place.height * figure.get_size_inches()[1]
        axes.set_position(
            (place.x0, place.y0 + place.height * AXIS / whole, place.width, place.height * (1 - AXIS / whole))
        )
        _panel(axes, each, threads, f" ({each.trace.name})" if several else "")
    keys = [Patch(facecolor=COLOURS[state], label=WORDS[state]) for state in STATES]
    height = figure.get_size_inches()[1]
    legend(
        figure,
        keys,
        1 - (0.02 + badge_room(caveat(results), PAGE)) / height,
        len(keys),
        handlelength=1.2,
        handletextpad=0.5,
    )
    return finish(figure, notes, results)


def _threads(states: pd.DataFrame) -> list[tuple[str, int, str]]:
    """Member, number and name of each thread, in the order of the rows."""
    first = states.drop_duplicates(["member", "tid"])
    return list(zip(first["member"], first["tid"], first["thread"], strict=True))


def _panel(axes: Axes, each: Shown, threads: list[tuple[str, int, str]], trace: str) -> None:
    length = 1e3 * each.seconds
    for y, (member, tid, thread) in enumerate(threads):
        own = each.states[(each.states["member"] == member) & (each.states["tid"] == tid)]
        whole = (own["end_ms"] - own["begin_ms"]).groupby(own["state"]).sum()
        words = ", ".join(f"{WORDS[state]} {number(whole[state], 2)} ms" for state in STATES if state in whole)
        for begin, wide, state in coloured(own, length):
            mark = Rectangle(
                (begin, y + (1 - HIGH) / 2), wide, HIGH, facecolor=COLOURS.get(state, GREY), linewidth=0, zorder=2
            )
            axes.add_patch(with_value(mark, f"{plain(member)}, {thread} {tid}: {words}"))
    for at in each.steps_ms:
        axes.axvline(at, color=INK, linewidth=0.7, zorder=3)
    axes.set_xlim(0, length)
    axes.set_ylim(len(threads), 0)
    names = [
        f"{plain(member)} {squeezed(thread, max(8, LETTERS - len(plain(member))), 1)}" for member, _, thread in threads
    ]
    axes.set_yticks([y + 0.5 for y in range(len(threads))], names, fontsize=SMALL)
    axes.set_title(f"{_scene_words(each)}, traced{trace}", loc="left", pad=4, fontweight="bold")
    axes.set_xlabel(f"ms, from {number(each.at_s, 2)} s of the trace", labelpad=1, fontsize=SMALL)
    axes.tick_params(axis="x", labelsize=SMALL, pad=1)
    without_axis(axes)
