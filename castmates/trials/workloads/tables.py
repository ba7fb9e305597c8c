"""The catalogue, and the results of its check, for a terminal and as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.study.model import Workload
from castmates.workloads.inputs import lack_of

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from castmates.analysis.design.pilot import Wandering
    from castmates.trials.workloads.check import Result

STYLES = {"kept": "green", "broken": "red", "not here": "yellow"}


def rows(
    workloads: Mapping[str, Workload], envs: Path, cache: Path, families: Mapping[str, str] = {}
) -> list[dict[str, Any]]:
    """Return the catalogue, one row for each workload; `families` has the file that each stands in."""
    rows = []
    for name, workload in workloads.items():
        lack = lack_of(workload, envs, cache)
        rows.append(
            {
                "workload": name,
                "family": families.get(name, ""),
                "what": workload.title,
                "stresses": workload.stresses,
                "environment": workload.environment,
                "progress": workload.progress,
                "unit": workload.unit,
                "memory": workload.memory,
                "cores": workload.cores,
                "package": workload.package,
                "inputs": workload.inputs,
                "installed": lack is None,
                "remedy": "" if lack is None else lack.remedy,
                "tags": workload.tags,
            }
        )
    return rows


def noise_table(rows: Sequence["Wandering"]) -> "Table":
    """Return how rates wander, a row for each workload and length of windows."""
    table = _table(noise_columns(), wrapped=(noise_columns()[-1],))
    for cells in noise_cells(rows):
        table.add_row(*map(_text, cells))
    return table


def noise_columns() -> tuple[str, ...]:
    """The heads of that table."""
    from castmates.analysis.design.pilot import BUDGET

    resolved = f"±points after {BUDGET:.0f} s, if pairs were independent"
    return ("workload", "window", "pairs", "neighbours differ by", resolved)


def noise_cells(rows: Sequence["Wandering"]) -> list[list[str]]:
    """Its cells."""
    return [
        [row.workload, f"{row.seconds:g} s", str(row.pairs), f"{100 * row.scatter:.1f} %", f"{row.half_width_pct:.2g}"]
        for row in rows
    ]


def results_table(results: Sequence["Result"]) -> "Group":
    """Return the results of a check; below them, in sentences, what is broken or not here."""
    from rich.console import Group

    from castmates.trials.workloads.promises import NAMES

    table = _table(("workload", *NAMES), wrapped=("progress",))
    for result in results:
        cells = {finding.promise: finding for finding in result.findings}
        findings = [cells.get(name) for name in NAMES]
        shown = [_text(cell and cell.seen, "red" if cell and not cell.kept else "") for cell in findings]
        table.add_row(_text(result.workload, STYLES[result.verdict]), *shown)
    sentences = [_text(f"{result.workload}: {result.why}", STYLES[result.verdict]) for result in results if result.why]
    counts = [f"{sum(result.verdict == word for result in results)} {word}" for word in STYLES]
    return Group(table, *sentences, _text(", ".join(counts)))


def as_json(content: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a table, or the results of a check."""
    return json.dumps(content, indent=2, ensure_ascii=False)


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
