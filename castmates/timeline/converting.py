"""Converts a trace, our own or one of another program, into another format."""

import mmap
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from castmates import files
from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.results.columns.trace import PERFETTO_FILE, TRACE_RECORD, TRACE_TABLES
from castmates.results.folder import StudyFolder
from castmates.results.traces import traces_there
from castmates.timeline import tables
from castmates.timeline.importers import chrome, ctf, ftrace, strace, tensorboard
from castmates.timeline.importers.lines import Progress, head, no_progress
from castmates.timeline.model import Timeline, cut, start
from castmates.traces.wire import NotProtobuf, fields

# The formats that a timeline is exported to, and the files that stand beside the tables of a trace.


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


# What can be imported: each format with how it is recognised, by its content, and what reads it.


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


TABLES, CTF = "tables", "ctf"
TABLES_SUFFIX = ".trace"
PACKED = 50  # the field of a packet of Perfetto that holds others, packed
PIECE = 1 << 20  # bytes that are unpacked at once
OURS = {"chrome": (b'"otherData"', b'"origin_ns"'), "perfetto": (b"About this trace",)}


@dataclass(frozen=True)
class Source:
    """What is converted."""

    path: Path
    title: str
    size: int  # bytes
    importer: Importer | None  # None for a trace of ours

    def read(self, progress: Progress = no_progress) -> Timeline:
        """Read all of it."""
        if self.importer is None:
            return tables.read(self.path)
        return read(self.path, self.importer, progress)


def source_of(path: Path) -> Source:
    """Recognise a file or folder by its content."""
    if (path / TRACE_RECORD).is_file():
        size = sum(file.stat().st_size for file in path.glob("*.parquet"))
        return Source(path, "a trace of Castmates", size, None)
    try:
        found = importer_of(path)
        return Source(path, found.title, size_of(path), found)
    except OSError as problem:
        raise CastmatesError(f"{path} cannot be read ({reason(problem)}).") from None


def output_of(source: Source, to: str) -> Path:
    """Where it is written if nothing else is asked for: beside the source, or here for a trace of a study."""
    suffix = TABLES_SUFFIX if to == TABLES else FORMATS[to].suffix
    path = source.path if source.path.name else source.path.absolute()
    return Path(path.name + suffix) if _among_traces(path) else path.with_name(path.name + suffix)


def may_write(output: Path, to: str, source: Source) -> None:
    """Refuse to replace what this command did not write, or the source itself."""
    if among := _among_traces(output):
        raise CastmatesError(
            f"{output} would lie in {among}, where only `castmates trace record` writes; give another --output."
        )
    if output.exists() and output.resolve() == source.path.resolve():
        raise CastmatesError(f"{output} is what is to be converted; give another --output.")
    if not output.parent.is_dir():
        raise CastmatesError(f"{output.parent}: there is no such folder; make it, or give another --output.")
    if output.exists() and not _is_ours(output, to):
        raise CastmatesError(
            f"{output} is there already, and `castmates trace convert` did not write it; move it away, or give another "
            "--output."
        )


def convert(timeline: Timeline, to: str, output: Path, span: tuple[float, float | None] | None = None) -> Timeline:
    """Write a timeline, or a part of it; return what was written."""
    if span is not None:
        whole, timeline = timeline, cut(timeline, *span)
        if not sum(counts(timeline).values()):
            raise CastmatesError(f"--span: nothing happens in that time; the trace has {words(whole)}.")
    if to == TABLES:
        tables.write(timeline, output)
    else:
        FORMATS[to].write(timeline, output)
    return timeline


def counts(timeline: Timeline) -> Mapping[str, int]:
    """How many rows of each kind there are, the largest number first."""
    found: dict[str, int] = {}
    for table in (timeline.intervals, timeline.instants):
        for kind, count in table["kind"].value_counts().items():
            if count:
                found[str(kind)] = found.get(str(kind), 0) + int(count)
    found |= {name: len(table) for name in ("samples", "stacks") if len(table := timeline.table(name))}
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def seconds_of(timeline: Timeline) -> float:
    """From the first moment to the last."""
    ends = [int(timeline.intervals["t1_ns"].max())] if len(timeline.intervals) else []
    ends += [
        int(timeline.table(name)["t_ns"].iloc[-1])
        for name in ("instants", "samples", "stacks")
        if len(timeline.table(name))
    ]
    return (max(ends) - start(timeline)) / 1e9 if ends else 0.0


def words(timeline: Timeline) -> str:
    """How long it is."""
    return f"{seconds_of(timeline):.3f} s"


def _among_traces(path: Path) -> Path | None:
    """The folder of a study's traces in which a path lies; None where it lies in none."""
    return next(
        (each for each in path.resolve().parents if each.name == "traces" and traces_there(StudyFolder(each.parent))),
        None,
    )


def _is_ours(output: Path, to: str) -> bool:
    """Whether something bears our mark."""
    if to == TABLES:
        own = {TRACE_RECORD, *(f"{name}.parquet" for name in TRACE_TABLES)}
        return output.is_dir() and (output / TRACE_RECORD).is_file() and {file.name for file in output.iterdir()} <= own
    if to == CTF:
        return output.is_dir()  # its writer looks into it
    if not output.is_file():
        return False
    if to == "perfetto":
        return _in_first_packet(output, *OURS[to])
    beginning = _head(output)
    return all(mark in beginning for mark in OURS[to])


def _head(output: Path) -> bytes:
    with output.open("rb") as file:
        return file.read(1 << 20)


def _in_first_packet(output: Path, mark: bytes) -> bool:
    """Whether the first packet of a file of Perfetto has these bytes; neither file nor packet is held in memory."""
    with output.open("rb") as file:
        if not file.read(1):
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole, memoryview(whole) as data:
            return any(mark in piece for piece in _unpacked(data, len(mark)))


def _unpacked(data: memoryview, overlap: int) -> Iterator[bytes]:
    """What is in the first packet, piece by piece, each with the end of the one before; nothing where it is none."""
    unpacking, before = zlib.decompressobj(), b""
    try:
        packet = next(fields(data, 0, len(data)))
        inner = next(each for each in fields(data, packet.content, packet.end) if each.number == PACKED)
        for at in range(inner.content, inner.end, PIECE):
            packed = data[at : min(at + PIECE, inner.end)].tobytes()
            while packed:
                piece = unpacking.decompress(packed, PIECE)
                packed = unpacking.unconsumed_tail
                yield before + piece
                before = piece[-overlap:]
    except (NotProtobuf, StopIteration, zlib.error):
        return
