"""The command `castmates sweep`: what is missing of a study is measured, and its report is written."""

from typing import Annotated

import typer

from castmates.cli.arguments import Cores, Launches, StudyFile


def sweep(
    study: StudyFile,
    blocks: Launches = None,
    cores: Cores = "all",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the jobs that would run.")] = False,
) -> None:
    """Measure what is missing of a study and write its report; Ctrl-C is safe, the same command goes on."""
    from castmates.pipeline import snakemake
    from castmates.project import load

    load(study, blocks).plan()  # what is wrong or has no place here is one sentence; Snakemake is not started for it
    snakemake.sweep(study, cores, lambda line: typer.echo(line, err=True), blocks, ["--dry-run"] if dry_run else [])
