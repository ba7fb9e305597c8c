"""Streams of the Common Trace Format 1.8, and the metadata that say what their bytes mean, in TSDL."""

import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.traces.nesting import Ints

Array = npt.NDArray[Any]
MAGIC = 0xC1FC1FC1
PACKET = 1 << 20  # bytes of events in a packet, about
AT_ONCE = 1 << 17  # records
HEADER = np.dtype([("id", "<u2"), ("timestamp", "<u8")])  # of an event
CONTEXT = np.dtype([("magic", "<u4"), ("uuid", "V16"), ("stream_id", "<u4")])
PACKET_CONTEXT = (
    ("timestamp_begin", "<u8"),
    ("timestamp_end", "<u8"),
    ("content_size", "<u8"),
    ("packet_size", "<u8"),
    ("events_discarded", "<u8"),
    ("cpu_id", "<u4"),
)


Lost = tuple[Array, Array]  # when events were lost, in order, and how many
NONE: Lost = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Labels:
    """Words that an event's field has by their numbers: an enumeration in the metadata."""

    name: str
    words: Sequence[str]


@dataclass(frozen=True)
class Shape:
    """A kind of event: its name, and its fields with their types: of numpy, or an enumeration."""

    name: str
    fields: Sequence[tuple[str, str | Labels]] = ()

    def dtype(self, context: Sequence[tuple[str, str]]) -> np.dtype[Any]:
        """The bytes of a record."""
        own = [(f"f_{name}", kind if isinstance(kind, str) else "<u4") for name, kind in self.fields]
        return np.dtype([*HEADER.descr, *((f"c_{name}", kind) for name, kind in context), *own])


@dataclass
class Records:
    """Events of one shape on one stream."""

    shape: Shape
    t: Ints
    rank: Ints  # the order of what happens at the same moment …
    within: Ints  # … and of what has one rank
    columns: Mapping[str, Any] = field(default_factory=dict)  # fields, and those of the context with c_ before the name


class Trace:
    """A trace in its folder: shapes are numbered in the order in which they are met."""

    def __init__(self, folder: Path, context: Sequence[tuple[str, str]]) -> None:
        self.folder, self.context = folder, context
        self.uuid = uuid.uuid4()
        self.shapes: dict[str, tuple[int, Shape]] = {}
        folder.mkdir(parents=True)

    def stream(self, name: str, cpu: int, parts: Sequence[Records], lost: Lost = NONE) -> None:
        """Write a stream."""
        parts = [part for part in parts if len(part.t)]
        if not parts:
            return
        numbers = [self.shapes.setdefault(part.shape.name, (len(self.shapes), part.shape))[0] for part in parts]
        sizes = [part.shape.dtype(self.context).itemsize for part in parts]
        t, rank, within = (np.concatenate([getattr(part, each) for part in parts]) for each in ("t", "rank", "within"))
        order = np.lexsort((within, rank, t))
        size = np.repeat(sizes, [len(part.t) for part in parts])
        place = np.empty(len(t), np.int64)
        place[order] = np.cumsum(size[order]) - size[order]
        content = np.empty(int(size.sum()), np.uint8)
        first = 0
        for part, number in zip(parts, numbers, strict=True):
            _scatter(content, place[first : first + len(part.t)], _records(part, number, self.context))
            first += len(part.t)
        self._packets(self.folder / name, cpu, t[order], place[order], content, lost)

    def _packets(self, file: Path, cpu: int, t: Ints, place: Ints, content: npt.NDArray[np.uint8], lost: Lost) -> None:
        """Cut a stream into packets, each with the times of its events, and how many were lost until its end."""
        number = place // PACKET
        starts = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
        stops = np.r_[starts[1:], len(t)]
        about = np.dtype(list(PACKET_CONTEXT))
        if len(lost[0]):  # readers count from one packet to the next: before the first one there was nothing to lose
            starts, stops = np.r_[0, starts], np.r_[0, stops]
        with file.open("wb") as written:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                until = int(place[stop]) if stop < len(t) else len(content)
                some = content[int(place[start]) : until]
                bits = 8 * (CONTEXT.itemsize + about.itemsize + len(some))
                written.write(struct.pack("<I16sI", MAGIC, self.uuid.bytes, 0))
                last = max(stop - 1, start)
                before = (lost[0] <= t[last] if stop < len(t) else np.ones(len(lost[0]), bool)) & (stop > 0)
                gone = int(lost[1][before].sum())
                written.write(np.array((t[start], t[last], bits, bits, gone, cpu), about).tobytes())
                written.write(some.tobytes())


