"""The data contract (castmates/results/columns) -> a page with every column of every table: type and meaning."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("castmates/results/columns")
FILES = (
    "study.py",
    "mixes.py",
    "nodes.py",
    "partitions.py",
    "prediction.py",
    "services.py",
    "variants.py",
    "comparison.py",
    "block.py",
)
COLUMN = re.compile(r'^\s+"(?P<name>[^"]+)": "(?P<type>[^"]+)",(?:\s+# (?P<about>.*))?$')
INCLUDED = re.compile(r"^\s+\*\*(?P<name>[A-Z_]+),(?:\s+# (?P<about>.*))?$")


@dataclass(frozen=True)
class Table:
    """A list of columns, as the contract has it."""

    name: str
    about: str  # the comment above it
    rows: tuple[tuple[str, str, str], ...]  # column, type, meaning


def page(root: Path) -> str:
    """All tables, file by file."""
    parts = ["# Columns of the tables", INTRODUCTION]
    for file in FILES:
        source = (root / FOLDER / file).read_text(encoding="utf-8")
        first = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
        parts.append(f"## {HEADS[file]}\n\n{first}")
        parts += [_table(table) for table in tables(source)]
    return "\n\n".join(parts) + "\n"


HEADS = {
    "study.py": "Tables of a study",
    "mixes.py": "Table of means over mixes",
    "nodes.py": "Table of nodes",
    "partitions.py": "Tables of partitions",
    "prediction.py": "Tables of predictions",
    "services.py": "Tables of services",
    "variants.py": "Tables of variants",
    "comparison.py": "Tables of a comparison",
    "block.py": "Tables of a launch",
}
INTRODUCTION = """Every table is written as CSV and as Parquet. `results/<study>/tables/` has those of a study,
`results/<study>/blocks/<company>/<number>/` those of a launch.
Types are those of pandas; `Int64` may be missing. Any program that reads Parquet can use them:

```python
import pandas

effects = pandas.read_parquet("results/first-look/tables/effects.parquet")
```

```sh
duckdb -c "select lead, antagonists, degradation_pct from 'results/*/tables/effects.parquet' where baseline = 'solo'"
```

This page is generated from `castmates/results/columns`."""


def tables(source: str) -> list[Table]:
    """The lists of columns in a file of the contract."""
    lines = source.splitlines()
    found = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if isinstance(node.value, ast.Dict) and ast.unparse(node.annotation) == "Columns":
            body = lines[node.lineno : (node.end_lineno or node.lineno) - 1]
            rows = tuple(row for line in body if (row := _row(line)))
            found.append(Table(node.target.id, _comment(lines, node.lineno - 1), rows))
    return found


def _comment(lines: list[str], at: int) -> str:
    """The comment right above a line."""
    words: list[str] = []
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
        words.insert(0, lines[at].lstrip("# "))
    return " ".join(words)


def _row(line: str) -> tuple[str, str, str] | None:
    if column := COLUMN.match(line):
        return f"`{column['name']}`", column["type"], column["about"] or ""
    if part := INCLUDED.match(line):
        return f"all of {part['name'].lower()}", "", part["about"] or ""
    return None


def _table(table: Table) -> str:
    about = re.sub(r"<(\w+)>", r"&lt;\1&gt;", table.about)
    rows = ["| column | type | meaning |", "| --- | --- | --- |"]
    rows += [f"| {name} | {kind} | {_cell(words)} |" for name, kind, words in table.rows]
    return f"### {table.name.lower()}\n\n{about}\n\n" + "\n".join(rows)


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")
