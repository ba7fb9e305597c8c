"""The formats that a timeline is exported to, and the files that stand beside the tables of a trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from castmates.results.columns.trace import PERFETTO_FILE
from castmates.timeline.model import Timeline


@dataclass(frozen=True)
class Format:
    """A format of files, and the name of the module that writes it."""

    name: str
    suffix: str

    def write(self, timeline: Timeline, place: Path) -> None:
        """Write it; what was there is replaced only once the new one is whole."""
        # Imported here, because Perfetto's schema takes a while to import.
        import_module(f"castmates.timeline.export.{self.name}").write(timeline, place)


FORMATS: Mapping[str, Format] = {
    "perfetto": Format("perfetto", ".pftrace"),  # for ui.perfetto.dev and trace_processor
    "chrome": Format("chrome", ".json"),  # for chrome://tracing, Speedscope and Trace Compass
    "ctf": Format("ctf", ".ctf"),  # CTF 1.8, a folder for Trace Compass and babeltrace2
}


def write_all(timeline: Timeline, folder: Path) -> None:
    """Write the files by which a trace is opened: trace.pftrace, and open.html, which hands it to the Perfetto UI."""
    from castmates.timeline.export.page import write_page

    FORMATS["perfetto"].write(timeline, folder / PERFETTO_FILE)
    write_page(folder / PERFETTO_FILE, timeline.about)