def _records(part: Records, number: int, context: Sequence[tuple[str, str]]) -> Array:
    kind = part.shape.dtype(context)
    found = np.zeros(len(part.t), kind)
    found["id"], found["timestamp"] = number, part.t
    for name in kind.names or ():
        if name[:2] in ("c_", "f_"):
            given = part.columns.get(name if name[:2] == "c_" else name[2:])
            if given is not None:
                found[name] = given
    return found


def _scatter(content: npt.NDArray[np.uint8], place: Ints, records: Array) -> None:
    """Put each record where it belongs."""
    size = records.dtype.itemsize
    rows = records.view(np.uint8).reshape(len(records), size)
    within = np.arange(size)
    for first in range(0, len(records), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        content[place[some, None] + within] = rows[some]


_START = """/* CTF 1.8 */

typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 32; align = 8; signed = true; }} := int32_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;
typealias floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} := double;

trace {{
	major = 1;
	minor = 8;
	uuid = "{uuid}";
	byte_order = le;
	packet.header := struct {{
		uint32_t magic;
		uint8_t uuid[16];
		uint32_t stream_id;
	}};
}};

env {{
{env}
}};

clock {{
	name = "{clock}";
	description = "{clock}";
	freq = 1000000000;
	offset_s = {offset_s};
	offset = {offset};
}};

typealias integer {{ size = 64; align = 8; signed = false; map = clock.{clock}.value; }} := time_t;
"""
_STREAM = """
stream {{
	id = 0;
	event.header := struct {{
		uint16_t id;
		time_t timestamp;
	}};
	packet.context := struct {{
{packet}
	}};
	event.context := struct {{
{context}
	}};
}};
"""
_EVENT = """
event {{
	name = "{name}";
	id = {number};
	stream_id = 0;
	fields := struct {{
{fields}
	}};
}};
"""
SECOND = 10**9


def metadata(trace: Trace, env: Mapping[str, str | int], clock: str, offset_ns: int) -> str:
    """The metadata of a trace whose streams are written."""
    offset_s, offset = divmod(offset_ns, SECOND)
    words = "\n".join(f"\t{key} = {_value(value)};" for key, value in env.items())
    text = _START.format(uuid=trace.uuid, env=words, clock=clock, offset_s=offset_s, offset=offset)
    packet = [(name, "time" if name.startswith("timestamp") else kind) for name, kind in PACKET_CONTEXT]
    text += _STREAM.format(packet=_fields(packet, ""), context=_fields(trace.context, "_"))
    for number, shape in sorted(trace.shapes.values(), key=lambda each: each[0]):
        text += _EVENT.format(name=shape.name, number=number, fields=_fields(shape.fields, "_"))
    return text


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else _quoted(value)


def _fields(fields: Sequence[tuple[str, str | Labels]], before: str) -> str:
    """Declarations of fields; LTTng puts an underscore before names, so that none is a word of TSDL."""
    return "\n".join(f"\t\t{_type(kind, before + name)};" for name, kind in fields)


def _type(kind: str | Labels, name: str) -> str:
    if isinstance(kind, Labels):
        labels = ", ".join(f"{_quoted(word)} = {number}" for number, word in enumerate(kind.words))
        return f"enum : uint32_t {{ {labels} }} {name}"
    if kind == "time":
        return f"time_t {name}"
    of = np.dtype(kind)
    if of.kind == "S":
        return f"integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} {name}[{of.itemsize}]"
    return f"{_number(of)} {name}"


def _number(of: np.dtype[Any]) -> str:
    if of.kind == "f":
        return "double"
    return f"{'u' if of.kind == 'u' else ''}int{8 * of.itemsize}_t"


def _quoted(word: str) -> str:
    escaped = (
        word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return '"' + "".join(letter if letter.isprintable() else "?" for letter in escaped) + '"'
