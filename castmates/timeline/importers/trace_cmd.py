"""Reads trace.dat, the file of trace-cmd, by way of `trace-cmd report`."""

from pathlib import Path

from castmates.timeline.importers.ftrace import Reading
from castmates.timeline.importers.lines import Progress, blocks_of
from castmates.timeline.importers.programs import needed, output_of
from castmates.timeline.model import Timeline

SOURCE = "trace-cmd"
MAGIC = b"\x17\x08\x44tracing"


def recognises(beginning: bytes) -> bool:
    """Whether a file begins as those of trace-cmd do."""
    return beginning.startswith(MAGIC)


def read(path: Path, progress: Progress) -> Timeline:
    """Read a file."""
    command = [needed(SOURCE, path), "report", "-t", "-i", str(path.absolute())]
    reading = Reading(str(path))
    output_of(command, path, lambda text: reading.add_all(blocks_of(text, str(path))), lambda _: None)
    progress(path.stat().st_size)
    return reading.timeline(path, SOURCE, path.stat().st_size)
