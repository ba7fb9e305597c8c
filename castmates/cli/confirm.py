"""`castmates sweep --confirm`: fresh launches for advised partitions."""

from collections.abc import Sequence
from pathlib import Path

import typer

from castmates.cli.arguments import enough, limit_of


def confirm_partitions(
    study: Path,
    limit: str,
    wish: tuple[str, str],
    launches: int | None,
    cores: str,
    options: Sequence[str],
    only_write: bool,
) -> None:
    """Measure the advised shares of the cache again, each in a separate study; `wish` is a mix and a partition."""
    from castmates.pipeline.advised import advised
    from castmates.pipeline.confirm import wanted, write_study
    from castmates.pipeline.snakemake import sweep
    from castmates.project import load
    from castmates.results.find import find
    from castmates.results.plans import read_plan
    from castmates.study.confirmation import FEWEST_LAUNCHES

    enough(launches, FEWEST_LAUNCHES, "--confirm")
    find(study)
    project = load(study)
    folder = project.results
    plan = read_plan(folder.plan_file)
    mix, partition = wish
    chosen = [wish] if partition else wanted(project.study, plan, advised(project, plan, limit_of(limit)), mix)
    files = [write_study(project, plan, *each, launches) for each in chosen]
    for file in files:
        typer.echo(f"written: {file}")
    if only_write:
        return
    for file in files:
        sweep(file, cores, typer.echo, options=options)
    if missing := len(plan.launches) - len(folder.measured(plan).launches):
        typer.echo(f"{missing} launches of {study} are still missing; its page is renewed by its next sweep.")
        return
    sweep(study, cores, typer.echo, options=options)
