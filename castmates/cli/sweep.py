"""The command `castmates sweep`: what is missing of a study is measured, and its report is written."""

from typing import Annotated

import typer

from castmates.cli.arguments import Cores, Launches, StudyFile

ANALYSES = ("gather_blocks", "estimate_effects", "estimate_operations", "estimate_traces")  # rules that make tables


def sweep(
    study: StudyFile,
    blocks: Launches = None,
    cores: Cores = "all",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the jobs that would run.")] = False,
    again: Annotated[
        bool, typer.Option("--analyse-again", help="Make all tables again from what is measured, as for a new version.")
    ] = False,
) -> None:
    """Measure what is missing of a study and write its report; Ctrl-C is safe, the same command goes on."""
    from castmates.pipeline import snakemake
    from castmates.pipeline.closing import refuse_nothing
    from castmates.project import load
    from castmates.results.torn import torn_words

    project = load(study, blocks)
    found = project.found()
    project.plan(found)  # what is wrong or has no place here is one sentence; Snakemake is not started for it
    for sentence in torn_words(found.torn):
        typer.echo(sentence, err=True)
    options = [*(["--dry-run"] if dry_run else []), *(["--forcerun", *ANALYSES] if again else [])]
    snakemake.sweep(study, cores, lambda line: typer.echo(line, err=True), blocks, options)
    if not dry_run:
        refuse_nothing(project)
