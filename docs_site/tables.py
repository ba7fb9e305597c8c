"""The data contract (castmates/results/columns) -> a page with every column of every table: type and meaning."""

import re
from pathlib import Path
from types import ModuleType

from castmates.results.columns import (
    comparison,
    dataflow,
    findings,
    launch,
    mixes,
    nodes,
    operations,
    partitions,
    placing,
    prediction,
    primitives,
    ranges,
    services,
    study,
    trace,
    trace_summary,
    variants,
)
from castmates.results.columns.contract import Table
from castmates.results.columns.registry import BESIDE_ESTIMATES

HEADS = {
    study: "Tables of a study",
    mixes: "Table of means over mixes",
    nodes: "Table of nodes",
    partitions: "Tables of partitions",
    prediction: "Tables of predictions",
    services: "Tables of services",
    variants: "Tables of variants",
    comparison: "Tables of a comparison",
    launch: "Tables of a launch",
    ranges: "Tables of annotations",
    operations: "Tables of operations",
    primitives: "Tables of primitives",
    dataflow: "Tables of graphs",
    trace_summary: "Tables of what traces come to",
    trace: "Tables of a trace",
    findings: "Table of a trial",
    placing: "Tables of placement",
}
INTRODUCTION = """Every table is written as CSV and as Parquet. `results/<study>/tables/` has those of a study,
`results/<study>/launches/<cohort>/<number>/` those of a launch.
Types are those of pandas; `Int64` may be missing. Any program that reads Parquet can use them:

```python
import pandas

effects = pandas.read_parquet("results/first-look/tables/effects.parquet")
```

```sh
duckdb -c "select lead, antagonists, loss_pct from 'results/*/tables/effects.parquet' where baseline = 'alone'"
```

This page is generated from `castmates/results/columns`."""


def page(_root: Path) -> str:
    """All tables, module by module."""
    parts = ["# Columns of the tables", INTRODUCTION]
    for module, head in HEADS.items():
        parts.append(f"## {head}\n\n{(module.__doc__ or '').partition(chr(10))[0]}")
        parts += _tables(module)
    parts.append("## More tables of a study\n\nEach is declared beside its estimate, in `castmates/analysis/tables`.")
    for module in BESIDE_ESTIMATES:
        parts += _tables(module)
    return "\n\n".join(parts) + "\n"


def _tables(module: ModuleType) -> list[str]:
    return [
        _table(table)
        for table in {id(each): each for each in vars(module).values() if isinstance(each, Table)}.values()
    ]


def _table(table: Table) -> str:
    about = re.sub(r"<(\w+)>", r"&lt;\1&gt;", table.about)
    rows = ["| column | type | meaning |", "| --- | --- | --- |"]
    rows += [f"| `{column.name}` | {column.type} | {_cell(column.meaning)} |" for column in table.columns]
    return f"### {table.name}\n\n{about}\n\n" + "\n".join(rows)


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")
