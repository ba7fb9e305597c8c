"""Where commands print: a terminal with its width and colours, or a pipe, in which nothing is coloured or cut off."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

import typer

from castmates.cli.letters import has_all_letters

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

WIDE = 1000  # letters of a line that is not for a terminal


def console() -> "Console":
    """As wide as the terminal, or as COLUMNS asks for."""
    from castmates.terminal.console import SafeConsole

    own = SafeConsole()
    return own if own.is_terminal or "COLUMNS" in os.environ else SafeConsole(width=WIDE)


def show(*parts: object) -> None:
    """Print texts, tables and groups of them."""
    where = console()
    if where.is_terminal:
        where.print(*parts, sep="\n")
        return
    with where.capture() as held:
        where.print(*parts, sep="\n")
    # Tables fill the width that they have, which is no use in a file.
    typer.echo("\n".join(line.rstrip() for line in held.get().splitlines()))


def show_json(content: object) -> None:
    """Print data for scripts; a number that is none is null."""
    escaped = not has_all_letters()
    typer.echo(json.dumps(_plain(content), indent=2, ensure_ascii=escaped, allow_nan=False))


def rows_of(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a table as JSON has them."""
    return list(json.loads(table.to_json(orient="records", double_precision=15)))


def _plain(value: Any) -> object:  # noqa: ANN401 (whatever a command has found)
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
