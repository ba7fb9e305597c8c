"""Marks with their intervals, their keys in the legend, and the words that the page shows where they are pointed at.

These words travel as the mark's `gid`, the only thing that matplotlib writes beside a mark into an SVG.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from castmates.report.figures.style import GREY, INK, MARKERS, PREFIX, Look, Name, looks_of
from castmates.report.results import Results, once
from castmates.report.text.words import Row, interval, number, plain
from castmates.study.spec import Plan

BETWEEN = " \N{BROKEN BAR} "
WITHIN_LAUNCH: LineStyleType = (0, (2, 1.2))  # dashes of an interval that covers these launches only
Mark = TypeVar("Mark", bound=Artist)


def with_value(mark: Mark, *words: str) -> Mark:
    """The mark with what it is; of a collection of points with that of each point."""
    mark.set_gid(PREFIX + BETWEEN.join(words))
    return mark


def values_of(identifier: str) -> Sequence[str]:
    """The words behind an identifier; none where it is another one."""
    return identifier.removeprefix(PREFIX).split(BETWEEN) if identifier.startswith(PREFIX) else ()


def with_ends(value: float, low: float, high: float, digits: int = 1, unit: str = " %") -> str:
    """12.0 % [10.0, 14.0]; without an interval where there is none."""
    return f"{number(value, digits)}{unit}" + ("" if math.isnan(low) else f" {interval(low, high, digits)}")


def ends_of(row: Row, name: str) -> tuple[float, float, bool]:
    """The interval to draw, and whether it covers these launches only: there were too few for another one."""
    within = math.isnan(row[f"{name}_low"])
    low, high = ("within_low", "within_high") if within else (f"{name}_low", f"{name}_high")
    return row[low], row[high], within


def dot(
    axes: Axes, x: float, y: float, look: Look, words: str, hollow: bool = False, size: float = 4.0, zorder: float = 4
) -> None:
    """A mark in its colour, which says what it is."""
    colour, marker = look
    face = "white" if hollow else colour
    (mark,) = axes.plot(
        [x], [y], marker, color=colour, markerfacecolor=face, markersize=size, linestyle="", zorder=zorder
    )
    with_value(mark, words)


def bar(
    axes: Axes, place: float, low: float, high: float, colour: str, *,
    width: float = 1.2, line: LineStyleType = "-", upright: bool = False, zorder: float = 3,
) -> None:  # fmt: skip
    """The interval of a mark, lying or upright; nothing where there is none."""
    if not math.isnan(low):
        ends, at = [low, high], [place, place]
        x, y = (at, ends) if upright else (ends, at)
        axes.plot(x, y, color=colour, linewidth=width, linestyle=line, zorder=zorder)


def legend_key(
    label: str, look: Look, *, hollow: bool = False, size: float = 4.5, line: LineStyleType = "", width: float = 1.0
) -> Line2D:
    """What a mark is, in the legend; with its line, where it has one."""
    colour, marker = look
    face = "white" if hollow else colour
    return Line2D(
        [], [], color=colour, marker=marker, markersize=size, markerfacecolor=face, linestyle=line, linewidth=width,
        label=label,
    )  # fmt: skip


# One colour and one marker for each antagonist, and for being alone: the same in all figures of a study.

BESIDE = "beside "
# What runs without an antagonist has no colour.
BASELINES: dict[str, Look] = {"alone": (INK, "o"), "alone-again": (GREY, "o"), "placebo": ("#9a9a9a", "d")}


def looks(results: Results, names: Iterable[str]) -> dict[str, Look]:
    """Colour and marker of these antagonists; one that sits on several CPUs (stream@1) has one colour for all of them.

    The order of the study decides, not what a figure happens to show.
    """
    return looks_in_order(antagonists(results), names)


def looks_of_scenes(results: Results, scenes: Iterable[str]) -> dict[str, Look]:
    """By what ran: the baselines first, then `beside …` in the study's order."""
    there = set(scenes)
    names = {what.removeprefix(BESIDE) for what in there if what.startswith(BESIDE)}
    besides = {f"{BESIDE}{name}": look for name, look in looks(results, in_order(results, names)).items()}
    return {what: look for what, look in BASELINES.items() if what in there} | besides


def in_order(results: Results, names: Iterable[str]) -> list[str]:
    """These antagonists in the study's order, then others by their names."""
    known = {name: place for place, name in enumerate(antagonists(results))}
    return sorted(names, key=lambda name: (known.get(plain(name), len(known)), name))


def looks_in_order(order: Iterable[str], names: Iterable[str]) -> dict[str, Look]:
    """The same, where only the order of the antagonists is known."""
    names = list(dict.fromkeys(names))
    known = looks_of(dict.fromkeys(filter(None, [*order, *map(plain, names)])), shift=1)
    found: dict[str, Look] = {}
    seats: Counter[str] = Counter()
    for name in names:
        if not name:
            found[name] = BASELINES["alone"]
            continue
        colour, marker = known[plain(name)]
        found[name] = colour, MARKERS[(MARKERS.index(marker) + seats[plain(name)]) % len(MARKERS)]
        seats[plain(name)] += 1
    return found


def other_looks(results: Results, names: Iterable[Name]) -> dict[Name, Look]:
    """Looks of things that are no antagonists: in colours that no antagonist has, as long as there are any."""
    known, names = antagonists(results), list(dict.fromkeys(names))
    whole = looks_of(range(len(known) + len(names)), shift=1)
    return {name: whole[len(known) + place] for place, name in enumerate(names)}


@once
def antagonists(results: Results) -> list[str]:
    """Everybody who runs beside a lead, together and one by one: in the plan's order, those of the controls last."""
    together = [str(name) for name in results.effects["antagonists"].unique()]
    for names in (results.controls["mix"], results.windows["mix"]):
        together += [beside(str(name)) for name in names.dropna().unique()]
    return antagonists_of(results.plan, together)


def antagonists_of(plan: Plan, more: Iterable[str] = ()) -> list[str]:
    """Those of a plan in its order, then more that were measured."""
    mixes = (*plan.mixes, *(control.mix for control in plan.controls))
    together = [plain(name) for name in (*("+".join(mix.antagonists) for mix in mixes), *more)]
    single = [name for names in together for name in names.split("+")]
    return [name for name in dict.fromkeys([*together, *single]) if name]


def beside(mix: str) -> str:
    """Who runs beside the lead of a mix: `dlrm@0+stream@1` is `stream`."""
    return plain(mix.partition("+")[2])


def user_first(results: Results, leads: Iterable[str]) -> list[str]:
    """These leads, each once: those of the study in its order, then those that only controls have."""
    order = {name: place for place, name in enumerate(results.leads)}
    return sorted(dict.fromkeys(leads), key=lambda name: order.get(plain(name), len(order)))
