"""The figure `topdown`: where the slots of each lead's processors go, alone and beside its antagonists."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from castmates.analysis.core import once
from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, NAMES, NEEDED, why_none
from castmates.analysis.explanations.counted_metrics import topdown_tables as shares_and_changes
from castmates.report.figures.antagonists import antagonists, beside, other_looks, user_first
from castmates.report.figures.marks import ends_of, with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, without_axis
from castmates.report.figures.style import GREY, INK, SMALL, broken
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, counted, number, plain, units
from castmates.study.counter_keys import children, of_level
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Top-Down", "part": "why", "place": 200, "needs": "TOPDOWN"}
DRAWN = 12  # values that the text alternative names
LEFT, RIGHT = 1.5, 1.75  # inches beside the bars
LINE, HEAD = 0.27, 0.3  # inches of one scene, above a panel
LAST = "#9a9a9a"  # of the last category of level 1, what none of the others has
# Of each family of level 2 one is hatched; the other is what remains.
HATCHED = ("Fetch_Latency", "Branch_Mispredicts", "Heavy_Operations", "Retiring_Microcode", "Memory_Bound")
_ON_HATCH = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
Row = dict[str, Any]
Panels = list[tuple[str, pd.DataFrame]]  # the title and the rows of one program, or of one phase of its step


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the shares of every scene, and their changes against alone."""
    table, change = tables(results)
    return drawing(
        results, with_points(table, change), lacking, lambda: bars(_panels(table, results), change, "program", results)
    )


def _panels(table: pd.DataFrame, results: Results) -> Panels:
    groups = ordered(drawn(table), results).groupby(["platform", "lead", "member"], sort=False)
    return [(plain(str(lead)), rows) for (_, lead, _), rows in groups]


def with_points(table: pd.DataFrame, change: pd.DataFrame) -> pd.DataFrame:
    """The shares, each beside others with its change."""
    if change.empty:
        return table
    keys = ["lead", "member", "mix", "partition", "phase", "level", "metric", "platform", "kind"]
    points = change.drop(columns=["alone", "corun", "launches"]).assign(kind="corun")
    return pd.DataFrame(table.merge(points, on=keys, how="left"))


