"""The command line -> a page with every command, its arguments and options."""

import re
from pathlib import Path


def page(_root: Path) -> str:
    """What `castmates --help` and the help of every command print."""
    import typer
    from typer.cli import get_docs_for_click

    from castmates.cli.main import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="castmates", title="Commands")
    # Help texts hold words in angle brackets, for example results/<study>; Markdown would take them for tags.
    return re.sub(r"(?<!`)<(\w+)>(?!`)", r"&lt;\1&gt;", text)
