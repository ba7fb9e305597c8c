"""The combined throughput of a mix: rows of the page's table, and sentences."""

import math
from typing import Any

from castmates.analysis.effects.system import ANTT, HARMONIC, JAIN, MAX_SLOWDOWN, STP, UNFAIRNESS
from castmates.report.results import Results, records
from castmates.report.text.words import BIASED, Quantity, counted, plain
from castmates.study.spec import UNMANAGED

COLUMNS = {  # in the order of the table: heading, digits
    STP: ("STP", 2),
    ANTT: ("ANTT", 2),
    HARMONIC: ("Harmonic speedup", 2),
    UNFAIRNESS: ("Unfairness", 2),
    MAX_SLOWDOWN: ("Max slowdown", 2),
    JAIN: ("Jain", 3),
}
SAID = 6  # mixes that the sentences name; the table has them all
Row = dict[str, Any]


def rows(results: Results) -> list[Row]:
    """A row per mix, partition and platform, with a cell for each metric."""
    lines: dict[tuple[str, str, str], Row] = {}
    for entry in records(results.system):
        row = lines.setdefault((entry["mix"], entry["partition"], entry["platform"]), entry | {"cells": []})
        digits = column_of(entry["metric"])[1]
        row["cells"].append(Quantity(entry["value"], entry["low"], entry["high"], digits=digits))
    return list(lines.values())


def headings(results: Results) -> list[str]:
    """The headings of the cells, in their order: ours, and the metrics that plug-ins added when this was analysed."""
    return [column_of(metric)[0] for metric in dict.fromkeys(results.system["metric"])]


def column_of(metric: str) -> tuple[str, int]:
    """Heading and digits of a metric; one that a plug-in added is called by its name."""
    return COLUMNS.get(metric, (metric, 2))


def sentences(results: Results) -> list[str]:
    """The combined throughput of each unmanaged mix, the worst first; what is not known, and why."""
    table = results.system
    stp = records(table[(table["metric"] == STP) & (table["partition"] == UNMANAGED)])
    known = sorted((row for row in stp if not math.isnan(row["low"])), key=lambda row: row["value"] / row["members"])
    lines = [_sentence(row) for row in known[:SAID]]
    if len(known) > SAID:
        lines.append(f"{counted(len(known) - SAID, 'further mix')} in the table.")
    few = [row for row in stp if math.isnan(row["low"])]
    if few:
        lines.append(
            f"{counted(len(few), 'mix')} {'has' if len(few) == 1 else 'have'} fewer than three launches in which every "
            "member has a valid pair: no interval."
        )
    lost = sum(row["launches_incomplete"] for row in records(table[table["metric"] == STP]))
    if lost:
        lines.append(
            f"Left out of a mix or partition, because one of its members has no valid pair of windows: "
            f"{counted(lost, 'launch')}."
        )
    return lines


def _sentence(row: Row) -> str:
    values = Quantity(row["value"], row["low"], row["high"], digits=2)
    return (
        f"{plain(row['lead'])} + {plain(row['antagonists']).replace('+', ' + ')}: {values} times the throughput of one "
        f"program alone; {row['members']} would be no loss "
        f"({counted(row['launches'], 'launch')}, {row['platform']}){BIASED if row['possibly_biased'] else ''}."
    )
