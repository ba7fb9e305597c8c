"""What can be imported: each format with how it is recognised, by its content, and what reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from castmates import files
from castmates.errors import CastmatesError
from castmates.timeline.importers import chrome, ctf, ftrace, strace, tensorboard
from castmates.timeline.importers.lines import Progress, head, no_progress
from castmates.timeline.model import Timeline


@dataclass(frozen=True)
class Importer:
    """A format that can be read."""

    name: str
    title: str
    recognises: Callable[[Path, bytes], bool]  # by the file or folder, and the beginning of the file
    read: Callable[[Path, Progress], Timeline]


IMPORTERS = (  # those that are sure of themselves come first
    Importer("trace-cmd", "a trace.dat of trace-cmd", lambda _, text: ftrace.recognises_dat(text), ftrace.read_dat),
    Importer("lttng", "a folder of LTTng or CTF 1.8", lambda path, _: ctf.recognises(path), ctf.read),
    Importer("tensorboard", "a TensorBoard profile (*.xplane.pb)", tensorboard.recognises, tensorboard.read),
    Importer("chrome", "a trace in Chrome's JSON", lambda _, text: chrome.recognises(text), chrome.read),
    Importer("strace", "the text of strace", lambda _, text: strace.recognises(text), strace.read),
    Importer(
        "ftrace",
        "the text of ftrace, trace-cmd report or perf script",
        lambda _, text: ftrace.recognises(text),
        ftrace.read,
    ),
)


PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace")
OF_PERF = "this is a file of perf record; convert the text that `perf script --ns` prints of it"
FOR_PERFETTO = (
    "this is named as a trace for Perfetto, which is written and not read; give the folder of the trace itself, "
    "results/<study>/traces/<mix>"
)


def importer_of(path: Path) -> Importer:
    """The importer that recognises a file or folder."""
    beginning = _beginning(path)
    found = next((each for each in IMPORTERS if each.recognises(path, beginning)), None)
    if found is None:
        if beginning.startswith(b"PERFILE2"):
            raise CastmatesError(f"{path}: {OF_PERF}.")
        if path.suffix in PERFETTO_SUFFIXES:  # its first byte is that of any text with an empty line at its top
            raise CastmatesError(f"{path}: {FOR_PERFETTO}.")
        known = ", ".join(each.title for each in IMPORTERS)
        what = "folder" if path.is_dir() else "file"
        raise CastmatesError(f"{path}: this {what} is none of what can be read: {known}.")
    return found


def read(path: Path, importer: Importer, progress: Progress = no_progress) -> Timeline:
    """Read a foreign trace; what is wrong with it is a sentence."""
    try:
        return importer.read(path, progress)
    except (pa.ArrowException, ValueError, OverflowError) as problem:
        why = str(problem).splitlines()[0][:200].rstrip(".") if str(problem) else type(problem).__name__
        raise CastmatesError(f"{path}: {importer.title} was expected here, but it is cut or damaged ({why}).") from None


def size_of(path: Path) -> int:
    """How many bytes a file or folder has; strace may have written a file for each thread."""
    return files.size_of(path) if path.is_dir() else sum(map(files.size_of, strace.files_of(path)))


def _beginning(path: Path) -> bytes:
    """The beginning of a file, or of the first file of `strace -ff`; empty for other folders."""
    if path.is_file():
        content = head(path)
    elif own := strace.files_of(path):
        content = head(next(iter(own)))
    elif path.is_dir():
        return b""
    else:
        what = "this is no file or folder" if path.exists() else "there is no such file or folder"
        raise CastmatesError(f"{path}: {what}.")
    if not content:
        raise CastmatesError(f"{path}: this file is empty.")
    return content
