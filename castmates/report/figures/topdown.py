"""The figure `topdown`: where the slots of each lead's processors go, alone and beside its antagonists."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED
from castmates.analysis.explanations.topdown import NAMES, NEEDED, why_none
from castmates.analysis.explanations.topdown import tables as shares_and_changes
from castmates.report.figures.neighbours import beside, neighbours, other_looks, user_first
from castmates.report.figures.panels import NOTE, finish, fitting, legend, small_print, stacked, without_axis
from castmates.report.figures.style import (
    GREY,
    INK,
    PAGE,
    SMALL,
    badge_room,
    broken,
    empty_figure,
    styled,
)
from castmates.report.figures.values import with_value
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, number, plain, units
from castmates.study.spec import UNMANAGED
from castmates.study.topdown_tree import children, of_level

LEFT, RIGHT = 1.5, 1.75  # inches beside the bars
LINE, HEAD = 0.27, 0.3  # inches of one scene, above a panel
LAST = "#9a9a9a"  # of the last category of level 1, what none of the others has
# Of each family of level 2 one is hatched; the other is what remains.
HATCHED = ("Fetch_Latency", "Branch_Mispredicts", "Heavy_Operations", "Retiring_Microcode", "Memory_Bound")
DRAWN = 12  # values that the text alternative names
_ON_HATCH = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the shares of every scene, and their changes against solo."""
    table, change = tables(results)
    keys = ["lead", "member", "mix", "partition", "phase", "level", "metric", "platform"]
    points = change.drop(columns=["solo", "corun", "blocks"]).assign(kind="corun")
    source = table.merge(points, on=[*keys, "kind"], how="left") if len(change) else table
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), pd.DataFrame(source)
        return _figure(_ordered(drawn(table), results), change, results), pd.DataFrame(source)


