"""The commands `castmates recommend` and `castmates confirm`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.arguments import DEFAULT_STUDY, StudyFile
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    import pandas as pd

    from castmates.project import Project
    from castmates.study.spec import Plan

LeadLoss = Annotated[
    str, typer.Option("--lead-loss", help="What the lead may lose, in per cent; the study's own limit if left out.")
]


def add_to(app: typer.Typer) -> None:
    """Give the command line these commands."""
    app.command()(recommend)
    app.command()(confirm)


def recommend(study: StudyFile = DEFAULT_STUDY, lead_loss: LeadLoss = "") -> None:
    """Name the smallest lead mask that keeps a limit, for each mix of a study whose sweep is done."""
    from castmates import project
    from castmates.report.text import recommendation

    loaded = project.load(study)
    advice = _advice(loaded, project.read_plan(loaded.plan_file), lead_loss)
    refused = recommendation.refusals(_searched(loaded))
    typer.echo(recommendation.texts(advice, _command(study, lead_loss), refused), nl=False)


def confirm(
    study: StudyFile = DEFAULT_STUDY,
    lead_loss: LeadLoss = "",
    mix: Annotated[str, typer.Option(help="Only this mix; all that have a recommendation if left out.")] = "",
    partition: Annotated[str, typer.Option(help="With --mix: this partition, recommended or not.")] = "",
    blocks: Annotated[
        int | None, typer.Option(min=3, max=10_000, help="Fresh blocks; the study's own number, and at least 3.")
    ] = None,
    cores: Annotated[str, typer.Option(help="For Snakemake.")] = "all",
    only_write: Annotated[
        bool, typer.Option("--only-write", help="Write the study files and measure nothing.")
    ] = False,
) -> None:
    """Measure fresh blocks of the recommended partitions, each in a study of its own, and renew the study's page."""
    from castmates import project
    from castmates.pipeline import confirm as fresh
    from castmates.pipeline import snakemake

    if partition and not mix:
        raise CastmatesError("--partition needs --mix: partitions are measured mix by mix.")
    loaded = project.load(study)
    plan = project.read_plan(loaded.plan_file)
    wanted = [(mix, partition)]
    if not partition:
        wanted = fresh.wanted(loaded.study, plan, _advice(loaded, plan, lead_loss), mix)
    files = [fresh.write_study(loaded, plan, *one, blocks) for one in wanted]
    for file in files:
        typer.echo(f"written: {file}")
    if only_write:
        return
    for file in files:
        snakemake.sweep(file, cores, typer.echo)
    if missing := [block for block in plan.blocks if not loaded.record(block).is_file()]:
        typer.echo(f"{len(missing)} blocks of {study} are still missing; its page is renewed by its next sweep.")
        return
    snakemake.sweep(study, cores, typer.echo)


def _advice(loaded: "Project", plan: "Plan", lead_loss: str) -> "pd.DataFrame":
    """What is recommended for the limit that was given, or for the study's."""
    from castmates.pipeline.recommend_partitions import of_limit
    from castmates.study.recommend_keys import percent_of_loss

    limit = loaded.study.recommend.lead_loss
    if lead_loss:
        try:
            limit = percent_of_loss(lead_loss)
        except ValueError as problem:
            raise CastmatesError(f"--lead-loss is '{lead_loss}', expected {problem}.") from None
    if limit is None:
        raise CastmatesError(
            f"{loaded.study_file}: there is no limit to recommend for; write `recommend: {{lead_loss: 3}}` into the "
            "study, or give --lead-loss 3."
        )
    advice = of_limit(plan, _searched(loaded), limit)
    if advice.empty:
        raise CastmatesError(
            f"{loaded.study_file}: no partition was measured, so none can be recommended; add `cache.sweeps`, such as "
            "`split: all`, and run the sweep (docs/partitions.md)."
        )
    return advice


def _searched(loaded: "Project") -> "pd.DataFrame":
    """What the sweep says of every partition."""
    from castmates.results.columns.partitions import PARETO
    from castmates.results.tables import Tables

    return Tables(loaded.results, loaded.study_file).needed("pareto", PARETO)


def _command(study: Path, lead_loss: str) -> str:
    return f"castmates confirm {study}" + (f" --lead-loss {lead_loss}" if lead_loss else "")
