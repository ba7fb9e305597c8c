"""The command `castmates plan`: a study before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import (
    BEGIN,
    INSTEAD,
    LIMIT,
    Format,
    Launches,
    StudyFile,
    command,
    complete_workloads,
    enough,
    limit_of,
    only_with,
    option,
)
from castmates.cli.screen import rows_of, show, show_json
from castmates.errors import CastmatesError
from castmates.shipped import machines

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from castmates.project import Project
    from castmates.study.spec import Plan


PREDICT = only_with("--predict")


@command(
    "plan",
    "castmates plan study.yaml",
    "castmates plan study.yaml --scenes",
    "castmates plan study.yaml --pilot",
    "castmates plan study.yaml --predict --lead chase --beside stream,gather",
    group=BEGIN,
    order=4,
)
def plan(
    study: StudyFile,
    scenes: Annotated[bool, option("--scenes", help="Also every launch and its scenes.")] = False,
    counters: Annotated[bool, option("--counters", help="Also what is counted.")] = False,
    masks: Annotated[bool, option("--masks", help="Also who gets which part of the cache.")] = False,
    everything: Annotated[
        bool, option("--all", help="All details; with --predict also losses that were measured.")
    ] = False,
    form: Format = "text",
    launches: Launches = None,
    machine: Annotated[
        str,
        option(
            metavar="MACHINE",
            help="Plan for another machine: a file of `castmates doctor --capture`, or the name of one that ships: "
            f"{', '.join(machines())}.",
        ),
    ] = "",
    pilot: Annotated[
        bool,
        option(
            "--pilot",
            help="Measure a few launches (--launches; 3), and propose how many launches and rounds the study should "
            "have.",
            under=INSTEAD,
        ),
    ] = False,
    predict: Annotated[
        bool,
        option(
            "--predict",
            help="Predict what pairs lose that were not measured, from those that were, and show how far off "
            "predictions are.",
            under=INSTEAD,
        ),
    ] = False,
    lead: Annotated[
        str, option(metavar="NAME", help="Only this program; with --beside one combination.", under=PREDICT)
    ] = "",
    beside: Annotated[
        str,
        option(
            metavar="NAMES",
            help="All that run beside it, separated by commas.",
            autocompletion=complete_workloads,
            under=only_with("--lead"),
        ),
    ] = "",
    limit: Annotated[str, option(metavar="PERCENT", show_default=False, help=LIMIT, under=PREDICT)] = "",
) -> None:
    """Show what a study will do, how long it takes, what it can find.

    Nothing runs, unless a pilot is asked for.
    """
    if pilot:
        _pilot(study, 3 if launches is None else launches)
        return
    if predict:
        predict_losses(study, lead, beside, limit, everything, form == "json")
        return
    from castmates.pipeline.missing_programs import refuse_missing_programs
    from castmates.project import load, on_captured_machine

    project = load(study, launches)
    if machine:
        project = on_captured_machine(project, machine)
    planned = project.plan()
    refuse_missing_programs(project, planned)
    if form == "json":
        from castmates.terminal.preview.outline import outline

        show_json(outline(project, planned))
    else:
        _show(project, planned, scenes or everything, counters or everything, masks or everything, everything)


def _pilot(study: Path, launches: int) -> None:
    from castmates.linux.ownership import refuse_strangers
    from castmates.pipeline.pilot import measure, propose
    from castmates.project import load

    enough(launches, 2, "--pilot")
    refuse_strangers(study)
    project = load(study)
    typer.echo(propose(project.study, measure(project, launches)), nl=False)


def _show(project: "Project", planned: "Plan", scenes: bool, counters: bool, masks: bool, chances: bool) -> None:
    from rich.text import Text

    from castmates.terminal.preview import duration
    from castmates.terminal.preview import screen as details
    from castmates.terminal.preview.outline import outline
    from castmates.terminal.preview.screen import chances_table, places, screen

    if project.elsewhere:
        show(*map(Text, project.elsewhere.words()), "")
    plan, found = duration.expected(project, planned), outline(project, planned)
    show(screen(found))
    if project.elsewhere:
        show("", places(project))
    if scenes:
        show("", *details.scenes(project, planned, found))
    if counters:
        show("", *details.counters(project, plan))
    if masks:
        show(*details.masks(project, plan))
    if chances and found.chances.known:
        show("", chances_table(found.chances))


# `castmates plan --predict`: losses of pairs that were not measured, from those that were.


def predict_losses(study: Path, lead: str, beside: str, limit: str, every: bool, as_json: bool) -> None:
    """Predict what pairs lose that were not measured, with intervals, and show how far off predictions are.

    They follow from the measured pairs of the study, most precisely where its key `predict` has chosen them.
    """
    from castmates.pipeline.pilot import Asked, Predicting
    from castmates.project import load
    from castmates.report.text import prediction

    known = Predicting.of(load(study))
    table = known.predictions()
    if beside:
        names = [each.strip() for each in beside.split(",")]
        if not all(names):
            raise CastmatesError(f"--beside is '{beside}', expected names, separated by commas.")
        shown = known.one(Asked(lead, names))
    else:
        shown = _of(table, lead, str(study))
        shown = shown if every else shown[shown["source"] != "measured"]
    most = limit_of(limit) or known.project.study.recommend.lead_loss
    quality = [*prediction.quality_words(table), *prediction.role_words(known.effects)]
    worth = [] if beside else prediction.worth_measuring(shown, most)
    if as_json:
        show_json({"study": known.plan.study, "losses": rows_of(shown), "quality": quality, "worth_measuring": worth})
        return
    if len(shown):
        show(_table(shown))
    else:
        typer.echo("Every pair is measured; --all shows each beside its prediction.")
    typer.echo("\n" + "\n".join(quality))
    if worth:
        typer.echo("\nWorth measuring next\n" + "\n".join(f"  {line}" for line in worth))


def _of(table: "pd.DataFrame", lead: str, study: str) -> "pd.DataFrame":
    """The rows of one lead, on each class of nodes unless it names one."""
    from castmates.study.class_names import without_class

    if not lead:
        return table
    own = table[(table["lead"] == lead) | (table["lead"].map(without_class) == lead)]
    if own.empty:
        raise CastmatesError(f"{study}: '{lead}' is no lead here; there are {', '.join(sorted(set(table['lead'])))}.")
    return own


def _table(shown: "pd.DataFrame") -> "Table":
    from rich.table import Table

    from castmates.english import number
    from castmates.report.results import records
    from castmates.report.text.prediction import loss_of, source_of
    from castmates.report.text.words import plain

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    compared = bool(shown["without_pct"].notna().any())
    table.add_column("", style="bold", overflow="fold")
    for name in ("beside", "loss", "", *(("predicted", "off by") if compared else ())):
        table.add_column(name, justify="right" if name in ("predicted", "off by") else "left", overflow="fold")
    for row in records(shown):
        cells = [plain(row["lead"]), plain(row["antagonists"]), loss_of(row), source_of(row)]
        if compared:
            known = row["error"] == row["error"]
            cells += [f"{number(row['without_pct'])} %", number(row["error"])] if known else ["", ""]
        table.add_row(*cells)
    return table
