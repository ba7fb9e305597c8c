"""The command `castmates compare`: the same mixes in two studies, or on two machines."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.arguments import Studied

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from castmates.report.comparison.compared import Compared

SHOWN = 40  # rows in a terminal
WIDE = 1000  # letters of a line that is not for a terminal


def compare(
    a: Studied,
    b: Studied,
    output: Annotated[
        Path | None, typer.Option("--output", help="Also write table, figure and page into this folder.")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.0001, max=0.9999, help="The largest difference that counts as none; the studies' if left out."
        ),
    ] = None,
) -> None:
    """Compare two studies of the same mixes, measured apart: two machines, kernels, or settings."""
    from castmates.report.comparison.compare import compare_studies
    from castmates.report.comparison.words import sentences

    if output is not None:
        from castmates.report.comparison.folder import may_write, write

        may_write(output)
    compared = compare_studies(a, b, margin)
    console = _console()
    if compared.origin:
        console.print(f"{compared.origin}".upper(), style="bold red", markup=False)
    for sentence in sentences(compared):
        console.print(f"• {sentence}", markup=False)
    console.print()
    console.print(_table(compared))
    _print_differences(console, compared)
    if output is not None:
        for file in write(compared, output):
            typer.echo(file)


def _console() -> "Console":
    """As wide as the terminal; into a pipe or a file, where nobody asks for a width, nothing is wrapped or cut."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=WIDE)


def _table(compared: "Compared") -> "Table":
    """What both have: all rows without a partition, then the leads' under partitions as far as they fit."""
    from rich.table import Table

    from castmates.report.comparison.rows import rows
    from castmates.study.spec import UNMANAGED

    every = rows(compared)
    first = [row for row in every if row["partition_a"] == UNMANAGED]
    under = [row for row in every if row["partition_a"] != UNMANAGED]
    leads = [row for row in under if row["role"] == "lead" and row["baseline"] == "solo"]
    shown = [*first, *leads[: max(0, SHOWN - len(first))]]
    where = ["partition"] if under else []
    heads = ["mix", "member", *where, "against", "A loses (%)", "B loses (%)", "slowdown B/A", "verdict", "launches"]
    table = Table(box=None)
    for head in heads:
        table.add_column(head, overflow="fold")  # in a narrow terminal names go on below, and nothing is cut
    for row in shown:
        partition = [row["partition"]] if under else []
        many = f"{row['blocks_a']}, {row['blocks_b']}"
        cells = [row["mix"], row["member"], *partition, row["baseline"]]
        table.add_row(*cells, row["said_a"], row["said_b"], row["said_ratio"], row["verdict"], many)
    if len(every) > len(shown):
        table.caption = f"{len(every) - len(shown)} more rows are in the comparison.csv of --output FOLDER."
    return table


def _print_differences(console: "Console", compared: "Compared") -> None:
    from rich.table import Table

    rows = [*compared.differences, *compared.work]
    if not rows:
        console.print("\nNothing that was recorded of machines, versions and designs differs.")
        return
    table = Table("what differs, as recorded", "A", "B", box=None)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
