"""The command `castmates schemas`: JSON Schemas for editors."""

from pathlib import Path
from typing import Annotated

import typer

from castmates.errors import CastmatesError


def schemas(
    check: Annotated[bool, typer.Option("--check", help="Only check whether they are stale.")] = False,
) -> None:
    """Write the JSON Schemas of the YAML files, for editors."""
    from castmates.files import replace_text
    from castmates.study.schema import SCHEMAS, text_of

    for name in SCHEMAS:
        file = Path("config/schemas") / name
        if check and (not file.is_file() or file.read_text() != text_of(name)):
            raise CastmatesError(f"{file} is stale; run `make schemas` and commit it.")
        if not check:
            replace_text(file, text_of(name))
            typer.echo(file)
