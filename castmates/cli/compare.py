"""The command `castmates compare`: the same mixes in two studies or more."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import NEEDED, RESULTS, Format, Margin, Output, command, complete_study, margin_of
from castmates.cli.screen import console, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from castmates.report.comparison.compare import Compared, Described, Several
    from castmates.report.comparison.details import Difference

SHOWN = 40  # rows in a terminal


@command("compare", "castmates compare results/old results/new", group=RESULTS, order=3)
def compare(
    studies: Annotated[
        list[Path],
        typer.Argument(
            help=f"{NEEDED} Two or more, the baseline first.",
            metavar="STUDY",
            show_default=False,
            autocompletion=complete_study,
        ),
    ],
    baseline: Annotated[
        str, typer.Option("--baseline", help="The study that the others are compared with; the first if left out.")
    ] = "",
    output: Output = None,
    margin: Margin = "",
    form: Format = "text",
) -> None:
    """Compare studies of the same mixes: machines, kernels, dates."""
    from castmates.report.comparison.compare import compare_studies, with_baseline

    if output is not None:
        from castmates.report.comparison.page import may_write, write

        may_write(output)
    several = compare_studies(with_baseline(studies, baseline) if baseline else studies, margin_of(margin))
    if form == "json":
        from castmates.report.comparison.several_words import as_data

        show_json(as_data(several))
    else:
        _print(several)
    if output is not None:
        for file in write(several, output):
            typer.echo(file, err=form == "json")


def _print(several: "Several") -> None:
    where = console()
    if several.origin:
        where.print(f"{several.origin}".upper(), style="bold red", markup=False)
    if len(several.pairs) > 1:
        _print_several(where, several)
    else:
        _print_two(where, several)
    _print_throughput(where, several)
    _print_details(where, several)
    _print_differences(where, several.studies, [*several.differences, *several.work])


def _print_throughput(where: "Console", several: "Several") -> None:
    """Work per second, a row per workload, a column per study."""
    from rich.table import Table

    from castmates.report.comparison.throughput import throughput_lines

    lines = throughput_lines(several)
    if not lines:
        return
    where.print("\nWork per second beside others", style="bold", markup=False)
    table = Table(box=None)
    for head in ("workload", "unit", "places", *(study.letter for study in several.studies)):
        table.add_column(head, overflow="fold")
    for line in lines[:SHOWN]:
        cells = ["\n".join(filter(None, (rate, ratio and f"× {ratio}"))) for rate, ratio in line.cells]
        table.add_row(line.workload, line.unit, str(line.places), *cells)
    if len(lines) > SHOWN:
        table.caption = f"{len(lines) - SHOWN} more rows are in the throughput.csv of --output FOLDER."
    where.print(table)


def _print_details(where: "Console", several: "Several") -> None:
    """A short section for each kind that the studies have in common."""
    from rich.table import Table

    from castmates.report.comparison.several_words import sections

    for note in several.details.notes:
        where.print(f"\n• {note}", markup=False)
    for section in sections(several):
        where.print(f"\n{section.title}", style="bold", markup=False)
        for sentence in section.sentences:
            where.print(f"• {sentence}", markup=False)
        if section.rows:
            table = Table(box=None)
            for head in ("lead", "what", "in A", "in the other", "difference", "verdict"):
                table.add_column(head, overflow="fold")
            for row in section.rows:
                table.add_row(*(row[name] for name in ("who", "what", "said_a", "said_b", "said", "verdict")))
            where.print(table)
        if section.all > len(section.rows):
            more = section.all - len(section.rows)
            where.print(f"and {more} more in {section.file} of --output FOLDER", style="dim", markup=False)


def _print_two(where: "Console", several: "Several") -> None:
    from castmates.report.comparison.several_words import mean_sentences
    from castmates.report.comparison.throughput import throughput_sentences
    from castmates.report.comparison.words import sentences

    for sentence in [*sentences(several.pairs[0]), *mean_sentences(several), *throughput_sentences(several)]:
        where.print(f"• {sentence}", markup=False)
    where.print()
    where.print(_table(several.pairs[0]))


def _print_several(where: "Console", several: "Several") -> None:
    from castmates.report.comparison.several_words import sentences

    for line in [*(study.sentence for study in several.studies), *sentences(several)]:
        where.print(f"• {line}", markup=False)
    where.print()
    where.print(_overview(several))


def _overview(several: "Several") -> "Table":
    """A row per pair, a column per study: the loss, and the slowdown over the baseline's."""
    from rich.table import Table

    from castmates.report.comparison.several_words import lines, mean_line

    mean, every = mean_line(several), lines(several)
    shown = [*([mean] if mean else []), *every[:SHOWN]]
    table = Table("lead and antagonist", box=None)
    for study in several.studies:
        what = "baseline" if study is several.studies[0] else "× the baseline's slowdown"
        table.add_column(f"{study.letter} loses (%)\n{what}", overflow="fold")
    for line in shown:
        name = f"{line.pair} @{line.partition}" if line.partition else line.pair
        cells = ["\n".join(filter(None, (cell.loss, cell.ratio, cell.verdict))) for cell in line.cells]
        table.add_row(name, *cells)
    if len(every) > SHOWN:
        table.caption = f"{len(every) - SHOWN} more rows are in the comparison.csv of --output FOLDER."
    return table


def _table(compared: "Compared") -> "Table":
    """What both have: all rows without a partition, then the leads' under partitions as far as they fit."""
    from rich.table import Table

    from castmates.report.comparison.compare import rows
    from castmates.study.spec import UNMANAGED

    every = rows(compared)
    first = [row for row in every if row["partition_a"] == UNMANAGED]
    under = [row for row in every if row["partition_a"] != UNMANAGED]
    leads = [row for row in under if row["role"] == "lead" and row["baseline"] == "alone"]
    shown = [*first, *leads[: max(0, SHOWN - len(first))]]
    where = ["partition"] if under else []
    heads = ["mix", "member", *where, "against", "A loses (%)", "B loses (%)", "slowdown B/A", "verdict", "launches"]
    table = Table(box=None)
    for head in heads:
        table.add_column(head, overflow="fold")  # in a narrow terminal names go on below, and nothing is cut
    for row in shown:
        partition = [row["partition"]] if under else []
        many = f"{row['launches_a']}, {row['launches_b']}"
        cells = [row["mix"], row["member"], *partition, row["baseline"]]
        table.add_row(*cells, row["said_a"], row["said_b"], row["said_ratio"], row["verdict"], many)
    if len(every) > len(shown):
        table.caption = f"{len(every) - len(shown)} more rows are in the comparison.csv of --output FOLDER."
    return table


def _print_differences(where: "Console", studies: "Sequence[Described]", rows: "Sequence[Difference]") -> None:
    from rich.table import Table

    if not rows:
        where.print("\nNothing that was recorded of machines, versions and designs differs.")
        return
    table = Table("what differs, as recorded", *(study.letter for study in studies), box=None)
    for row in rows:
        table.add_row(*row)
    where.print()
    where.print(table)
