"""The figure `counters`: what each lead's counters count per unit of its progress beside antagonists, against solo."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, USABLE, USER_ONLY
from castmates.analysis.explanations.counters import NAMES, NEEDED
from castmates.analysis.explanations.counters import tables as changes_and_left_out
from castmates.report.figures.neighbours import beside as beside_of
from castmates.report.figures.neighbours import looks, neighbours, user_first
from castmates.report.figures.panels import (
    NOTE,
    SmallPrint,
    columns_for,
    finish,
    fitting,
    legend,
    small_print,
    stacked,
    without_axis,
)
from castmates.report.figures.style import GREY, PAGE, Look, badge_room, broken, empty_figure, styled
from castmates.report.figures.values import with_value
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import interval, plain, units
from castmates.study.spec import UNMANAGED

LEFT, RIGHT = 2.3, 0.12  # inches beside the axes
LINE, GAP, HEAD = 0.13, 0.14, 0.42  # inches of one scene, between two metrics, above a panel
SECONDS = ("task-clock", "cpu-clock")  # which the kernel counts in ns
RARE = 1e-3  # per unit of progress; shown per million
BESIDE = 6  # co-runs of a lead that are drawn
DRAWN = 12  # values that the text alternative names
SCOPES = {"cgroup": "control group", "cpu": "CPU (whatever ran there)"}
NAMED = 3  # events that a status names in a sentence; the CSV has the others


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the changes, then the events that are in none of them, with the reason."""
    table, missing = tables(results)
    left_out = missing.rename(columns={"event": "metric"})
    source = pd.concat([table, left_out], ignore_index=True) if len(left_out) else table
    with styled():
        if reason := lacking(results):
            return empty_figure(reason, caveat(results)), source
        shown = table[table["partition"] == UNMANAGED]
        return _figure(most_changed(shown), len(shown), missing, results), source


