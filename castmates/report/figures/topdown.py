"""The figure `topdown`: where the slots of each lead's processors go, alone and beside its antagonists."""

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.explanations.topdown import NAMES, NEEDED, why_none
from castmates.analysis.explanations.topdown import topdown_tables as shares_and_changes
from castmates.report.figures.antagonists import antagonists, beside, user_first
from castmates.report.figures.panels import drawing
from castmates.report.figures.topdown_bars import Panel, Row, bars, beside_whom, change_words
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text.words import number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Top-Down", "part": "why", "place": 200, "needs": "TOPDOWN"}
DRAWN = 12  # values that the text alternative names


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the shares of every scene, and their changes against alone."""
    table, change = tables(results)
    keys = ["lead", "member", "mix", "partition", "phase", "level", "metric", "platform"]
    points = change.drop(columns=["alone", "corun", "launches"]).assign(kind="corun")
    source = table.merge(points, on=[*keys, "kind"], how="left") if len(change) else table
    return drawing(
        results,
        pd.DataFrame(source),
        lacking,
        lambda: bars(_panels(ordered(drawn(table), results)), change, "program", results),
    )


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
    """Why there is nothing to show."""
    if len(drawn(tables(results)[0])):
        return ""
    return uncounted(results) or f"No valid window of the study {results.name} has a Top-Down metric of its lead."


@once
def uncounted(results: Results) -> str:
    """Why Top-Down was not counted at all; "" where it was."""
    status, reason = why_none(results.launch_parts("topdown", NEEDED, NAMES), results.windows)
    return f"Top-Down is {status} here: {reason}." if status else ""


def _panels(table: pd.DataFrame) -> list[Panel]:
    groups = table.groupby(["platform", "lead", "member"], sort=False)
    return [Panel(plain(str(rows["lead"].iloc[0])), rows) for _, rows in groups]


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
    """The figure in words."""
    table, change = tables(results)
    if drawn(table).empty:
        return lacking(results)
    of_scene: dict[tuple[str, str], list[Row]] = {}
    for row in records(change):
        if row["level"] == 1 and not row["phase"] and row["partition"] == UNMANAGED:
            of_scene.setdefault((row["lead"], row["mix"]), []).append(row)
    largest = [max(of, key=lambda row: abs(row["points"])) for of in of_scene.values()]
    parts = [f"{plain(row['lead'])} beside {beside_whom(row['mix'])}: {change_words(row)}" for row in largest[:DRAWN]]
    more = f"; and {len(largest) - DRAWN} more" if len(largest) > DRAWN else ""
    if not parts:
        alone = [row for row in records(drawn(table)) if row["level"] == 1]
        return "Top-Down shares: " + "; ".join(
            f"{plain(row['lead'])} {row['metric'].replace('_', ' ')} {number(row['share'])} %" for row in alone[:DRAWN]
        ) + "."  # fmt: skip
    return f"Largest changes of Top-Down shares against alone, in points: {'; '.join(parts)}{more}."
