"""The catalogue on a terminal: by family, a line for each program or, with its variants, for each workload."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

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
        parts += [Text(), Text(TITLES.get(family, family), style="bold"), _table(families[family], everything)]
    missing = list(_missing(rows))
    return Group(*parts, *_tags(rows), *([Text()] if missing else []), *missing, *_more(everything))


def _table(rows: Sequence[Row], everything: bool) -> "Table":
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
