"""XSpaces with several planes and with statistics, made for tests by the classes that read them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from castmates.traces import wire
from tests.unit import trace_maker


@dataclass(frozen=True)
class Event:
    """An event of a line; `of_name` are statistics of all events of its name."""

    begin: int  # picoseconds
    end: int
    name: str
    stats: Mapping[str, Any] = field(default_factory=dict)
    display_name: str = ""
    of_name: Mapping[str, Any] = field(default_factory=dict)


Lines = Mapping[str, Iterable[Event]]


def space(planes: Mapping[str, Lines], display_names: Mapping[str, str] | None = None) -> bytes:
    """A trace with these planes, lines and events; `display_names` are those of lines."""
    return b"".join(_Plane(name).written(lines, display_names or {}) for name, lines in planes.items())


class _Plane:
    def __init__(self, name: str) -> None:
        self._name = name
        self._stats: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._entries: dict[str, bytes] = {}

    def written(self, lines: Lines, display_names: Mapping[str, str]) -> bytes:
        parts = [
            self._line(number, name, events, display_names.get(name, ""))
            for number, (name, events) in enumerate(lines.items())
        ]
        stats = [
            wire.message("StatEntry")(key=key, value={"id": key, "name": name.encode()}).SerializeToString()
            for name, key in self._stats.items()
        ]
        content = [trace_maker.field(2, self._name.encode()), *(trace_maker.field(3, part) for part in parts)]
        content += [trace_maker.field(4, entry) for entry in self._entries.values()]
        content += [trace_maker.field(5, stat) for stat in stats]
        return trace_maker.field(1, b"".join(content))

    def _line(self, number: int, name: str, events: Iterable[Event], display_name: str) -> bytes:
        line = wire.message("Line")(id=number, name=name.encode(), display_name=display_name.encode())
        for event in events:
            key = self._names.setdefault(event.name, len(self._names) + 1)
            if event.name not in self._entries:
                self._entries[event.name] = self._entry(key, event)
            line.events.add(
                metadata_id=key,
                offset_ps=event.begin,
                duration_ps=event.end - event.begin,
                stats=[self._stat(*stat) for stat in event.stats.items()],
            )
        return line.SerializeToString()

    def _entry(self, key: int, event: Event) -> bytes:
        value = {
            "id": key,
            "name": event.name.encode(),
            "display_name": event.display_name.encode(),
            "stats": [self._stat(*stat) for stat in event.of_name.items()],
        }
        return wire.message("EventEntry")(key=key, value=value).SerializeToString()

    def _stat(self, name: str, value: object) -> Any:
        key = self._stats.setdefault(name, len(self._stats) + 1)
        if isinstance(value, str):  # as TensorFlow writes texts: a reference to a name
            return wire.message("Stat")(metadata_id=key, ref_value=self._stats.setdefault(value, len(self._stats) + 1))
        kind = "double_value" if isinstance(value, float) else "int64_value"
        return wire.message("Stat")(metadata_id=key, **{kind: value})
