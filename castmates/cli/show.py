"""The command `castmates show`: what came out of a study, in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from castmates.cli.arguments import AsJson, StudiedOrDefault
from castmates.cli.screen import show_json

if TYPE_CHECKING:
    from castmates.report.results import Results


def show_result(study: StudiedOrDefault, as_json: AsJson = False) -> None:
    """Print what came out: each pair with its loss and interval, how sure that is, and what to do next."""
    if as_json:
        from castmates.report.answer.answer import answer

        show_json(answer(_results(study)))
    else:
        print_result(study)


def print_result(study: Path) -> None:
    """The lines that the end of a sweep shows too."""
    from castmates.report.answer.lines import answer_lines

    for line in answer_lines(_results(study)):
        typer.echo(line)


def _results(study: Path) -> "Results":
    from castmates.report.results import read_results
    from castmates.results.find import find

    folder, file = find(study)
    return read_results(folder.path, file)
