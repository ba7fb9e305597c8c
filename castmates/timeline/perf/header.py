"""The head of a perf.data file: which events it holds, how their samples are laid out, and on what machine."""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from castmates.errors import CastmatesError
from castmates.files import reason


class Field(NamedTuple):
    """Where a field lies within a tracepoint's raw record, in bytes."""

    offset: int
    size: int
    signed: bool


# "name: sched_switch", its number, and a line for each field
_EVENT = re.compile(rb"name: (\w+)\nID: (\d+)\nformat:\n((?:\t?field:[^\n]*\n|\n)+)")
_FIELD = re.compile(rb"\tfield:[^;]*?(\w+)(?:\[\w*\])?;\toffset:(\d+);\tsize:(\d+);(?:\tsigned:(\d+);)?")


class Layout(NamedTuple):
    """A layout that is known without its description."""

    fields: Mapping[str, Field]
    size: int  # of the raw record, by which it is recognised; 0 where that varies


def _numbers(**offsets: int) -> dict[str, Field]:
    return {name: Field(offset, 4, True) for name, offset in offsets.items()}


_FLAGS = {"common_flags": Field(2, 1, False)}
_WOKEN = Layout(_FLAGS | _numbers(pid=24, prio=28, target_cpu=32), 36)  # since Linux 5.14
_NAMES = {"prev_comm": Field(8, 16, False), "next_comm": Field(40, 16, False)}
# perf copies descriptions only for who may read all of tracefs. These layouts are those of all 64-bit machines; a
# record of another size is refused.
KNOWN: Mapping[str, Layout] = {
    "raw_syscalls:sys_enter": Layout({"id": Field(8, 8, True)}, 68),
    "raw_syscalls:sys_exit": Layout({"id": Field(8, 8, True), "ret": Field(16, 8, True)}, 28),
    "sched:sched_switch": Layout(
        _NAMES | _numbers(prev_pid=24, prev_prio=28, next_pid=56, next_prio=60) | {"prev_state": Field(32, 8, True)}, 68
    ),
    "sched:sched_waking": _WOKEN,
    "sched:sched_wakeup": _WOKEN,
    "sched:sched_wakeup_new": _WOKEN,
    "irq:irq_handler_entry": Layout(_numbers(irq=8, name=12), 0),
    "irq:irq_handler_exit": Layout(_numbers(irq=8, ret=12), 20),
    "irq:softirq_entry": Layout(_numbers(vec=8), 12),
    "irq:softirq_exit": Layout(_numbers(vec=8), 12),
}
# The systems of tracepoints, which a description leaves out; a file may lack the list of its events' names.
_SYSTEMS = {"sched_": "sched", "sys_": "raw_syscalls", "irq_": "irq", "softirq_": "irq", "page_fault_": "exceptions"}


def full_name(name: str) -> str:
    """The name of a tracepoint with its system, as far as it is one of those that are read here."""
    system = next((system for begin, system in _SYSTEMS.items() if name.startswith(begin)), "")
    return f"{system}:{name}" if system else name


def fields_by_event(section: bytes) -> dict[int, tuple[str, dict[str, Field]]]:
    """The name and the fields of each tracepoint that is described, by the kernel's number."""
    found = {}
    for name, number, lines in _EVENT.findall(section):
        fields = {
            field.decode(): Field(int(offset), int(size), signed == b"1")
            for field, offset, size, signed in _FIELD.findall(lines)
        }
        found[int(number)] = (name.decode(), fields)
    return found


