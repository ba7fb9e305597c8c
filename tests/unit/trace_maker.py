"""XSpaces made for tests, by the classes that read them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from castmates.traces import xplane

Event = tuple[int, int, str]  # begin and end in picoseconds, and the name


def trace_bytes(threads: Mapping[str, Iterable[Event]], began_ns: int = 0, line_ns: int = 0) -> bytes:
    """A trace of one host with these threads; written by hand, so that fields come as TensorFlow writes them."""
    names: dict[str, int] = {}
    lines = []
    for number, (thread, events) in enumerate(threads.items()):
        line = xplane.message("Line")(id=number, name=thread.encode(), timestamp_ns=line_ns)
        for begin, end, name in events:
            key = names.setdefault(name, len(names) + 1)
            line.events.add(metadata_id=key, offset_ps=begin, duration_ps=end - begin)
        lines.append(line.SerializeToString())
    host = plane(b"/host:CPU", lines, event_names(names))
    return host + (_task(began_ns) if began_ns else b"")


def event_names(names: Iterable[str]) -> list[bytes]:
    """The names of events, numbered from 1."""
    return [
        xplane.message("EventEntry")(key=key, value={"id": key, "name": name.encode()}).SerializeToString()
        for key, name in enumerate(names, start=1)
    ]


def write_trace(path: Path, threads: Mapping[str, Iterable[Event]], began_ns: int = 0, line_ns: int = 0) -> Path:
    """The same in a file."""
    path.write_bytes(trace_bytes(threads, began_ns, line_ns))
    return path


def _task(began_ns: int) -> bytes:
    name = xplane.message("StatEntry")(key=1, value={"id": 1, "name": b"profile_start_time"}).SerializeToString()
    stat = xplane.message("Stat")(metadata_id=1, uint64_value=began_ns).SerializeToString()
    return field(1, field(2, b"Task Environment") + field(5, name) + field(6, stat))


def plane(name: bytes, lines: Iterable[bytes], entries: Iterable[bytes]) -> bytes:
    """A plane as a field of a trace."""
    parts = [field(2, name), *(field(3, line) for line in lines), *(field(4, entry) for entry in entries)]
    return field(1, b"".join(parts))


def field(number: int, content: bytes) -> bytes:
    """A field with a length."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])
