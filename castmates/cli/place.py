"""`castmates advice --place`: which jobs should share which last-level cache."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from castmates.cli.screen import console, rows_of, show_json
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from rich.table import Table

    from castmates.pipeline.place import Request
    from castmates.report.grouping.words import Shown


Solver = Literal["auto", "exhaustive", "milp"]


def place_jobs(
    study: Path,
    jobs: Path | None,
    machine: Path | None,
    confirm: bool,
    launches: int | None,
    only_write: bool,
    solver: Solver,
    seconds: float,
    cores: str,
    as_json: bool,
) -> None:
    """Show which jobs should share a cache, for a limit on what each may lose, and what that gains."""
    from castmates.pipeline.place import advised, request_of, write_studies
    from castmates.pipeline.snakemake import sweep
    from castmates.project import load
    from castmates.report.grouping.page import write

    request = request_of(load(study), jobs, machine)
    advice = advised(request, solver, seconds)
    given = "".join(f" --{key} {file}" for key, file in (("jobs", jobs), ("machine", machine)) if file)
    command = f"castmates advice {study} --place{given} --confirm"
    if confirm and advice.found.best:
        files = write_studies(request, advice, launches)
        for file in files:
            typer.echo(f"written: {file}", err=as_json)
        for file in [] if only_write else files:
            sweep(file, cores, lambda line: typer.echo(line, err=as_json), shows_result=False)
    shown = _shown(request, advice, command)
    written = write(shown, request.project.results.place)
    if as_json:
        _print_json(shown)
    else:
        _print(shown)
    for file in written:
        typer.echo(file, err=as_json)
    if not advice.found.best:
        raise CastmatesError(f"{request.origin}: no grouping of these jobs can be judged; see above what is lacking.")


def _shown(request: "Request", advice: object, command: str) -> "Shown":
    from castmates.analysis.grouping.advice import Advice
    from castmates.pipeline.place import fresh_losses
    from castmates.report.grouping.words import Shown

    assert isinstance(advice, Advice)
    fresh, refused = fresh_losses(request, advice)
    return Shown(advice, fresh, tuple(refused), request.project.study.title, command)


def _print_json(shown: "Shown") -> None:
    from castmates.report.grouping.words import sentences

    found = shown.advice.found
    show_json(
        {
            "study": shown.advice.place.study,
            "platform": shown.advice.place.platform,
            "machine": shown.advice.place.machine,
            "solver": found.how,
            "groups": found.groups,
            "compared": found.seen,
            "gap_points": found.gap,
            "sentences": sentences(shown),
            "groupings": rows_of(shown.groupings),
            "ways": rows_of(shown.ways),
            "unknown": [list(pair) for pair in shown.advice.unknown],
            "confirm": shown.command,
        }
    )


def _print(shown: "Shown") -> None:
    from castmates.report.grouping.words import schemata, sentences, task

    where = console()
    if shown.origin:
        where.print(shown.origin.upper(), style="bold red", markup=False)
    where.print(f"{task(shown)}.", markup=False)
    for sentence in sentences(shown):
        where.print(f"• {sentence}", markup=False)
    for rank in sorted(set(shown.groupings["rank"])):
        where.print()
        where.print(_table(shown, rank))
        for line in schemata(shown, rank):
            where.print(f"  {line}", markup=False)
    where.print()


def _table(shown: "Shown", rank: int) -> "Table":
    """A row per job of a grouping."""
    from rich.table import Table

    from castmates.analysis.grouping.advice import RANKS
    from castmates.report.grouping.words import fresh_words, limit_words, loss_words
    from castmates.report.results import records
    from castmates.report.text.words import number

    rows = records(shown.groupings[shown.groupings["rank"] == rank])
    mean = shown.advice.found.best[rank - 1].mean_loss
    table = Table(box=None, title=f"{RANKS[rank - 1]} grouping: {number(mean)} % lost on average", title_justify="left")
    masks, fresh = any(row["mask"] for row in rows), any(row["confirmed_in"] for row in rows)
    heads = ["cache", "job", "beside", *(["ways"] if masks else []), "loses (%)", "known from", "limit"]
    for head in [*heads, *(["fresh launches (%)"] if fresh else [])]:
        table.add_column(head, overflow="fold")
    for row in rows:
        ways = [str(row["ways"]) if row["mask"] else "shared"] if masks else []
        cells = [str(row["domain"]), row["job"], row["beside"], *ways, loss_words(row), row["source"], limit_words(row)]
        table.add_row(*cells, *([fresh_words(row)] if fresh else []))
    return table
