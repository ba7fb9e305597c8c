"""The figure `counters`: what each lead's counters count per unit of its progress beside antagonists, against alone."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from castmates.analysis.core import once
from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, USABLE, USER_ONLY
from castmates.analysis.explanations.counters import NAMES, NEEDED
from castmates.analysis.explanations.counters import counter_tables as changes_and_left_out
from castmates.report.figures.antagonists import antagonists, looks, user_first
from castmates.report.figures.antagonists import beside as beside_of
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, dot, ends_of, legend_key
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, without_axis
from castmates.report.figures.style import GREY, Look, broken
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Counters", "part": "why", "place": 220, "needs": "EVENTS"}
BESIDE = 6  # co-runs of a lead that are drawn
DRAWN = 12  # values that the text alternative names
SCOPES = {"cgroup": "control group", "cpu": "CPU (whatever ran there)"}
NAMED = 3  # events that a status names in a sentence; the CSV has the others
LEFT, RIGHT = 2.3, 0.12  # inches beside the axes
LINE, GAP, HEAD = 0.13, 0.14, 0.42  # inches of one scene, between two metrics, above a panel
SECONDS = ("task-clock", "cpu-clock")  # which the kernel counts in ns
RARE = 1e-3  # per unit of progress; shown per million


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the changes, then the events that are in none of them, with the reason."""
    table, missing = tables(results)
    left_out = missing.rename(columns={"event": "metric"})
    source = pd.concat([table, left_out], ignore_index=True) if len(left_out) else table
    return drawing(results, source, lacking, lambda: _figure(table[table["partition"] == UNMANAGED], results))


