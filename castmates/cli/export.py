"""The command `castmates export`: a study's numbers for TensorBoard, and as JSON."""

from typing import Annotated

import typer

from castmates.cli.arguments import Studied


def export(
    study: Studied,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            help="Write rates, losses and counters by launch and scene into results/<study>/tensorboard.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write each table of results/<study>/tables as JSON, beside its CSV.")
    ] = False,
) -> None:
    """Write an analysed study for other programs: scalars for TensorBoard, tables as JSON; both where none is named."""
    from castmates.report.export.export import write_scalars, write_tables
    from castmates.report.results import read_results
    from castmates.results.find import find

    folder, file = find(study)
    if tensorboard or not as_json:
        place, runs = write_scalars(read_results(folder.path, file))
        typer.echo(f"{runs} runs: tensorboard --logdir {place}")
    if as_json or not tensorboard:
        place, tables = write_tables(folder)
        typer.echo(f"{place}: {tables} tables as JSON")
