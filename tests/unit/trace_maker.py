"""XSpaces made for tests, by the classes that read them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from castmates.traces import wire

Event = tuple[int, int, str]  # begin and end in picoseconds, and the name
Instruction = tuple[str, str, str]  # of a compiled program: name, opcode, and JAX's name
PROGRAM_ID = 9  # the number of that statistic


def trace_bytes(threads: Mapping[str, Iterable[Event]], began_ns: int = 0, line_ns: int = 0) -> bytes:
    """A trace of one host with these threads; written by hand, so that fields come as TensorFlow writes them."""
    names: dict[str, int] = {}
    lines = []
    for number, (thread, events) in enumerate(threads.items()):
        line = wire.message("Line")(id=number, name=thread.encode(), timestamp_ns=line_ns)
        for begin, end, name in events:
            key = names.setdefault(name, len(names) + 1)
            line.events.add(metadata_id=key, offset_ps=begin, duration_ps=end - begin)
        lines.append(line.SerializeToString())
    host = plane(b"/host:CPU", lines, event_names(names))
    return host + (_task(began_ns) if began_ns else b"")


def event_names(names: Iterable[str]) -> list[bytes]:
    """The names of events, numbered from 1."""
    return [
        wire.message("EventEntry")(key=key, value={"id": key, "name": name.encode()}).SerializeToString()
        for key, name in enumerate(names, start=1)
    ]


def write_trace(path: Path, threads: Mapping[str, Iterable[Event]], began_ns: int = 0, line_ns: int = 0) -> Path:
    """The same in a file."""
    path.write_bytes(trace_bytes(threads, began_ns, line_ns))
    return path


def _task(began_ns: int) -> bytes:
    name = wire.message("StatEntry")(key=1, value={"id": 1, "name": b"profile_start_time"}).SerializeToString()
    stat = wire.message("Stat")(metadata_id=1, uint64_value=began_ns).SerializeToString()
    return field(1, field(2, b"Task Environment") + field(5, name) + field(6, stat))


def plane(name: bytes, lines: Iterable[bytes], entries: Iterable[bytes], more: Iterable[bytes] = ()) -> bytes:
    """A plane as a field of a trace; `more` are fields that are there already."""
    parts = [field(2, name), *(field(3, line) for line in lines), *(field(4, entry) for entry in entries), *more]
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


def jax_bytes(
    threads: Mapping[str, Iterable[Event]], programs: Mapping[str, Iterable[Instruction]], runs: Mapping[str, int]
) -> bytes:
    """A trace of JAX: a host, and compiled programs by `module(number)`; `runs` has the program of each thread."""
    names: dict[str, int] = {}
    lines = []
    for thread, events in threads.items():
        line = wire.message("Line")(name=thread.encode(), timestamp_ns=0)
        for begin, end, name in events:
            key = names.setdefault(name, len(names) + 1)
            event = line.events.add(metadata_id=key, offset_ps=begin, duration_ps=end - begin)
            event.stats.add(metadata_id=PROGRAM_ID, int64_value=runs.get(thread, 1))
        lines.append(line.SerializeToString())
    modules = [program.partition("(")[0] for program in programs]
    host_names = [*_stat_names({PROGRAM_ID: "program_id"}), *_stat_names(dict(enumerate(modules, start=20)))]
    host = plane(b"/host:CPU", lines, event_names(names), host_names)
    stats = field(6, wire.message("Stat")(metadata_id=2, str_value=b"0.10.2").SerializeToString())
    entries = [_program(number, name, found) for number, (name, found) in enumerate(programs.items(), start=1)]
    return host + plane(b"/host:metadata", [], entries, [*_stat_names({1: "Hlo Proto", 2: "jax_version"}), stats])


def _program(number: int, name: str, instructions: Iterable[Instruction]) -> bytes:
    program = wire.message("Program")()
    computation = program.module.computations.add(id=1)
    for instruction, opcode, of_jax in instructions:
        computation.instructions.add(
            name=instruction.encode(), opcode=opcode.encode()
        ).metadata.op_name = of_jax.encode()
    stat = {"metadata_id": 1, "bytes_value": program.SerializeToString()}
    value = {"id": number, "name": name.encode(), "stats": [stat]}
    return wire.message("EventEntry")(key=number, value=value).SerializeToString()


def _stat_names(names: Mapping[int, str]) -> list[bytes]:
    entry = wire.message("StatEntry")
    return [
        field(5, entry(key=key, value={"id": key, "name": name.encode()}).SerializeToString())
        for key, name in names.items()
    ]
