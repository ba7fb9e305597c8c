"""The command `castmates confirm`: fresh blocks for recommended partitions."""

from typing import Annotated

import typer

from castmates.cli.arguments import Cores, LeadLoss, StudyFile, limit_of
from castmates.errors import CastmatesError


def confirm(
    study: StudyFile,
    lead_loss: LeadLoss = "",
    mix: Annotated[str, typer.Option(help="Only this mix; all that have a recommendation if left out.")] = "",
    partition: Annotated[str, typer.Option(help="With --mix: this partition, recommended or not.")] = "",
    blocks: Annotated[
        int | None, typer.Option(min=3, max=10_000, help="Fresh blocks; the study's own number, and at least 3.")
    ] = None,
    cores: Cores = "all",
    only_write: Annotated[
        bool, typer.Option("--only-write", help="Write the study files and measure nothing.")
    ] = False,
) -> None:
    """Measure the recommended shares of the cache again, each in a separate study, and renew the report."""
    from castmates.pipeline.confirm import wanted, write_study
    from castmates.pipeline.recommend_partitions import advised
    from castmates.pipeline.snakemake import sweep
    from castmates.project import load
    from castmates.results.plans import read_plan

    if partition and not mix:
        raise CastmatesError("--partition needs --mix: partitions are measured mix by mix.")
    project = load(study)
    folder = project.results
    plan = read_plan(folder.plan_file)
    chosen = [(mix, partition)]
    if not partition:
        chosen = wanted(project.study, plan, advised(project, plan, limit_of(lead_loss)), mix)
    files = [write_study(project, plan, *each, blocks) for each in chosen]
    for file in files:
        typer.echo(f"written: {file}")
    if only_write:
        return
    for file in files:
        sweep(file, cores, typer.echo)
    if missing := len(plan.blocks) - len(folder.measured(plan).blocks):
        typer.echo(f"{missing} blocks of {study} are still missing; its page is renewed by its next sweep.")
        return
    sweep(study, cores, typer.echo)
