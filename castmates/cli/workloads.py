"""The command `castmates workloads`: the catalogue as a table, and whether each workload keeps its promises."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.command import BEGIN, CATALOGUE, Format, Runner, command, complete_workloads
from castmates.cli.screen import show
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.study.model import Workload

Folder = Annotated[Path, typer.Option("--catalogue", help="The folder of catalogue files.", metavar="DIR")]
Everything = Annotated[bool, typer.Option("--all", help="A line for every workload, variants included.")]
Names = Annotated[
    list[str] | None, typer.Argument(help="Which workloads.", metavar="NAME", autocompletion=complete_workloads)
]


@command("workloads", "castmates workloads", "castmates workloads --all", group=BEGIN, order=3)
def list_workloads(
    context: typer.Context, everything: Everything = False, form: Format = "text", catalogue: Folder = CATALOGUE
) -> None:
    """List the programs that a study can name, or check them."""
    if context.invoked_subcommand is None:
        _list(catalogue, everything, form == "json")


@command("workloads check", "castmates workloads check xz", order=1, kind=Runner)
def check_workloads(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="All of the catalogue.")] = False,
    installed: Annotated[
        bool, typer.Option("--installed", help="All that can be started here; what cannot is listed.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="How long each one runs.")] = 3.0,
    form: Format = "text",
    catalogue: Folder = CATALOGUE,
) -> None:
    """Run each workload alone for a few seconds and prove that it keeps its promises; status 1 where one does not."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS, read_catalogue
    from castmates.trials.workloads import tables
    from castmates.trials.workloads.check import Places, check

    chosen = _fitted(_chosen(read_catalogue(catalogue), names or [], everything or installed))
    places = Places(ENVIRONMENTS, cache_folder(), build=not installed)
    results = check(chosen, places, seconds, say=lambda line: typer.echo(line, err=True))
    if form == "json":
        typer.echo(tables.as_json([result.about() for result in results]))
    else:
        show(tables.results_table(results))
    if any(result.verdict == "broken" or (result.verdict == "not here" and not installed) for result in results):
        raise typer.Exit(1)


@command("workloads noise", "castmates workloads noise stream chase", order=2, kind=Runner)
def show_noise(
    names: Annotated[
        list[str], typer.Argument(help="Which workloads.", metavar="NAME", autocompletion=complete_workloads)
    ],
    seconds: Annotated[float, typer.Option(min=5, max=3600, help="How long each one is recorded.")] = 25.0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw it too: STEM.svg, STEM.pdf, STEM.png and STEM.csv.", metavar="STEM")
    ] = None,
    form: Format = "text",
    catalogue: Folder = CATALOGUE,
) -> None:
    """Run each workload alone, and show how its rate wanders: what neighbouring windows differ by, by their length."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS, read_catalogue
    from castmates.trials.workloads import tables
    from castmates.trials.workloads.check import Places
    from castmates.trials.workloads.noise import measure_noise

    chosen = _fitted(_chosen(read_catalogue(catalogue), names, every=False))
    places = Places(ENVIRONMENTS, cache_folder())
    rows = measure_noise(chosen, places, seconds, say=lambda line: typer.echo(line, err=True))
    if figure is not None:
        from castmates.report.figures.wandering import write_figure

        write_figure(rows, figure)
    if form == "json":
        typer.echo(tables.as_json([asdict(row) for row in rows]))
    else:
        show(tables.noise_table(rows))


def _fitted(chosen: "dict[str, Workload]") -> "dict[str, Workload]":
    """The workloads with sizes in bytes, as a study on this machine would start them."""
    import os

    from castmates.machine.probes import usable_memory
    from castmates.machine.topology import read_topology
    from castmates.project import layout_of
    from castmates.study.last_level import CachePlace, last_level, sized_workload

    layout, memory, cpus = layout_of(read_topology()), usable_memory(), sorted(os.sched_getaffinity(0))
    return {
        name: sized_workload(workload, CachePlace(own := cpus[-workload.cores :], last_level(layout, own), memory))
        for name, workload in chosen.items()
    }


def _list(catalogue: Path, everything: bool, as_json: bool) -> None:
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS, read_catalogue
    from castmates.trials.workloads import tables
    from castmates.trials.workloads.tables import listing
    from castmates.workloads import written

    known = read_catalogue(catalogue)
    families = {name: family for family, entries in written.files(catalogue).items() for name in entries}
    rows = tables.rows(known, ENVIRONMENTS, cache_folder(), families)
    if as_json:
        typer.echo(tables.as_json(rows))
    else:
        show(listing(rows, everything))


def _chosen(catalogue: "Mapping[str, Workload]", names: Sequence[str], every: bool) -> "dict[str, Workload]":
    from castmates.study.reading import did_you_mean

    if bool(names) == every:
        raise CastmatesError("choose the workloads to check: their names, or --installed, or --all.")
    if every:
        return {name: workload for name, workload in catalogue.items() if workload.words}
    for name in names:
        if name not in catalogue:
            raise CastmatesError(
                f"there is no workload '{name}' in the catalogue{did_you_mean(name, catalogue)} "
                "(`castmates workloads` lists what there is)."
            )
    return {name: catalogue[name] for name in names}
