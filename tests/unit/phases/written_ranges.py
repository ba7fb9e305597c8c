"""What a phases file holds, and calls that the writers in Python and in C make alike."""

import threading
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from castmates.workloads import phase_file
from castmates.workloads.phase_file import Reader
from castmates.workloads.phase_records import Names, Phase, Range, phases_in, ranges_in, without_payloads
from castmates.workloads.phase_writer import Handle, Writer

CAPACITY = 16  # of the files in which a call sequence may lap the reader
Call = tuple[str, str, str, int, str]  # what, domain, name, step (or handle, or epoch), payload
DOMAINS = ("", "input", "a longer domain")
NAMES = ("forward", "a", "threads", "bad/name", "é" * 30, "")
PAYLOADS = ("", "shape=8x128", "x" * 64, "x" * 65)
_WORDS = ("begin", "end", "mark", "unmark", "start", "finish", "instant", "epoch", "other", "finish-there")
CALLS = st.lists(
    st.tuples(
        st.sampled_from(_WORDS),
        st.sampled_from(DOMAINS),
        st.sampled_from(NAMES),
        st.integers(-1, 3),
        st.sampled_from(PAYLOADS),
    ),
    max_size=40,
)


def create(path: Path, capacity: int = CAPACITY, counters: Sequence[str] = ()) -> Reader:
    """An empty file, and its reader."""
    phase_file.create(path, counters, capacity)
    return Reader(path)


def heard(reader: Reader, since: int = 0) -> list[Range]:
    chunk = reader.read(since)
    counters = len(reader.counters)
    return list(ranges_in(*without_payloads(chunk.data, counters), Names.of(reader), counters))


def phases_of(reader: Reader, since: int = 0) -> list[Phase]:
    """The phases of no domain."""
    heads, _ = without_payloads(reader.read(since).data, len(reader.counters))
    return list(phases_in(heads, Names.of(reader), len(reader.counters)))


def said(reader: Reader) -> tuple[object, ...]:
    """Everything that a file says but for times and threads."""
    rows = [(one.type, one.path, one.domain, one.step, one.epoch, one.payload) for one in heard(reader)]
    names = [(path, *place) for path, place in zip(reader.names, reader.places, strict=True)]
    return rows, names, reader.domains, reader.head, reader.open, reader.cut, reader.dropped


def make(writer: Writer, calls: Sequence[Call]) -> None:
    """Make these calls; handles are ended in the order of their numbers, which may be out of range."""
    handles: list[Handle | None] = []

    def finish(place: int) -> None:
        if 0 <= place < len(handles):
            writer.finish(handles[place])

    def in_other_thread(domain: str, name: str, step: int) -> None:
        writer.begin(name, step, domain=domain)
        writer.end(domain)

    for what, domain, name, step, payload in calls:
        number = None if step < 0 else step
        match what:
            case "begin":
                writer.begin(name, number, domain=domain, payload=payload or None)
            case "end":
                writer.end(domain)
            case "mark":
                writer.mark(name, number)
            case "unmark":
                writer.mark(None)
            case "start":
                handles.append(writer.start(name, number, domain, payload or None))
            case "epoch":
                handles.append(writer.epoch(step))
            case "instant":
                writer.instant(name, number, domain, payload or None)
            case "finish":
                finish(step)
            case _:
                work = (finish, (step,)) if what == "finish-there" else (in_other_thread, (domain, name, step))
                thread = threading.Thread(target=work[0], args=work[1])
                thread.start()
                thread.join()