@once
def tables(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The shares, and their changes against solo."""
    return shares_and_changes(results.block_parts("topdown", NEEDED, NAMES), results.windows)


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """What has a bar: whole windows without a partition."""
    return table[(table["phase"] == "") & (table["partition"] == UNMANAGED)]


def _ordered(table: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The user's programs first, each alone and then beside its neighbours, in the study's order."""
    leads = {name: place for place, name in enumerate(user_first(results, table["lead"]))}
    others = {name: place for place, name in enumerate(neighbours(results))}
    keys = pd.DataFrame(
        {"lead": table["lead"].map(leads), "beside": table["mix"].map(lambda mix: others.get(beside(str(mix)), -1))}
    )
    return table.loc[keys.sort_values(["lead", "beside"], kind="stable").index]


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if len(drawn(tables(results)[0])):
        return ""
    status, reason = why_none(results.block_parts("topdown", NEEDED, NAMES), results.windows)
    if status:
        return f"Top-Down is {status} here: {reason}."
    return f"No valid measurement of the study {results.name} has a Top-Down metric of its program."


def _figure(table: pd.DataFrame, change: pd.DataFrame, results: Results) -> Figure:
    panels = [rows for _, rows in table.groupby(["platform", "lead", "member"], sort=False)]
    count = fitting([HEAD + _height(rows) for rows in panels], around=1.5)
    panels, more = panels[:count], len(panels) - count
    heights = [_height(rows) for rows in panels]
    *names, last = of_level(1)
    colours = {name: look[0] for name, look in other_looks(results, names).items()} | {last: LAST}
    key = _key(table, change, results) + (f"; {counted(more, 'more program')} in the CSV" if more else "")
    notes = small_print(PAGE, key, results)
    foot = 0.95 + NOTE * len(notes)
    figure, places = stacked(heights, HEAD, LEFT, RIGHT, 0.08 + badge_room(caveat(results), PAGE), foot)
    for axes, rows in zip(places, panels, strict=True):
        _panel(axes, rows, change, colours, is_last=rows is panels[-1])
    keys = _keys(table, colours)
    top = (foot - 0.45) / figure.get_figheight()
    legend(figure, keys, top, min(3, len(keys)), handletextpad=0.4, columnspacing=1.2)
    return finish(figure, notes, results)


def _height(rows: pd.DataFrame) -> float:
    """Room for a panel's bars, and for the longest name beside one."""
    names = [_label(mix) for mix, _ in _scenes(rows)]
    return len(names) * max(LINE, *(0.05 + 0.11 * (name.count("\n") + 1) for name in names))


def _label(mix: str) -> str:
    return broken(f"beside {_beside(mix)}", 24) if mix else "alone"


def _scenes(rows: pd.DataFrame) -> list[tuple[str, dict[str, Row]]]:
    """Each scene's shares by category, solo first."""
    return [
        (str(mix), {row["metric"]: row for row in records(group)})
        for (_, mix), group in rows.groupby(["kind", "mix"], sort=False)
    ]


def _panel(axes: Axes, rows: pd.DataFrame, change: pd.DataFrame, colours: dict[str, str], is_last: bool) -> None:
    first = records(rows)[0]
    ticks = []
    for y, (mix, shares) in enumerate(_scenes(rows)):
        ticks.append(_label(mix))
        _bar(axes, y, shares, colours)
        mine = [row for row in records(change) if _is_of(row, first, mix)]
        axes.text(102, y, _words(mine) if mix else "", va="center", ha="left", fontsize=SMALL, color=INK)
    axes.set_yticks(range(len(ticks)), ticks)
    axes.set_ylim(len(ticks) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    without_axis(axes)
    axes.set_title(plain(str(first["lead"])), loc="left", pad=4, fontweight="bold")
    if is_last:
        axes.set_xlabel("per cent of the processor's slots")
    else:
        axes.tick_params(axis="x", labelbottom=False)


def _bar(axes: Axes, y: float, shares: dict[str, Row], colours: dict[str, str]) -> None:
    """One scene: the categories of level 1 beside each other, what is known of level 2 hatched within them."""
    at = 0.0
    for name, colour in colours.items():
        if name not in shares:
            continue
        row = shares[name]
        width = max(row["share"], 0.0)
        pale = 0.5 if row["running"] < FULLY_COUNTED else 1.0
        (bar,) = axes.barh(y, width, left=at, height=0.68, color=colour, alpha=pale, linewidth=0)
        with_value(bar, f"{name.replace('_', ' ')}: {number(row['share'])} % of the slots")
        below = {child: shares[child]["share"] for child in children(name) if child in shares}
        marked = [child for child in below if child in HATCHED]
        if marked and sum(below.values()) > 0:
            # Levels may come from different rounds: the part is drawn as large as it is among its siblings.
            part = width * max(below[marked[0]], 0.0) / sum(below.values())
            axes.barh(y, part, left=at, height=0.68, color="none", edgecolor="white", hatch="/////", linewidth=0)
        if width >= 7:
            axes.text(
                at + width / 2, y, f"{row['share']:.0f}", va="center", ha="center", fontsize=SMALL, bbox=_ON_HATCH
            )
        at += width


def _is_of(row: Row, first: Row, mix: str) -> bool:
    same = all(row[key] == first[key] for key in ("platform", "lead", "member"))
    return same and row["mix"] == mix and row["partition"] == UNMANAGED and row["phase"] == ""


def _words(change: list[Row]) -> str:
    """The category of level 1 that changed most, in points, and what of level 2 did."""
    lines = []
    for level in (1, 2):
        of = [row for row in change if row["level"] == level]
        if of:
            lines.append(_change(max(of, key=lambda row: abs(row["points"]))))
    return "\n".join(lines)


def _change(row: Row) -> str:
    low, high = ("points_low", "points_high") if not math.isnan(row["points_low"]) else ("within_low", "within_high")
    name = row["metric"].replace("_", " ")
    sign = "+" if row["points"] >= 0 else ""
    return f"{name} {sign}{number(row['points'])} {interval(row[low], row[high])}".strip()


def _keys(table: pd.DataFrame, colours: dict[str, str]) -> list[Patch]:
    there = set(table["metric"])
    keys = [Patch(facecolor=colour, label=name.replace("_", " ")) for name, colour in colours.items() if name in there]
    marked = [name.replace("_", " ") for name in HATCHED if name in there]
    if marked:
        label = "of which " + ", ".join(marked)
        keys.append(Patch(facecolor=GREY, edgecolor="white", hatch="/////", linewidth=0, label=label))
    return keys


def _key(table: pd.DataFrame, change: pd.DataFrame, results: Results) -> str:
    parts = ["right: the largest change against alone, in points, with its 95 % interval"] if len(change) else []
    if len(change):
        within = change["points_low"].isna().any()
        parts.append("within launch where there are fewer than three launches" if within else "between launches")
    if (table["running"] < FULLY_COUNTED).any():
        parts.append("pale: counted for part of the time only, as the counters were lent out in turn, and in no change")
    if results.partitioned:
        parts.append("pairs under partitions are in the CSV")
    return "; ".join(parts)


def _beside(mix: str) -> str:
    return plain(mix).partition("+")[2] or plain(mix)


def caption(results: Results) -> str:
    """What the figure shows, and what it is made of."""
    table, change = tables(results)
    if drawn(table).empty:
        return f"{lacking(results)} "
    of = units(drawn(change)["blocks"] if len(change) else [])
    return (
        "Where the issue slots of each program's processors go, in per cent, alone and beside its neighbours. Right: "
        f"the category that changed most, in points, with its 95 % t interval between launches ({of}), not widened for "
        "having been picked. "
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    table, change = tables(results)
    if drawn(table).empty:
        return lacking(results)
    of_scene: dict[tuple[str, str], list[Row]] = {}
    for row in records(change):
        if row["level"] == 1 and not row["phase"] and row["partition"] == UNMANAGED:
            of_scene.setdefault((row["lead"], row["mix"]), []).append(row)
    largest = [max(of, key=lambda row: abs(row["points"])) for of in of_scene.values()]
    parts = [f"{plain(row['lead'])} beside {_beside(row['mix'])}: {_change(row)}" for row in largest[:DRAWN]]
    more = f"; and {len(largest) - DRAWN} more" if len(largest) > DRAWN else ""
    if not parts:
        alone = [row for row in records(drawn(table)) if row["level"] == 1]
        return "Top-Down shares: " + "; ".join(
            f"{plain(row['lead'])} {row['metric'].replace('_', ' ')} {number(row['share'])} %" for row in alone[:DRAWN]
        ) + "."  # fmt: skip
    return f"Largest changes of Top-Down shares against alone, in points: {'; '.join(parts)}{more}."
