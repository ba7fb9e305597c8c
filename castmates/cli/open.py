"""The command `castmates open`: the report of a study in a browser."""

import os

import typer

from castmates.cli.command import RESULTS, StudiedOrDefault, command
from castmates.errors import CastmatesError

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@command("open", "castmates open results/first-look", group=RESULTS, order=2)
def open_report(study: StudiedOrDefault) -> None:
    """Open the report of a study in the browser, or print its address."""
    from castmates.results.find import find

    folder, _ = find(study)
    page = folder.page_file
    if not page.is_file():
        raise CastmatesError(f"{page}: there is no report yet; run `castmates sweep {study}`.")
    typer.echo(page.resolve().as_uri())
    show_in_browser(page.resolve().as_uri())


def show_in_browser(address: str) -> None:
    """Open a page where there is a desktop."""
    # Without a desktop a browser for the terminal may be found, which would take the terminal and show no figure.
    if any(os.environ.get(name) for name in DISPLAYS):
        import webbrowser

        webbrowser.open(address)
