"""The catalogue, and the results of its check, for a terminal and as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.study.model import Workload
from castmates.workloads.inputs import lack_of

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
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
                "progress": f"calls of {workload.calls}" if workload.calls else workload.way,
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


# The catalogue on a terminal: by family, a line for each program or, with its variants, for each workload.

FIRST = ("stream", "chase", "compute", "dlrm-train", "mobilenetv2-infer", "xz")  # to begin with
TITLES = {
    "kernels": "Kernels: small C programs that stress one thing each",
    "tfmodels": "TensorFlow Model Garden: training and inference",
    "twins": "Free programs, those that SPEC's were made from",
    "spec-like": "Mixes after published figures of SPEC CPU2017",
    "stress-ng": "Stressors of stress-ng",
    "suites": "Suites",
    "torch": "PyTorch: training and inference",
    "jax": "JAX: training and inference",
    "llama": "llama.cpp: requests to a language model",
    "gpu": "PyTorch on a GPU (not tried)",
}
OTHERS = "others"
Row = Mapping[str, Any]


def listing(rows: Sequence[Row], everything: bool) -> "Group":
    """The families in turn, then what is missing here and how to get it."""
    from rich.console import Group
    from rich.text import Text

    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row["family"] or OTHERS, []).append(row)
    ordered = sorted(families, key=lambda name: [*TITLES, name].index(name))
    head = Text.assemble(
        (f"{len(rows)} workloads", "bold"), f" in {len(families)} families", ("     * to begin with", "green")
    )
    parts: list[RenderableType] = [head]
    for family in ordered:
        parts += [Text(), Text(TITLES.get(family, family), style="bold"), _listing_table(families[family], everything)]
    missing = list(_missing(rows))
    return Group(*parts, *_tags(rows), *([Text()] if missing else []), *missing, *_more(everything))


def _listing_table(rows: Sequence[Row], everything: bool) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="green")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for _ in range(2 if everything else 1):
        table.add_column(no_wrap=True, justify="right", style="dim")
    for head, variants in _lines(rows, everything):
        mark = " *" if head["workload"] in FIRST else ""
        name = Text(head["workload"], style="" if head["installed"] else "dim")
        here = "" if head["installed"] else "not here"
        words = head["what"] if everything else head["stresses"] or head["what"]
        last = [head["memory"], here] if everything else [here or (f"+{variants}" if variants else "")]
        table.add_row(mark, name, Text(words), *last)
    return table


def _lines(rows: Sequence[Row], everything: bool) -> Iterator[tuple[Row, int]]:
    """The workloads that have a line, each with the number of its variants that have none."""
    heads: list[Row] = []
    counts: dict[str, int] = {}
    for row in rows:
        head = None if everything else next((each for each in heads if _is_variant(row, each)), None)
        if head is None:
            heads.append(row)
        else:
            counts[head["workload"]] = counts.get(head["workload"], 0) + 1
    yield from ((head, counts.get(head["workload"], 0)) for head in heads)


def _is_variant(row: Row, head: Row) -> bool:
    """Whether one is the other with a suffix, or stresses the same under the same first word."""
    name, other = row["workload"], head["workload"]
    if name in FIRST:
        return False
    if name.startswith(f"{other}-"):
        return True
    alike = row["stresses"] == head["stresses"] != "" and "." not in name  # a dot stands between suite and program
    return bool(alike) and name.partition("-")[0] == other.partition("-")[0]


def _tags(rows: Sequence[Row]) -> Iterator["RenderableType"]:
    """The tags, by which a study names several workloads, and how many have each."""
    from rich.text import Text

    counts = Counter(tag for row in rows for tag in row.get("tags", ()))
    if counts:
        words = ", ".join(f"{tag} ({count})" for tag, count in counts.most_common())
        yield Text.assemble("\nTags for `from` of random mixes: ", (words, "dim"))


def _missing(rows: Sequence[Row]) -> Iterator["RenderableType"]:
    """How to get what is not here: all packages in one command."""
    from rich.text import Text

    lacking: dict[str, list[str]] = {}
    for row in rows:
        if not row["installed"]:
            lacking.setdefault(row["remedy"], []).append(row["workload"])
    packages = [remedy.removeprefix("apt-get install ") for remedy in lacking if remedy.startswith("apt-get install ")]
    if packages:
        count = sum(len(names) for remedy, names in lacking.items() if remedy.startswith("apt-get install "))
        yield Text.assemble(f"{count} more     ", (f"sudo apt-get install {' '.join(packages)}", "cyan"))
    for remedy, names in lacking.items():
        if not remedy.startswith("apt-get install "):
            yield Text.assemble(f"{len(names)} more     ", (remedy, "cyan"))


def _more(everything: bool) -> Iterator["RenderableType"]:
    from rich.text import Text

    if not everything:
        yield Text.assemble(
            "\n+3 is three variants of a program, such as other sizes: ",
            ("castmates workloads --all", "cyan"),
            "      for scripts: ",
            ("--format json", "cyan"),
        )
