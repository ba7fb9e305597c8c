"""The formats that a timeline is exported to, and the files that stand beside the tables of a trace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.results.columns.trace import PERFETTO_FILE
from castmates.timeline.model import Timeline


@dataclass(frozen=True)
class Format:
    """A format of files: its writer replaces the file only once the new one is whole."""

    name: str
    suffix: str
    title: str
    write: Callable[[Timeline, Path], None]


def write_all(timeline: Timeline, folder: Path) -> None:
    """Write the files by which a trace is opened: trace.pftrace, and open.html, which hands it to the Perfetto UI."""
    from castmates.timeline.export.page import write_page

    FORMATS["perfetto"].write(timeline, folder / PERFETTO_FILE)
    write_page(folder / PERFETTO_FILE, timeline.about)


def _perfetto(timeline: Timeline, file: Path) -> None:
    from castmates.timeline.export.perfetto import write  # here, because Perfetto's schema takes a while to import

    write(timeline, file)


def _chrome(timeline: Timeline, file: Path) -> None:
    from castmates.timeline.export.chrome import write

    write(timeline, file)


def _ctf(timeline: Timeline, folder: Path) -> None:
    from castmates.timeline.export.ctf import write

    write(timeline, folder)


FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format("perfetto", ".pftrace", "Perfetto, for ui.perfetto.dev and trace_processor", _perfetto),
        Format("chrome", ".json", "Chrome trace JSON, for chrome://tracing, Speedscope and Trace Compass", _chrome),
        Format("ctf", ".ctf", "CTF 1.8, a folder for Trace Compass and babeltrace2", _ctf),
    )
}
