"""Reads an XSpace, the trace that TensorFlow and JAX write, piece by piece: it need not fit into memory."""

import mmap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from castmates.errors import CastmatesError
from castmates.traces import wire
from castmates.traces.wire import Field, NotProtobuf, fields, runs
from castmates.workloads.tfmodels.xspace import HOST

AT_ONCE = 4 << 20  # bytes of events that protobuf parses together
PLANES = 1  # of an XSpace
NAME, LINES, EVENT_NAMES, STAT_NAMES, STATS = 2, 3, 4, 5, 6  # of a plane
LINE_ID, LINE_NAME, TIMESTAMP, EVENTS, DISPLAY_NAME = 1, 2, 3, 4, 11  # of a line
Ints = npt.NDArray[np.int64]
StatValue = int | float | str


@dataclass(frozen=True)
class EventName:
    """What events of one kind are called, and what holds for all of them."""

    name: str
    display_name: str = ""
    stats: Mapping[str, StatValue] | None = None


@dataclass(frozen=True)
class Events:
    """Some events of a line, column by column; times are in picoseconds from the line's timestamp."""

    kinds: Ints  # keys of the plane's event names
    offset_ps: Ints
    duration_ps: Ints
    stats: Mapping[str, Mapping[int, StatValue]]  # by name: the values of those events that have one, by place


class Line:
    """The events of one thread or stream."""

    def __init__(self, plane: "Plane", begin: int, end: int) -> None:
        self._plane, self._begin, self._end = plane, begin, end
        self.name = self.display_name = ""
        self.timestamp_ns = self.id = 0  # the id of a host's line is the system's number of its thread
        for field in fields(plane.data, begin, end):
            if field.number == LINE_NAME:
                self.name = _text(plane.data, field)
            elif field.number == DISPLAY_NAME:
                self.display_name = _text(plane.data, field)
            elif field.number == TIMESTAMP:
                self.timestamp_ns = field.value
            elif field.number == LINE_ID:
                self.id = field.value

    def events(self, stats: Collection[str] = (), of: Collection[int] | None = None) -> Iterator[Events]:
        """Yield the events, some at a time, with these statistics of each, or of those of these kinds alone."""
        wanted = {number: name for number, name in self._plane.stat_names.items() if name in stats}
        parsed = wire.message("Line")
        for begin, end in runs(self._plane.data, self._begin, self._end, EVENTS, AT_ONCE):
            events = _parsed(parsed, self._plane.data, begin, end).events
            yield _columns(events, wanted, self._plane.stat_names, of)


class Plane:
    """The lines of one device, or of the host."""

    def __init__(self, data: memoryview, begin: int, end: int) -> None:
        self.data = data
        self._fields = [field for field in fields(data, begin, end) if field.number in (NAME, *_MAPS, LINES, STATS)]

    @cached_property
    def name(self) -> str:
        """What the plane is called: /host:CPU, /device:GPU:0."""
        return next((_text(self.data, field) for field in self._fields if field.number == NAME), "")

    @cached_property
    def event_names(self) -> Mapping[int, EventName]:
        """The names of its events."""
        found = {}
        for number, value in self._entries("EventEntry", EVENT_NAMES):
            stats = {self.stat_names.get(one.metadata_id, ""): _value(one, self.stat_names) for one in value.stats}
            found[number] = EventName(_decoded(value.name), _decoded(value.display_name), stats or None)
        return found

    @cached_property
    def stat_names(self) -> Mapping[int, str]:
        """The names of its statistics."""
        return {number: _decoded(value.name) for number, value in self._entries("StatEntry", STAT_NAMES)}

    @property
    def stats(self) -> Mapping[str, StatValue]:
        """What holds for the whole plane."""
        stat = wire.message("Stat")
        found = [_parsed(stat, self.data, each.content, each.end) for each in self._fields if each.number == STATS]
        return {self.stat_names.get(one.metadata_id, ""): _value(one, self.stat_names) for one in found}

    def bytes_of_events(self, stat: str) -> Iterator[tuple[str, bytes]]:
        """Yield the names of events for which this statistic holds, and its bytes."""
        for _, value in self._entries("EventEntry", EVENT_NAMES):
            for one in value.stats:
                if one.HasField("bytes_value") and self.stat_names.get(one.metadata_id) == stat:
                    yield _decoded(value.name), one.bytes_value

    def lines(self) -> Iterator[Line]:
        """Yield its threads or streams."""
        for field in self._fields:
            if field.number == LINES:
                yield Line(self, field.content, field.end)

    def _entries(self, kind: str, number: int) -> Iterator[tuple[int, Any]]:
        for field in self._fields:
            if field.number == number:
                entry = _parsed(wire.message(kind), self.data, field.content, field.end)
                yield entry.key, entry.value


