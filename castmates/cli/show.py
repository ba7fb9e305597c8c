"""The command `castmates show`: what came out of a study, in the terminal or for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from castmates.cli.command import INSTEAD, LIMIT, RESULTS, StudiedOrDefault, command, limit_of, option
from castmates.cli.screen import console, rows_of, show, show_json
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.report.answer.kept import Kept


@command(
    "show",
    "castmates show",
    "castmates show results/first-look --format json",
    "castmates show study.yaml --limit 3%",
    "castmates show study.yaml --format tensorboard",
    "castmates show study.yaml --format pdf",
    group=RESULTS,
    order=1,
)
def show_result(
    study: StudiedOrDefault,
    form: Annotated[
        Literal["text", "json", "tables", "tensorboard", "pdf", "png"],
        option(
            "--format",
            metavar="FORMAT",
            help="text; json for scripts; tables: each of results/<study>/tables as JSON, beside its CSV; tensorboard: "
            "rates, losses and counters by launch and scene, in results/<study>/tensorboard; pdf, png: the figures, "
            "in results/<study>/figures.",
        ),
    ] = "text",
    progress: Annotated[
        bool, option("--progress", help="How far its sweep is: launches, time left, what runs.", under=INSTEAD)
    ] = False,
    partitions: Annotated[
        bool,
        option(
            "--partitions",
            help="Which share of the cache is advised for each mix that loses: for a limit, or at the knee.",
            under=INSTEAD,
        ),
    ] = False,
    limit: Annotated[
        str, option(metavar="PERCENT", show_default=False, help=f"The same as --partitions. {LIMIT}")
    ] = "",
) -> None:
    """Show what came out: each loss, how sure it is, what to do next."""
    if (progress or partitions or limit) and form not in ("text", "json"):
        raise CastmatesError(f"--format is '{form}', expected text or json with --progress, --partitions or --limit.")
    if progress:
        _show_progress(study, form == "json")
    elif partitions or limit:
        show_advised(study, limit, form == "json")
    elif form in ("json", "text"):
        print_result(study, form == "json")
    else:
        _export(study, form)


def print_result(study: Path, as_json: bool = False) -> None:
    """The lines that the end of a sweep shows too, the headline in bold, and where the report is; or the answer."""
    from castmates.report.answer.parts import WIDTH, answer_lines

    kept = _kept(study)
    if as_json:
        show_json((kept or _made(study))[1])
        return
    if kept is None:
        from castmates.results.find import find

        folder, file = find(study)
        if file is not None and not folder.tables.is_dir():
            _show_progress(file, as_json=False)
            return
    folder, found = kept or _made(study)
    where = console()
    for line in answer_lines(found, min(where.width, WIDTH)):
        style = "bold" if line and line in found.headline else None
        where.print(line, style=style, markup=False, soft_wrap=True)
    if folder.page_file.is_file():
        where.print(f"\nReport  {folder.page_file.resolve().as_uri()}", markup=False, soft_wrap=True)


def _kept(study: Path) -> "Kept | None":
    """The answer that the analysis kept; a sentence where that is not the one of the results that are there now."""
    from castmates.report.answer.kept import kept_answer

    try:
        return kept_answer(study)
    except CastmatesError as problem:
        typer.echo(problem, err=True)
        return None


def _made(study: Path) -> "Kept":
    """The answer from the tables of the study."""
    from castmates.report.answer.answer import answer
    from castmates.report.answer.kept import Kept
    from castmates.report.results import read_results
    from castmates.results.bundles import found_launches
    from castmates.results.find import find
    from castmates.results.records import torn_words

    folder, file = find(study)
    for sentence in torn_words(found_launches(folder).torn):
        typer.echo(sentence, err=True)
    return Kept(folder, answer(read_results(folder.path, file)))


def _show_progress(study: Path, as_json: bool) -> None:
    from castmates.project import load
    from castmates.results.find import study_file
    from castmates.terminal.preview.progress import progress, screen

    found = progress(load(study_file(study)))
    if as_json:
        show_json(found)
    else:
        show(screen(found))


def _export(study: Path, form: str) -> None:
    from castmates.report.export.scalars import write_scalars, write_tables
    from castmates.report.results import read_results
    from castmates.results.find import find

    folder, file = find(study)
    if form == "tables":
        place, tables = write_tables(folder)
        typer.echo(f"{place}: {tables} tables as JSON")
    elif form in ("pdf", "png"):
        from castmates.report.figures.drawing import print_figure
        from castmates.report.page.page import shown

        results = read_results(folder.path, file)
        printed = [print_figure(name, results, form) for name in shown(results)]
        typer.echo(f"{folder.figures}: {len(printed)} figures as {form.upper()}")
    else:
        place, runs = write_scalars(read_results(folder.path, file))
        typer.echo(f"{runs} runs: tensorboard --logdir {place}")


# `castmates show --partitions`, `--limit`: the lead mask that is advised.


def show_advised(study: Path, limit: str, as_json: bool) -> None:
    """Name the smallest share of the cache that keeps a loss within a limit, or the knee, for each mix that loses."""
    from castmates.pipeline.confirm import advised
    from castmates.project import load
    from castmates.report.results import records
    from castmates.report.text.recommendation import paid, refusals, texts
    from castmates.results.columns.partitions import PARETO
    from castmates.results.columns.study import EFFECTS
    from castmates.results.find import find, study_file
    from castmates.results.plans import read_plan
    from castmates.results.tables import Tables

    study = study_file(study)
    find(study)
    project = load(study)
    advice = advised(project, read_plan(project.results.plan_file), limit_of(limit))
    tables = Tables(project.results, project.study_file)
    effects = tables.read(EFFECTS)
    command = f"castmates sweep {study} --confirm" + (f" --limit {limit_of(limit):g}%" if limit else "")
    if as_json:
        prices = [
            [{"who": one.who, "loss": one.loss.parts, "without": one.without.parts} for one in paid(row, effects)]
            for row in records(advice)
        ]
        rows = [row | {"paid": price} for row, price in zip(rows_of(advice), prices, strict=True)]
        show_json({"study": project.study.name, "recommended": rows, "confirm": command})
        return
    refused = refusals(tables.read(PARETO))
    typer.echo(texts(advice, effects, command, refused), nl=False)
