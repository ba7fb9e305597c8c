"""The command `castmates help`: the pages of the documentation, without a network."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from castmates import shipped
from castmates.cli.command import DECLARED, LEARN, command
from castmates.errors import CastmatesError

COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def _topics(incomplete: str) -> Iterator[str]:
    yield from (name for name in shipped.pages() if name.startswith(incomplete))


@command("help", "castmates help", "castmates help partitions", group=LEARN, order=2)
def show_help(
    context: typer.Context,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", show_default=False, help="A page, or a command.", autocompletion=_topics)
    ] = "",
) -> None:
    """Read the documentation: castmates help TOPIC."""
    pages = shipped.pages()
    if not topic:
        _list(pages)
    elif topic in pages:
        _show(COMMENT.sub("", pages[topic].read_text(encoding="utf-8")))
    elif topic in {one.name.partition(" ")[0] for one in DECLARED}:
        whole = context.find_root().command
        whole.main([topic, "--help"], prog_name="castmates")
    else:
        from castmates.study.reading import did_you_mean

        meant = did_you_mean(topic, [*pages, *(one.name for one in DECLARED)])
        raise CastmatesError(f"there is no page '{topic}'{meant}; `castmates help` lists all pages.")


def _list(pages: dict[str, Path]) -> None:
    for name, page in pages.items():
        with page.open(encoding="utf-8") as text:
            title = next((line.strip("# \n") for line in text if line.startswith("# ")), "")
        typer.echo(f"  {name:<24}{title}")
    typer.echo("\ncastmates help TOPIC shows one; castmates COMMAND --help the options of a command.")


def _show(text: str) -> None:
    from castmates.cli.screen import console

    where = console()
    if not where.is_terminal:
        typer.echo(text)
        return
    from rich.markdown import Markdown

    with where.pager(styles=True, links=False):
        where.print(Markdown(text, hyperlinks=False))
