"""The catalogue, and what was found of it, for a terminal and as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.study.model import Workload
from castmates.trials.workloads.installed import lack_of

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from castmates.trials.workloads.check import Result

COLUMNS = ("workload", "what", "stresses", "environment", "progress", "memory", "cores", "installed")
STYLES = {"kept": "green", "broken": "red", "not here": "yellow"}


def rows(workloads: Mapping[str, Workload], envs: Path, cache: Path) -> list[dict[str, Any]]:
    """The catalogue, one row for each workload."""
    found = []
    for name, one in workloads.items():
        lack = lack_of(one, envs, cache)
        found.append(
            {
                "workload": name,
                "what": one.title,
                "stresses": one.stresses,
                "environment": one.environment,
                "progress": one.progress,
                "unit": one.unit,
                "memory": one.memory,
                "cores": one.cores,
                "package": one.package,
                "inputs": one.inputs,
                "installed": lack is None,
                "remedy": "" if lack is None else lack.remedy,
            }
        )
    return found


def catalogue_table(found: Sequence[Mapping[str, Any]]) -> "Group":
    """The rows for a rich console."""
    from rich.console import Group

    table = _table(COLUMNS, wrapped=("what", "stresses", "progress"))
    for row in found:
        cells = [_text(row[name]) for name in COLUMNS[:4]]
        cells += [_text(f"{row['progress']} ({row['unit']})"), _text(row["memory"]), _text(row["cores"])]
        table.add_row(*cells, _text("yes", "green") if row["installed"] else _text("no", "yellow"))
    lacking: dict[str, list[str]] = {}
    for row in found:
        if not row["installed"]:
            lacking.setdefault(row["remedy"], []).append(row["workload"])
    return Group(table, *(_text(f"{', '.join(names)}: {remedy}", "yellow") for remedy, names in lacking.items()))


def results_table(results: Sequence["Result"]) -> "Group":
    """What a check found, and below it what was broken or is not here, in sentences."""
    from rich.console import Group

    from castmates.trials.workloads.promises import NAMES

    table = _table(("workload", *NAMES), wrapped=("progress",))
    for one in results:
        cells = {finding.promise: finding for finding in one.findings}
        found = [cells.get(name) for name in NAMES]
        shown = [_text(cell and cell.seen, "red" if cell and not cell.kept else "") for cell in found]
        table.add_row(_text(one.workload, STYLES[one.verdict]), *shown)
    sentences = [_text(f"{one.workload}: {one.why}", STYLES[one.verdict]) for one in results if one.why]
    counts = [f"{sum(one.verdict == word for one in results)} {word}" for word in STYLES]
    return Group(table, *sentences, _text(", ".join(counts)))


def as_json(found: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a table, or the results of a check."""
    return json.dumps(found, indent=2, ensure_ascii=False)


def _table(columns: Sequence[str], wrapped: Sequence[str]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column not in wrapped)
    return table


def _text(value: object, style: str = "") -> Any:  # noqa: ANN401 (rich is imported only where it prints)
    from rich.text import Text

    return Text("" if value is None else str(value), style=style)
