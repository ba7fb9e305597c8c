"""The command `castmates open`: the report of a study in a browser."""

import os
import webbrowser

import typer

from castmates.cli.arguments import StudiedOrDefault
from castmates.errors import CastmatesError

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def open_report(study: StudiedOrDefault) -> None:
    """Open the report of a study in the browser; where there is no desktop, print its address."""
    from castmates.results.find import find

    folder, _ = find(study)
    page = folder.page_file
    if not page.is_file():
        raise CastmatesError(f"{page}: there is no report yet; run `castmates sweep {study}`.")
    address = page.resolve().as_uri()
    typer.echo(address)
    # Without a desktop a browser for the terminal may be found, which would take the terminal and show no figure.
    if any(os.environ.get(name) for name in DISPLAYS):
        webbrowser.open(address)