@once
def tables(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The changes, and the events that are in none of them."""
    return changes_and_left_out(results.block_parts("counters", NEEDED, NAMES), results.windows)


def lacking(results: Results) -> str:
    """Why there is nothing to show: nothing was counted, or nothing but time, which is the rate once more."""
    table, missing = tables(results)
    shown = table[table["partition"] == UNMANAGED] if len(table) else table
    if shown.empty:
        sentence = f"No event could be compared between beside and alone in the study {results.name}."
    elif set(shown["metric"]) <= set(SECONDS):
        sentence = "Only processor time could be counted, which is the rate once more."
    else:
        return ""
    return f"{sentence} Not counted: {lacking_words(missing)}" if len(missing) else sentence


def lacking_words(lacking: pd.DataFrame) -> str:
    """Which events are in no ratio, and why."""
    parts = []
    for (status, reason), rows in lacking.groupby(["status", "reason"], sort=False) if len(lacking) else ():
        events = rows["event"].tolist()
        more = f" and {len(events) - NAMED} more" if len(events) > NAMED else ""
        why = reason if status in USABLE else f"{status}: {reason}"
        parts.append(f"{', '.join(events[:NAMED])}{more} ({why})")
    return "; ".join(parts) + ("." if parts else "")


def ordered(table: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The user's programs first, and their neighbours in the study's order."""
    leads = {name: place for place, name in enumerate(user_first(results, table["lead"]))}
    others = {name: place for place, name in enumerate(neighbours(results))}
    keys = pd.DataFrame({"lead": table["lead"].map(leads), "mix": table["mix"].map(beside_of).map(others)})
    return table.loc[keys.sort_values(["lead", "mix"], kind="stable").index]


def most_changed(table: pd.DataFrame) -> pd.DataFrame:
    """Each lead beside those with the largest change of some ratio: more of them would fit on no page."""
    lead, changes = ["lead", "member", "platform"], table.assign(change=table["ratio"].map(math.log).abs())
    mixes = changes.groupby([*lead, "mix"], sort=False)["change"].max().reset_index()
    kept = mixes.sort_values("change", ascending=False, kind="stable").groupby(lead).head(BESIDE)
    return table.merge(kept[[*lead, "mix"]], on=[*lead, "mix"])


def _figure(table: pd.DataFrame, known: int, missing: pd.DataFrame, results: Results) -> Figure:
    """Draw these changes, of so many that are known."""
    table = ordered(table.reset_index(drop=True), results)
    panels = [rows for _, rows in table.groupby(["lead", "member"], sort=False)]
    panels = panels[: fitting([HEAD + _height(rows) for rows in panels], around=2.0)]
    table, heights = pd.concat(panels), [_height(rows) for rows in panels]
    by_name = looks(results, table["mix"].map(beside_of))
    notes = _words_below(table, known, missing, results)
    columns = columns_for(by_name, PAGE)
    foot = 0.62 + 0.17 * math.ceil(len(by_name) / columns) + NOTE * len(notes)
    figure, places = stacked(heights, HEAD, LEFT, RIGHT, badge_room(caveat(results), PAGE), foot)
    reach = _reach(table)
    for axes, rows in zip(places, panels, strict=True):
        _panel(axes, rows, by_name, reach, is_last=rows is panels[-1])
    legend(figure, _keys(by_name), (foot - 0.48) / figure.get_figheight(), columns)
    return finish(figure, notes, results)


def _height(rows: pd.DataFrame) -> float:
    lines = sum(max(2, count) for count in rows.groupby("metric", sort=False).size())
    return LINE * lines + GAP * rows["metric"].nunique()


def _panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, Look], reach: float, is_last: bool) -> None:
    axes.axvline(1.0, color=GREY, linewidth=0.6, zorder=1)
    y, ticks, labels = 0.0, [], []
    for index, (metric, group) in enumerate(rows.groupby("metric", sort=False)):
        lines = max(2, len(group))
        begin, y = y, y + LINE * lines + GAP
        if index % 2:
            axes.axhspan(begin, y, color="#f5f5f5", linewidth=0, zorder=0)
        ticks.append((begin + y) / 2)
        labels.append(_label(str(metric), records(group)))
        first = (begin + y) / 2 - LINE * (len(group) - 1) / 2
        for line, row in enumerate(records(group)):
            _point(axes, first + LINE * line, row, looks[beside_of(row["mix"])])
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    axes.set_ylim(y, 0)
    axes.set_yticks(ticks, labels)
    without_axis(axes)
    _ticks(axes, reach)
    axes.set_title(plain(str(rows["lead"].iloc[0])), loc="left", pad=4, fontweight="bold")
    if is_last:
        axes.set_xlabel("beside neighbours / alone, per unit of progress")


def _point(axes: Axes, y: float, row: dict[str, Any], look: Look) -> None:
    colour, marker = look
    within = math.isnan(row["ratio_low"])
    low, high = (row["within_low"], row["within_high"]) if within else (row["ratio_low"], row["ratio_high"])
    if not math.isnan(low):
        axes.plot(
            [low, high], [y, y], color=colour, linewidth=1.4, linestyle=(0, (2, 1.2)) if within else "-", zorder=3
        )
    (point,) = axes.plot([row["ratio"]], [y], marker, color=colour, markersize=4.2, zorder=4)
    ends = "" if math.isnan(low) else f" {interval(low, high, 2)}"
    with_value(point, f"{row['metric']} beside {beside_of(row['mix'])}: {row['ratio']:.3g} times alone{ends}")


def _label(metric: str, rows: list[dict[str, Any]]) -> str:
    """The metric, and what it is in solo windows."""
    unit = rows[0]["unit"]
    solo = math.exp(sum(math.log(row["solo"]) for row in rows) / len(rows))
    if unit and solo < RARE and metric not in SECONDS:
        return f"{broken(metric, 34)}\nalone {amount(1e6 * solo)} per 10⁶ {unit}"
    return f"{broken(metric, 34)}\nalone {amount(solo, metric)}" + (f" per {unit}" if unit else "")


