"""The figure `counters`: what each lead's counters count per unit of its progress beside antagonists, against alone."""

import math

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, USABLE, USER_ONLY
from castmates.analysis.explanations.counters import NAMES, NEEDED
from castmates.analysis.explanations.counters import counter_tables as changes_and_left_out
from castmates.report.figures.antagonists import antagonists, looks, user_first
from castmates.report.figures.antagonists import beside as beside_of
from castmates.report.figures.counters_axes import HEAD, LEFT, RIGHT, SECONDS, height, keys_of, panel, reach_of
from castmates.report.figures.panels import (
    NOTE,
    SmallPrint,
    columns_for,
    finish,
    fitting,
    legend,
    small_print,
    stacked,
)
from castmates.report.figures.style import PAGE, badge_room, empty_figure, styled
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text.stamps import caveat
from castmates.report.text.words import plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Counters", "part": "why", "place": 220, "needs": "EVENTS"}
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


def _figure(table: pd.DataFrame, known: int, missing: pd.DataFrame, results: Results) -> Figure:
    """Draw these changes, of so many that are known."""
    table = ordered(table.reset_index(drop=True), results)
    panels = [rows for _, rows in table.groupby(["lead", "member"], sort=False)]
    panels = panels[: fitting([HEAD + height(rows) for rows in panels], around=2.0)]
    table, heights = pd.concat(panels), [height(rows) for rows in panels]
    by_name = looks(results, table["mix"].map(beside_of))
    notes = _words_below(table, known, missing, results)
    columns = columns_for(by_name, PAGE)
    foot = 0.62 + 0.17 * math.ceil(len(by_name) / columns) + NOTE * len(notes)
    figure, places = stacked(heights, HEAD, LEFT, RIGHT, badge_room(caveat(results), PAGE), foot)
    reach = reach_of(table)
    for axes, rows in zip(places, panels, strict=True):
        panel(axes, rows, by_name, reach, plain(str(rows["lead"].iloc[0])), is_last=rows is panels[-1])
    legend(figure, keys_of(by_name), (foot - 0.48) / figure.get_figheight(), columns)
    return finish(figure, notes, results)


def _words_below(table: pd.DataFrame, known: int, missing: pd.DataFrame, results: Results) -> SmallPrint:
    dashed = {math.isnan(row["ratio_low"]) for row in records(table)}
    parts = ["bar: 95 % between launches"] if False in dashed else []
    parts += ["dashed bar: 95 % within launch only"] if True in dashed else []
    parts += [way] if (way := how_counted(table)) else []
    if len(table) < known:
        parts.append(f"the {BESIDE} antagonists of a lead that change most, as many leads as fit; the CSV has all")
    parts += ["mixes under partitions are in the CSV"] if results.partitioned else []
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
    of = units(table.loc[table["partition"] == UNMANAGED, "launches"])
    return (
        "What was counted for each lead per unit of its own progress, beside its antagonists over alone, with 95 % t "
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
    return f"Counters beside antagonists over alone: {'; '.join(parts)}{more}."