MAGIC, OTHER_ENDIAN = b"PERFILE2", b"2ELIFREP"
HEAD = struct.Struct("<8s" + "Q" * 8)  # magic, sizes of head and attribute, sections: attributes, data, event types
SECTION = struct.Struct("<QQ")
ATTR_LEAST = 64  # as far as config1, the first version of the kernel's perf_event_attr
LARGEST = 1 << 26  # bytes of a section that is read whole: the largest that is known is the list of tracepoints
TRACING_DATA, HOST, KERNEL, VERSION, ARCH, CPU, EVENTS, COMPRESSED = 1, 3, 4, 5, 6, 8, 12, 27  # sections
TIMED = {"tid": 1 << 1, "time": 1 << 2, "id": 1 << 6, "stream": 1 << 9, "cpu": 1 << 7, "identifier": 1 << 16}
IP, ADDR, READ, CALLCHAIN, PERIOD, RAW = 1 << 0, 1 << 3, 1 << 4, 1 << 5, 1 << 8, 1 << 10
FREQUENCY, SAMPLE_ID_ALL, USE_CLOCKID = 1 << 10, 1 << 18, 1 << 25
MONOTONIC = 1
SOFTWARE, TRACEPOINT = 1, 2
PAGE_FAULTS, DUMMY = 2, 9
_OPTIONS = re.compile(r"(?:cpu\w*/)?([^/]+?)[/,]period=\d+/([ukh]*)\w*")  # with which a name was recorded
_NO_COUNTS = ((SOFTWARE, PAGE_FAULTS), (SOFTWARE, DUMMY))


@dataclass(frozen=True)
class Event:
    """One event that was recorded, in the kernel's words and ours."""

    name: str  # sched:sched_switch, page-faults
    kind: int
    config: int
    sample_type: int
    read_format: int
    flags: int
    clock: int | None  # of the kernel's clocks; None for perf's own
    ids: tuple[int, ...]
    fields: Mapping[str, Field]  # of a tracepoint
    raw_size: int  # of its raw record, where only that shows whether the fields lie as assumed; 0 for any
    period: int = 0  # one in how many is sampled; 0 where that varies

    @property
    def is_count(self) -> bool:
        """Whether its samples stand for a known number of it each, and are no moments of their own."""
        return self.period > 0 and self.kind != TRACEPOINT and (self.kind, self.config) not in _NO_COUNTS

    def has(self, name: str) -> bool:
        """Whether its records bear this; see TIMED."""
        return bool(self.sample_type & TIMED[name])


@dataclass(frozen=True)
class Header:
    """What stands before and behind the records."""

    file: Path
    events: tuple[Event, ...]
    begin: int  # of the records, in bytes
    size: int
    about: Mapping[str, str]  # host, kernel, perf, arch, cpu


def read_header(file: Path) -> Header:
    """Read the head of a file, or show in a sentence why it cannot be one of perf's."""
    try:
        with file.open("rb") as stream:
            return _read(file, stream, file.stat().st_size)
    except OSError as problem:
        raise CastmatesError(f"{file}: the recording of perf cannot be read ({reason(problem)})") from None
    except (struct.error, UnicodeDecodeError, IndexError):
        raise damaged(file, "its head does not fit together") from None


def damaged(file: Path, why: str) -> CastmatesError:
    """The one sentence for a file that is broken."""
    return CastmatesError(f"{file}: this recording of perf is cut or damaged ({why}); record it again")


def compressed(file: Path) -> CastmatesError:
    """The one sentence for a file that this reader does not unpack."""
    return CastmatesError(f"{file}: the records of this recording of perf are compressed; record without -z")


def _read(file: Path, stream: BinaryIO, length: int) -> Header:
    head = stream.read(HEAD.size + 32)
    magic = head[:8]
    if magic == OTHER_ENDIAN:
        raise CastmatesError(
            f"{file}: recorded on a machine of the other byte order; read it on a machine like that one"
        )
    if magic != MAGIC:
        raise CastmatesError(
            f"{file}: this is not a recording of perf (perf.data): it does not begin with {MAGIC.decode()}"
        )
    if len(head) >= 16 and struct.unpack_from("<Q", head, 8)[0] == 16:
        raise CastmatesError(
            f"{file}: perf has written this through a pipe; record into a file instead: perf record -o FILE"
        )
    if len(head) < HEAD.size + 32:
        raise damaged(file, "it ends within its head")
    _, _, attr_size, attrs_at, attrs_size, begin, size, _, _ = HEAD.unpack_from(head)
    if size == 0:
        raise damaged(file, "perf did not end it: it was killed, or the disk was full")
    if begin < HEAD.size or begin + size > length:
        raise damaged(file, f"{begin + size - length} bytes are missing")
    flags = int.from_bytes(head[HEAD.size : HEAD.size + 32], "little")
    sections = _sections(file, stream, flags, begin + size, length)
    if COMPRESSED in sections:
        raise compressed(file)
    attrs = _attrs(file, stream, attr_size, _checked(file, (attrs_at, attrs_size), length))
    about = {name: _text(sections[bit]) for name, bit in _ABOUT.items() if bit in sections}
    return Header(file, _events(attrs, sections), begin, size, about)


