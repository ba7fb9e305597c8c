"""The command `castmates trace query`: SQL over traces."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from castmates.cli.command import command, complete_study
from castmates.cli.screen import console
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.timeline.queries.asking import Named
    from castmates.timeline.queries.database import TraceFolder

Format = Literal["table", "csv", "json", "parquet"]
FORMATS: tuple[Format, ...] = ("table", "csv", "json", "parquet")
ROWS = 50  # of a table in the terminal


def _names(incomplete: str) -> Iterator[str]:
    from castmates.timeline.queries.asking import named

    yield from (name for name in named() if name.startswith(incomplete))


@command(
    "trace query",
    "castmates trace query study.yaml --named time-on-cpu",
    'castmates trace query study.yaml "SELECT * FROM steps"',
    order=3,
)
def query(
    where: Annotated[
        Path | None,
        typer.Argument(
            metavar="WHERE",
            help="The study file, the folder results/<study>, or the folder of a trace.",
            show_default=False,
            autocompletion=complete_study,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MIX SQL",
            help="A mix, if not all of the study; one SELECT over the views, or - for one from standard input.",
            show_default=False,
        ),
    ] = None,
    named: Annotated[str, typer.Option(metavar="NAME", help="A named query in its place.", autocompletion=_names)] = "",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the named query: member='dlrm*'; repeat it."),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the views, their columns and the named queries.")] = False,
    print_sql: Annotated[bool, typer.Option("--sql", help="Print the SQL of the named query; run nothing.")] = False,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}; table in a terminal.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write into this file; its ending is the format."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help=f"Rows at most; {ROWS} in a table, else all; 0 for all.")
    ] = None,
) -> None:
    """Ask traces by SQL: what threads did, who ran instead, what was waited for.

    Without SQL it shows what there is. Nothing is changed; several traces are one table with the column trace.
    """
    from castmates.timeline.queries.asking import query_of, values_of

    if show:
        _list()
        return
    if print_sql:
        typer.echo(query_of(named or _missing("--sql prints the SQL of a named query")).sql)
        return
    if where is None:
        raise CastmatesError(
            "give a study, or the folder of a trace; `castmates trace query --list` lists what can be asked."
        )
    mix, sql = (" ".join(words or []), "") if named and not _is_sql(words) else _parted(words or [])
    if named and sql:
        raise CastmatesError("give SQL or --named, not both.")
    if values and not named:
        raise CastmatesError("--set is for a named query; give --named NAME.")
    wanted = _format(form, output)
    if named:
        asked = query_of(named)
        _answer(where, mix, asked.sql, values_of(asked, values or []), wanted, output, limit)
    elif sql:
        _answer(where, mix, sys.stdin.read() if sql == "-" else sql, {}, wanted, output, limit)
    else:
        _overview(where, mix)


def _is_sql(words: list[str] | None) -> bool:
    """Whether one of the words begins as a query does; a mix may be several words, too."""
    return any(word.split()[:1] and word.split()[0].lower() in ("select", "with", "from") for word in words or [])


def _parted(words: list[str]) -> tuple[str, str]:
    """The mix and the SQL: SQL has several words."""
    is_sql = [word == "-" or len(word.split()) > 1 for word in words]
    if is_sql in ([], [True]):
        return "", "".join(words)
    if is_sql in ([False], [False, True], [True, True]):  # a mix may be named by several words, too
        return words[0], "".join(words[1:])
    raise CastmatesError(f"after WHERE come '{' '.join(words)}', expected a mix, or SQL in quotation marks, or both.")


def _missing(what: str) -> str:
    raise CastmatesError(f"{what}: give --named NAME.")


def _format(form: str, output: Path | None) -> Format:
    given = form or (output.suffix.removeprefix(".").lower() if output else "") or _usual()
    for known in FORMATS:
        if given == known:
            if known == "parquet" and output is None:
                raise CastmatesError("--format parquet needs --output FILE.")
            return known
    what = f"--format is '{form}'" if form else f"--output {output} ends in '{output.suffix if output else ''}'"
    raise CastmatesError(f"{what}, expected {', '.join(FORMATS)}.")


def _usual() -> Format:
    return "table" if console().is_terminal else "csv"


def _answer(
    where: Path, mix: str, sql: str, values: dict[str, str], form: Format, output: Path | None, limit: int | None
) -> None:
    from castmates.timeline.queries.asking import ask, cut, write, write_table
    from castmates.timeline.queries.database import database

    usual = ROWS if form == "table" and output is None else 0
    most = limit if limit is not None else usual
    traces = _readable(where, mix)
    with database(traces) as connection:
        found = ask(connection, sql, values)
        if form == "table" and output is None:
            rows = write_table(console(), found, most)
        else:
            answer = cut(found, most)
            write(answer, form, output)
            rows = answer.rows
    if rows:
        _name_recordings_without_path(traces, sql)
    else:
        _explain(traces, sql, "" if form == "table" and output is None else "No rows. ")
    if output is not None:
        typer.echo(output, err=True)


def _name_recordings_without_path(traces: "list[TraceFolder]", sql: str) -> None:
    from castmates.pipeline.trace_launch import without_path

    for trace in traces:
        for sentence in without_path(trace, sql):
            typer.echo(f"{trace.name}: {sentence}", err=True)


def _explain(traces: "list[TraceFolder]", sql: str, head: str) -> None:
    """What the traces have not of what a query needs: perhaps why its answer has no rows, which a table says itself."""
    from castmates.pipeline.trace_launch import lacking

    for trace in traces:
        if sentences := lacking(trace, sql):
            typer.echo(f"{head}What the trace of {trace.name} has not:", err=True)
            for sentence in sentences:
                typer.echo(f"  - {sentence}", err=True)


def _readable(where: Path, mix: str) -> "list[TraceFolder]":
    """The traces that are meant and can be read; the others are named."""
    from castmates.timeline.queries.database import readable, traces_of

    found, left_out = readable(traces_of(where, mix))
    if not found:
        raise CastmatesError(f"{where}: no trace can be read. {' '.join(left_out)}")
    for sentence in left_out:
        typer.echo(sentence, err=True)
    return found


def _overview(where: Path, mix: str) -> None:
    """What there is of traces, and how to ask."""
    from castmates.timeline.queries.asking import ask, named, write_table
    from castmates.timeline.queries.database import database

    screen = console()
    with database(_readable(where, mix)) as connection:
        sql = (
            "SELECT r.trace, r.scene, r.recordings, r.seconds, r.steps AS lead_steps, t.platform "
            "FROM recorded r JOIN traces t USING (trace) ORDER BY r.trace, r.scene DESC"
        )
        write_table(screen, ask(connection, sql), 0)
    screen.print("\nNamed queries", style="bold")
    for each in named().values():
        screen.print(f"  {each.name:<18}{each.title}", markup=False, highlight=False)
    screen.print(
        f"\n  castmates trace query {where} --named time-on-cpu", markup=False, highlight=False, soft_wrap=True
    )
    example = "SELECT scene, state, reason, sum(ms) FROM states GROUP BY ALL ORDER BY ALL"
    screen.print(f'  castmates trace query {where} "{example}"', markup=False, highlight=False, soft_wrap=True)
    screen.print("  castmates trace query --list     all views with their columns", markup=False, highlight=False)


def _list() -> None:
    from castmates.timeline.queries.asking import named, views

    screen = console()
    screen.print("Views", style="bold")
    for view in sorted(views().values(), key=lambda view: view.name):
        screen.print(f"\n{view.name}: {view.about}", markup=False, highlight=False)
        for name, meaning in view.columns.items():
            screen.print(f"  {name:<14}{meaning}", markup=False, highlight=False)
    screen.print("\nNamed queries", style="bold")
    for each in named().values():
        _describe(each)


def _describe(query: "Named") -> None:
    screen = console()
    screen.print(f"\n{query.name}: {query.title}. {query.about}", markup=False, highlight=False)
    for parameter in query.parameters:
        screen.print(
            f"  --set {parameter.name}=…  {parameter.about} ({parameter.usual} if left out)",
            markup=False,
            highlight=False,
        )