_MAPS = (EVENT_NAMES, STAT_NAMES)


class Space:
    """A trace in a file: a context in which its planes can be read, and a file that is cut or foreign is a sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "Space":
        try:
            with self._path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as problem:  # ValueError: an empty file
            raise CastmatesError(f"{self._path}: no trace can be read here ({problem}).") from None
        self._data = memoryview(self._map)
        return self

    def __exit__(self, _: object, problem: BaseException | None, *__: object) -> None:
        self._data.release()
        self._map.close()
        if isinstance(problem, NotProtobuf):
            raise CastmatesError(f"{self._path}: this is no whole XSpace: {problem}.") from None

    def planes(self) -> list[Plane]:
        """Its planes."""
        found = [
            Plane(self._data, field.content, field.end)
            for field in fields(self._data, 0, len(self._data))
            if field.number == PLANES and field.content != field.begin
        ]
        if not any(plane.name for plane in found):
            raise CastmatesError(f"{self._path}: this is no XSpace: it has no planes.")
        return found


def _columns(
    events: Any,  # noqa: ANN401
    wanted: Mapping[int, str],
    names: Mapping[int, str],
    of: Collection[int] | None,
) -> Events:
    kinds, offset, duration = (
        np.fromiter((getattr(event, field) for event in events), np.int64, len(events))
        for field in ("metadata_id", "offset_ps", "duration_ps")
    )
    stats: dict[str, dict[int, StatValue]] = {name: {} for name in wanted.values()}
    if wanted:
        chosen = np.arange(len(kinds)) if of is None else np.flatnonzero(np.isin(kinds, list(of)))
        for place in chosen.tolist():
            for one in events[place].stats:
                if (name := wanted.get(one.metadata_id)) is not None:
                    stats[name][place] = _value(one, names)
    return Events(kinds, offset, duration, stats)


def _value(stat: Any, names: Mapping[int, str]) -> StatValue:  # noqa: ANN401
    for field in wire.STAT_VALUES:
        if stat.HasField(field):
            value = getattr(stat, field)
            if field == "ref_value":
                return names.get(value, "")
            return _decoded(value) if isinstance(value, bytes) else value
    return 0


def _parsed(kind: Any, data: memoryview, begin: int, end: int) -> Any:  # noqa: ANN401
    try:
        return kind.FromString(bytes(data[begin:end]))
    except DecodeError:
        raise NotProtobuf("it has bytes that are no field") from None


def _text(data: memoryview, field: Field) -> str:
    return _decoded(bytes(data[field.content : field.end])) if field.end > field.content else ""


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


_FACTOR, _SEED, _SHIFT, _LENGTH = 0xC6A4A7935BD1E995, 0xC70F6907, 47, 8
_ALL = 2**64 - 1
_UNDONE = pow(_FACTOR, -1, 2**64)
LARGEST_TID = 2**22  # PID_MAX_LIMIT of 64-bit kernels
ADDRESSES = 2**47  # of a program on x86-64; on 64-bit ARM they may be longer by a bit
ALIGNED = 16  # bytes, at least, of a control block


def address_of(line: int) -> int | None:
    """The address of a thread's control block from the number of its line; None where it is no hash of one.

    TensorFlow and JAX number a host's line by libstdc++'s hash of `std::thread::id`, MurmurHash64A of the eight bytes
    of pthread_t. Of eight bytes each of its steps can be undone, so the number gives back pthread_t. A number that is a
    thread's number already, as other builds write it, stays what it is.
    """
    found = _undone(line & _ALL)
    return found if 0 < found < 2 * ADDRESSES and found % ALIGNED == 0 else None


def lines_of_host(file: Path) -> list[int]:
    """The numbers of the lines of a trace's host; none where it has no host or cannot be read."""
    try:
        with Space(file) as space:
            return [line.id for plane in space.planes() if plane.name == HOST for line in plane.lines()]
    except CastmatesError:
        return []  # whoever reads all of it will report why


def _undone(number: int) -> int:
    number = _mixed(_mixed(number) * _UNDONE & _ALL) * _UNDONE & _ALL
    key = (number ^ _SEED ^ (_LENGTH * _FACTOR & _ALL)) * _UNDONE & _ALL
    return _mixed(key) * _UNDONE & _ALL


def _mixed(number: int) -> int:
    """Its own inverse, because the shift is longer than half the number."""
    return number ^ number >> _SHIFT
