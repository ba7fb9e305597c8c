"""The command `castmates show`: what came out of a study, in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from castmates.cli.arguments import AsJson, StudiedOrDefault
from castmates.cli.screen import console, show_json

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
    """The lines that the end of a sweep shows too, the headline in bold, and where the report is."""
    from castmates.report.answer.answer import answer
    from castmates.report.answer.lines import WIDTH, answer_lines

    results = _results(study)
    found = answer(results)
    where = console()
    for line in answer_lines(found, min(where.width, WIDTH)):
        style = "bold" if line and line in found.headline else None
        where.print(line, style=style, markup=False, soft_wrap=True)
    if results.folder.page_file.is_file():
        where.print(f"\nReport  {results.folder.page_file.resolve().as_uri()}", markup=False, soft_wrap=True)


def _results(study: Path) -> "Results":
    from castmates.report.results import read_results
    from castmates.results.find import find
    from castmates.results.measured import found_blocks
    from castmates.results.torn import torn_words

    folder, file = find(study)
    for sentence in torn_words(found_blocks(folder).torn):
        typer.echo(sentence, err=True)
    return read_results(folder.path, file)