_ABOUT = {"host": HOST, "kernel": KERNEL, "perf": VERSION, "arch": ARCH, "cpu": CPU}


def _sections(file: Path, stream: BinaryIO, flags: int, table_at: int, length: int) -> dict[int, bytes]:
    """The sections behind the records that are needed here, by their numbers."""
    present = [bit for bit in range(256) if flags >> bit & 1]
    wanted = {TRACING_DATA, EVENTS, COMPRESSED, *_ABOUT.values()}
    stream.seek(table_at)
    table = stream.read(SECTION.size * len(present))
    if len(table) < SECTION.size * len(present):
        raise damaged(file, "it ends before its last sections")
    found = {}
    for place, bit in enumerate(present):
        if bit in wanted:
            at, size = _checked(file, SECTION.unpack_from(table, SECTION.size * place), length)
            stream.seek(at)
            found[bit] = stream.read(size)
    return found


def _checked(file: Path, section: tuple[int, int], length: int) -> tuple[int, int]:
    at, size = section
    if size > LARGEST or at + size > length:
        raise damaged(file, "a section lies behind its end")
    return at, size


def _attrs(
    file: Path, stream: BinaryIO, attr_size: int, section: tuple[int, int]
) -> list[tuple[bytes, tuple[int, ...]]]:
    """The kernel's description of each event, with its ids; one file entry is the description and a section of ids."""
    at, size = section
    if attr_size < ATTR_LEAST + SECTION.size or size % attr_size or not size:
        raise damaged(file, "its events are not described")
    stream.seek(at)
    text = stream.read(size)
    length = file.stat().st_size
    found = []
    for place in range(0, size, attr_size):
        attr = text[place : place + attr_size - SECTION.size]
        ids_at, ids_size = _checked(file, SECTION.unpack_from(text, place + attr_size - SECTION.size), length)
        stream.seek(ids_at)
        found.append((attr, struct.unpack(f"<{ids_size // 8}Q", stream.read(ids_size // 8 * 8))))
    return found


def _events(attrs: list[tuple[bytes, tuple[int, ...]]], sections: Mapping[int, bytes]) -> tuple[Event, ...]:
    names, formats = _names(sections.get(EVENTS, b"")), fields_by_event(sections.get(TRACING_DATA, b""))
    events = []
    for place, (attr, ids) in enumerate(attrs):
        kind, _, config, period, sample_type, read_format, flags = struct.unpack_from("<IIQQQQQ", attr)
        known = formats.get(config) if kind == TRACEPOINT else None
        name = names[place] if place < len(names) else (full_name(known[0]) if known else "")
        if (kind, config) == (SOFTWARE, PAGE_FAULTS):
            name = "page-faults"  # its name in the file has the options with which it was recorded
        elif kind == TRACEPOINT:
            name = ":".join(name.split(":")[:2])
        clock = struct.unpack_from("<i", attr, 92)[0] if flags & USE_CLOCKID and len(attr) >= 96 else None
        layout = Layout(known[1], 0) if known else KNOWN.get(name, Layout({}, 0))
        if found := _OPTIONS.fullmatch(name):
            name = f"{found[1]}:{found[2]}" if found[2] else found[1]  # cycles:u are others than cycles
        period = 0 if flags & FREQUENCY else period
        events.append(Event(name, kind, config, sample_type, read_format, flags, clock, ids, *layout, period))
    return tuple(events)


def _names(text: bytes) -> list[str]:
    """The events' names: of each its description, the number of ids, its name, and the ids."""
    if not text:
        return []
    count, size = struct.unpack_from("<II", text)
    at, names = 8, []
    for _ in range(min(count, len(text))):
        ids, length = struct.unpack_from("<II", text, at + size)
        at += size + 8
        names.append(text[at : at + length].split(b"\0")[0].decode(errors="replace"))
        at += length + 8 * ids
    return names


def _text(section: bytes) -> str:
    """A section that is one text: its length, and the text with zeros behind it."""
    return section[4:].split(b"\0")[0].decode(errors="replace")
