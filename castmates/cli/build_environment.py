"""The command `castmates build-environment`: what workloads run in."""

from typing import Annotated

import typer

from castmates.errors import CastmatesError


def build_environment(
    name: Annotated[str, typer.Argument(help="native, or the NAME of envs/NAME.lock.")],
) -> None:
    """Build what a workload runs in, once for each content of its lock."""
    from castmates.files import cache_folder
    from castmates.project import ENVIRONMENTS
    from castmates.workloads import environments

    known = environments.known(ENVIRONMENTS)
    if name not in known:
        raise CastmatesError(f"there is no environment '{name}'; there are: {', '.join(known)}.")
    typer.echo(environments.build(name, ENVIRONMENTS, cache_folder()))
