"""The command `castmates demo`: a first report in two minutes, on a simulated processor."""

from functools import partial

import typer

from castmates import shipped
from castmates.cli.command import LEARN, Cores, Quiet, Runner, Verbose, command, loudness


@command("demo", "castmates demo", group=LEARN, order=1, kind=Runner)
def demo(cores: Cores = "all", quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Make a first report in two minutes, on a simulated processor.

    It measures nothing, and writes into results/demo of this folder.
    """
    from castmates.cli.open import show_in_browser
    from castmates.pipeline import snakemake
    from castmates.results.folder import StudyFolder

    study = shipped.studies() / "demo.yaml"
    snakemake.sweep(study, cores, partial(typer.echo, err=True), options=loudness(quiet, verbose))
    show_in_browser(StudyFolder.of("demo").page_file.resolve().as_uri())