def amount(value: float, metric: str = "") -> str:
    """A count in three digits with its prefix; clocks in seconds."""
    if metric in SECONDS:
        value /= 1e9
    if value <= 0:
        return f"{value:g}"
    power = min(max(math.floor(math.log10(float(f"{value:.2e}")) / 3), -4), 4)
    prefix = {-4: "p", -3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}[power]
    if metric not in SECONDS and power < 0:
        power, prefix = 0, ""  # thousandths of a fault are no usual unit
    return f"{float(f'{value / 1000**power:.3g}'):g} {prefix}{'s' if metric in SECONDS else ''}".strip()


def _reach(table: pd.DataFrame) -> float:
    """Symmetric around one on the log axis, wide enough for all that is drawn, and never so narrow as to show noise."""
    drawn = [row[name] for row in records(table) for name in ("ratio", *_bounds(row))]
    logs = [abs(math.log(value)) for value in drawn if value > 0 and math.isfinite(value)]
    return math.exp(min(1.12 * max([*logs, math.log(1.05)]), math.log(1e4)))


def _bounds(row: dict[str, Any]) -> tuple[str, str]:
    return ("within_low", "within_high") if math.isnan(row["ratio_low"]) else ("ratio_low", "ratio_high")


def _ticks(axes: Axes, reach: float) -> None:
    """Few ticks, as ratios that people read."""
    steps = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000)
    chosen = {max(step for step in steps if step <= bound) for bound in (reach, math.sqrt(reach)) if bound >= steps[0]}
    ticks = sorted({1.0, *chosen, *(1 / step for step in chosen)})
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}" if value < 1 else f"{value:.3g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _keys(looks: dict[str, Look]) -> list[Line2D]:
    return [
        Line2D([], [], linestyle="", marker=marker, markersize=4.5, color=colour, label=f"beside {name}")
        for name, (colour, marker) in looks.items()
    ]


def _words_below(table: pd.DataFrame, known: int, missing: pd.DataFrame, results: Results) -> SmallPrint:
    dashed = {math.isnan(row["ratio_low"]) for row in records(table)}
    parts = ["bar: 95 % between launches"] if False in dashed else []
    parts += ["dashed bar: 95 % within launch only"] if True in dashed else []
    parts += [way] if (way := how_counted(table)) else []
    if len(table) < known:
        parts.append(f"the {BESIDE} neighbours of a program that change most, as many programs as fit; the CSV has all")
    parts += ["pairs under partitions are in the CSV"] if results.partitioned else []
    parts += [f"not shown: {lacking_words(missing)}"] if len(missing) else []
    return small_print(PAGE, "; ".join(parts), results)


def how_counted(table: pd.DataFrame) -> str:
    """By which scopes, and whether the kernel's part is in it."""
    scopes = sorted({scope for text in table["scope"] for scope in text.split(", ") if scope})
    by = f"counted by {' and '.join(SCOPES.get(scope, scope) for scope in scopes)}" if scopes else ""
    modes = set(table["mode"])
    user = "" if modes <= {""} else USER_ONLY if "" not in modes else f"some events in {USER_ONLY}"
    return ", ".join(filter(None, (by, user)))


def caption(results: Results) -> str:
    """The caption, without the part that all captions share."""
    table, _ = tables(results)
    of = units(table.loc[table["partition"] == UNMANAGED, "blocks"])
    return (
        "What was counted for each program per unit of its own progress, beside its neighbours over alone, with 95 % t "
        f"intervals between launches ({of}). Events that were counted for less than {FULLY_COUNTED:.0%} of the time "
        "are left out. "
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    table, _ = tables(results)
    if reason := lacking(results):
        return reason
    shown = ordered(table[table["partition"] == UNMANAGED].reset_index(drop=True), results)
    parts = [
        f"{row['metric']} of {plain(row['lead'])} beside {beside_of(row['mix'])} {row['ratio']:.3g} times alone"
        for row in records(shown)[:DRAWN]
    ]
    more = f"; and {len(shown) - DRAWN} more" if len(shown) > DRAWN else ""
    return f"Counters beside neighbours over alone: {'; '.join(parts)}{more}."