@once
def tables(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The changes, and the events that are in none of them."""
    return changes_and_left_out(results.launch_parts("counters", NEEDED, NAMES), results.windows)


def lacking(results: Results) -> str:
    """Why there is nothing to show: nothing was counted, or nothing but time, which is the rate once more."""
    table, missing = tables(results)
    shown = table[table["partition"] == UNMANAGED] if len(table) else table
    if shown.empty:
        sentence = f"No event could be compared between beside and alone in the study {results.name}."
    elif set(shown["metric"]) <= set(SECONDS):
        sentence = "No event could be counted but processor time, which says no more than the rate does."
    else:
        return ""
    return f"{sentence} Not counted: {lacking_words(missing)}" if len(missing) else sentence


def _figure(shown: pd.DataFrame, results: Results) -> Figure:
    rows = ordered(most_changed(shown).reset_index(drop=True), results)
    panels = [(plain(str(lead)), own) for (lead, _), own in rows.groupby(["lead", "member"], sort=False)]
    sheet, rows, _ = ratio_panels(panels, results)
    parts = how_sure(rows)
    parts += [way] if (way := how_counted(rows)) else []
    if len(rows) < len(shown):
        parts.append(f"the {BESIDE} antagonists of a lead that change most, as many leads as fit; the CSV has all")
    parts += ["mixes under partitions are in the CSV"] if results.partitioned else []
    missing = tables(results)[1]
    parts += [f"not shown: {lacking_words(missing)}"] if len(missing) else []
    return sheet.finish("; ".join(parts))


def ratio_panels(panels: Sequence[tuple[str, pd.DataFrame]], results: Results) -> tuple[Sheet, pd.DataFrame, int]:
    """As many panels as fit, each with its title, what they show, and how many there are besides."""
    count = fitting([HEAD + _height(rows) for _, rows in panels], around=2.0)
    drawn = pd.concat([rows for _, rows in panels[:count]])
    by_name, reach = looks(results, drawn["mix"].map(beside_of)), _reach(drawn)
    sheet = Sheet(results, head=0.0)
    for title, rows in panels[:count]:
        axes = sheet.panel(_height(rows), LEFT, RIGHT, above=HEAD)
        _panel(axes, rows, by_name, reach)
        axes.set_title(title, loc="left", pad=4, fontweight="bold")
    axes.set_xlabel("beside antagonists / alone, per unit of progress")
    sheet.skip(UNDER)
    sheet.legend([legend_key(f"beside {name}", look) for name, look in by_name.items()])
    return sheet, drawn, len(panels) - count


def how_sure(rows: pd.DataFrame) -> list[str]:
    """What the bars are."""
    dashed = set(rows["ratio_low"].isna())
    parts = ["bar: 95 % between launches"] if False in dashed else []
    return parts + (["dashed bar: 95 % within launch only"] if True in dashed else [])


def _height(rows: pd.DataFrame) -> float:
    """Inches of a panel of these rows."""
    lines = sum(max(2, count) for count in rows.groupby("metric", sort=False).size())
    return LINE * lines + GAP * rows["metric"].nunique()


def _panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, Look], reach: float) -> None:
    """A line per metric, a mark per antagonist, on a log scale around one."""
    axes.axvline(1.0, color=GREY, linewidth=0.6, zorder=1)
    y, ticks, labels = 0.0, [], []
    for index, (metric, group) in enumerate(rows.groupby("metric", sort=False)):
        begin, y = y, y + LINE * max(2, len(group)) + GAP
        if index % 2:
            axes.axhspan(begin, y, color="#f5f5f5", linewidth=0, zorder=0)
        ticks.append((begin + y) / 2)
        labels.append(_label(str(metric), records(group)))
        for line, row in enumerate(records(group)):
            at = ticks[-1] + LINE * (line - (len(group) - 1) / 2)
            look, (low, high, within) = looks[beside_of(row["mix"])], ends_of(row, "ratio")
            bar(axes, at, low, high, look[0], width=1.4, line=WITHIN_LAUNCH if within else "-")
            ends = Quantity(row["ratio"], low, high, digits=2).interval
            words = f"{metric} beside {beside_of(row['mix'])}: {row['ratio']:.3g} times alone {ends}".rstrip()
            dot(axes, row["ratio"], at, look, words, size=4.2)
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    axes.set_ylim(y, 0)
    axes.set_yticks(ticks, labels)
    without_axis(axes)
    _ticks(axes, reach)


def _reach(table: pd.DataFrame) -> float:
    """Symmetric around one on the log axis, wide enough for all that is drawn, and never so narrow as to show noise."""
    drawn = [value for row in records(table) for value in (row["ratio"], *ends_of(row, "ratio")[:2])]
    logs = [abs(math.log(value)) for value in drawn if value > 0 and math.isfinite(value)]
    return math.exp(min(1.12 * max([*logs, math.log(1.05)]), math.log(1e4)))


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
    """The user's programs first, and their antagonists in the study's order."""
    leads = {name: place for place, name in enumerate(user_first(results, table["lead"]))}
    others = {name: place for place, name in enumerate(antagonists(results))}
    keys = pd.DataFrame({"lead": table["lead"].map(leads), "mix": table["mix"].map(beside_of).map(others)})
    return table.loc[keys.sort_values(["lead", "mix"], kind="stable").index]


def most_changed(table: pd.DataFrame) -> pd.DataFrame:
    """Each lead beside those with the largest change of some ratio: more of them would fit on no page."""
    lead, changes = ["lead", "member", "platform"], table.assign(change=table["ratio"].map(math.log).abs())
    mixes = changes.groupby([*lead, "mix"], sort=False)["change"].max().reset_index()
    kept = mixes.sort_values("change", ascending=False, kind="stable").groupby(lead).head(BESIDE)
    return table.merge(kept[[*lead, "mix"]], on=[*lead, "mix"])


def how_counted(table: pd.DataFrame) -> str:
    """By which scopes, and whether the kernel's part is in it."""
    scopes = sorted({scope for text in table["scope"] for scope in text.split(", ") if scope})
    by = f"counted by {' and '.join(SCOPES.get(scope, scope) for scope in scopes)}" if scopes else ""
    modes = set(table["mode"])
    user = "" if modes <= {""} else USER_ONLY if "" not in modes else f"some events in {USER_ONLY}"
    return ", ".join(filter(None, (by, user)))


def caption(results: Results) -> str:
    table, _ = tables(results)
    of = units(table.loc[table["partition"] == UNMANAGED, "launches"])
    return (
        "What was counted for each lead per unit of its own progress, beside its antagonists over alone, with 95 % t "
        f"intervals between launches ({of}). Events that were counted for less than {FULLY_COUNTED:.0%} of the time "
        "are left out. "
    )


def alternative(results: Results) -> str:
    table, _ = tables(results)
    if reason := lacking(results):
        return reason
    shown = ordered(table[table["partition"] == UNMANAGED].reset_index(drop=True), results)
    parts = [
        f"{row['metric']} of {plain(row['lead'])} beside {beside_of(row['mix'])} {row['ratio']:.3g} times alone"
        for row in records(shown)[:DRAWN]
    ]
    more = f"; and {len(shown) - DRAWN} more" if len(shown) > DRAWN else ""
    return f"Counters beside antagonists over alone: {'; '.join(parts)}{more}."


def _label(metric: str, rows: list[dict[str, Any]]) -> str:
    """The metric, and what it is in windows alone."""
    unit = rows[0]["unit"]
    alone = math.exp(sum(math.log(row["alone"]) for row in rows) / len(rows))
    if unit and alone < RARE and metric not in SECONDS:
        return f"{broken(metric, 34)}\nalone {amount(1e6 * alone)} per 10⁶ {unit}"
    return f"{broken(metric, 34)}\nalone {amount(alone, metric)}" + (f" per {unit}" if unit else "")


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


def _ticks(axes: Axes, reach: float) -> None:
    """Few ticks, as ratios that people read."""
    steps = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000)
    chosen = {max(step for step in steps if step <= bound) for bound in (reach, math.sqrt(reach)) if bound >= steps[0]}
    ticks = sorted({1.0, *chosen, *(1 / step for step in chosen)})
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}" if value < 1 else f"{value:.3g}"))
    axes.xaxis.set_minor_locator(NullLocator())