@once
def tables(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The shares, and their changes against alone."""
    return shares_and_changes(results.launch_parts("topdown", NEEDED, NAMES), results.windows)


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """What has a bar: whole windows without a partition."""
    return table[(table["phase"] == "") & (table["partition"] == UNMANAGED)]


def ordered(table: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The user's programs first, each alone and then beside its antagonists, in the study's order."""
    leads = {name: place for place, name in enumerate(user_first(results, table["lead"]))}
    others = {name: place for place, name in enumerate(antagonists(results))}
    keys = pd.DataFrame(
        {"lead": table["lead"].map(leads), "beside": table["mix"].map(lambda mix: others.get(beside(str(mix)), -1))}
    )
    return table.loc[keys.sort_values(["lead", "beside"], kind="stable").index]


def lacking(results: Results) -> str:
    if len(drawn(tables(results)[0])):
        return ""
    return uncounted(results) or f"No valid window of the study {results.name} has a Top-Down metric of its lead."


@once
def uncounted(results: Results) -> str:
    """Why Top-Down was not counted at all; "" where it was."""
    status, reason = why_none(results.launch_parts("topdown", NEEDED, NAMES), results.windows)
    return f"Top-Down is {status} here: {reason}." if status else ""


def caption(results: Results) -> str:
    """What the figure shows, and what it is made of."""
    table, change = tables(results)
    if drawn(table).empty:
        return f"{lacking(results)} "
    of = units(drawn(change)["launches"] if len(change) else [])
    return (
        "Where the issue slots of each lead's processors go, in per cent, alone and beside its antagonists. Right: "
        f"the category that changed most, in points, with its 95 % t interval between launches ({of}), not widened for "
        "having been picked. "
    )


def alternative(results: Results) -> str:
    table, change = tables(results)
    if drawn(table).empty:
        return lacking(results)
    if said := largest_changes(drawn(change) if len(change) else change):
        parts = [f"{plain(row['lead'])} beside {beside_whom(row['mix'])}: {change_words(row)}" for row in said[:DRAWN]]
        more = f"; and {len(said) - DRAWN} more" if len(said) > DRAWN else ""
        return f"Largest changes of Top-Down shares against alone, in points: {'; '.join(parts)}{more}."
    alone = [row for row in records(drawn(table)) if row["level"] == 1]
    parts = [f"{plain(row['lead'])} {_spaced(row['metric'])} {number(row['share'])} %" for row in alone[:DRAWN]]
    return f"Top-Down shares: {'; '.join(parts)}."


def largest_changes(change: pd.DataFrame) -> list[Row]:
    """Of each scene of a program, or of a phase of its step, the category of level 1 that changed most."""
    of_scene: dict[tuple[str, str, str], list[Row]] = {}
    for row in records(change):
        if row["level"] == 1:
            of_scene.setdefault((row["lead"], row["mix"], row["phase"]), []).append(row)
    return [max(of, key=lambda row: abs(row["points"])) for of in of_scene.values()]


def bars(panels: Panels, change: pd.DataFrame, what: str, results: Results) -> Figure:
    """Draw as many panels as fit, scenes below each other; `what` the others are is named below."""
    heights = [_line(rows) * len(_scenes(rows)) for _, rows in panels]
    count = fitting([HEAD + height for height in heights], around=1.5)
    table = pd.concat([rows for _, rows in panels[:count]])
    *names, last = of_level(1)
    colours = {name: look[0] for name, look in other_looks(results, names).items()} | {last: LAST}
    sheet = Sheet(results)
    for axes, (title, rows) in zip(sheet.stacked(heights[:count], HEAD, LEFT, RIGHT), panels, strict=False):
        _panel(axes, rows, change, colours)
        axes.set_title(title, loc="left", pad=4, fontweight="bold")
        axes.tick_params(axis="x", labelbottom=False)
    axes.tick_params(axis="x", labelbottom=True)
    axes.set_xlabel("per cent of the processor's slots")
    sheet.skip(UNDER)
    there = set(table["metric"])
    keys = [Patch(facecolor=colour, label=_spaced(name)) for name, colour in colours.items() if name in there]
    if marked := [_spaced(name) for name in HATCHED if name in there]:
        label = f"of which {', '.join(marked)}"
        keys.append(Patch(facecolor=GREY, edgecolor="white", hatch="/////", linewidth=0, label=label))
    sheet.legend(keys, min(3, len(keys)))
    parts = []
    if len(change):
        few = change["points_low"].isna().any()
        parts.append("right: the largest change against alone, in points, with its 95 % interval")
        parts.append("within launch where there are fewer than three launches" if few else "between launches")
    if (table["running"] < FULLY_COUNTED).any():
        parts.append("pale: counted for part of the time only, as the counters were lent out in turn, and in no change")
    parts += ["mixes under partitions are in the CSV"] if results.partitioned else []
    more = f"; {counted(len(panels) - count, f'more {what}')} in the CSV" if len(panels) > count else ""
    return sheet.finish("; ".join(parts) + more)


def _line(rows: pd.DataFrame) -> float:
    """Inches of a panel's bar, with room for the longest name beside one."""
    return max(LINE, *(0.05 + 0.11 * (_label(mix).count("\n") + 1) for mix, _ in _scenes(rows)))


def _panel(axes: Axes, rows: pd.DataFrame, change: pd.DataFrame, colours: dict[str, str]) -> None:
    own = change[change["partition"] == UNMANAGED] if len(change) else change
    for name in ("platform", "lead", "member", "phase"):
        own = own[own[name] == rows[name].iloc[0]] if len(own) else own
    names = []
    for y, (mix, shares) in enumerate(_scenes(rows)):
        names.append(_label(mix))
        _bar(axes, y, shares, colours)
        changes = records(own[own["mix"] == mix]) if mix and len(own) else []
        # The category of level 1 that changed most, in points, and what of level 2 did.
        levels = ([row for row in changes if row["level"] == level] for level in (1, 2))
        words = [change_words(max(of, key=lambda row: abs(row["points"]))) for of in levels if of]
        axes.text(102, y, "\n".join(words), va="center", ha="left", fontsize=SMALL, color=INK)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    without_axis(axes)


def _label(mix: str) -> str:
    return broken(f"beside {beside_whom(mix)}", 24) if mix else "alone"


def _scenes(rows: pd.DataFrame) -> list[tuple[str, dict[str, Row]]]:
    """Each scene's shares by category, alone first."""
    return [
        (str(mix), {row["metric"]: row for row in records(group)})
        for (_, mix), group in rows.groupby(["kind", "mix"], sort=False)
    ]


def _bar(axes: Axes, y: float, shares: dict[str, Row], colours: dict[str, str]) -> None:
    """One scene: the categories of level 1 beside each other, what is known of level 2 hatched within them."""
    at = 0.0
    for name, colour in colours.items():
        if name not in shares:
            continue
        row = shares[name]
        width = max(row["share"], 0.0)
        pale = 0.5 if row["running"] < FULLY_COUNTED else 1.0
        (drawn,) = axes.barh(y, width, left=at, height=0.68, color=colour, alpha=pale, linewidth=0)
        with_value(drawn, f"{_spaced(name)}: {number(row['share'])} % of the slots")
        below = {child: shares[child]["share"] for child in children(name) if child in shares}
        marked = [child for child in below if child in HATCHED]
        if marked and sum(below.values()) > 0:
            # Levels may come from different rounds: the part is drawn as large as it is among its siblings.
            part = width * max(below[marked[0]], 0.0) / sum(below.values())
            axes.barh(y, part, left=at, height=0.68, color="none", edgecolor="white", hatch="/////", linewidth=0)
        if width >= 7:
            middle: Any = {"va": "center", "ha": "center", "fontsize": SMALL, "bbox": _ON_HATCH}
            axes.text(at + width / 2, y, f"{row['share']:.0f}", **middle)
        at += width


def change_words(row: Row) -> str:
    """A category and by how much it changed, in points, with its interval."""
    points = Quantity(row["points"], *ends_of(row, "points")[:2])
    return f"{_spaced(row['metric'])} {'+' if row['points'] >= 0 else ''}{points.whole}"


def _spaced(metric: str) -> str:
    return metric.replace("_", " ")


def beside_whom(mix: str) -> str:
    """The antagonists of a mix."""
    return beside(mix) or plain(mix)
