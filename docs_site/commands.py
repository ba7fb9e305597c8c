"""The command line -> a page with every command, its arguments and options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def page(_root: Path) -> str:
    """What `castmates --help` and the help of every command print."""
    import typer
    from typer.cli import get_docs_for_click

    from castmates.cli.main import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="castmates", title="Commands")
    for one in _below(command):
        # Lists of commands cut their help after 45 letters.
        text = text.replace(f"`{one.name}`: {one.get_short_help_str()}\n", f"`{one.name}`: {_first_line(one)}\n")
    # Help texts hold words in angle brackets, for example results/<study>; Markdown would take them for tags.
    return re.sub(r"(?<!`)<(\w+)>(?!`)", r"&lt;\1&gt;", text)


def _below(command: Any) -> Iterator[Any]:  # noqa: ANN401 (click's)
    for one in getattr(command, "commands", {}).values():
        yield one
        yield from _below(one)


def _first_line(command: Any) -> str:  # noqa: ANN401
    return (command.help or "").strip().partition("\n")[0]
