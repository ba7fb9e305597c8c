"""The command `castmates build-inputs`: what workloads read."""

from typing import Annotated

import typer


def build_inputs(
    name: Annotated[str | None, typer.Argument(help="The data set; without one they are listed.")] = None,
) -> None:
    """Make a data set that workloads read, once for each content of its generator."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.workloads import inputs

    if name is not None:
        typer.echo(inputs.build(name, ENVIRONMENTS, cache_folder()))
        return
    for data_set in inputs.known():
        place = inputs.location(data_set, ENVIRONMENTS, cache_folder())
        typer.echo(f"{data_set:24} {place if inputs.ready_file(place).is_file() else 'not made yet'}")
