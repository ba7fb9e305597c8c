"""The calls of operations in the profiled steps of a JAX job, from the XSpace that it wrote.

On a CPU, XLA runs a compiled program instruction by instruction: each is an event of its name. One that other threads
finish ends where its event `end: NAME` lies; it stands on a line apart, because its thread does other things meanwhile.
XLA names instructions; the program says which line of a JAX function each came from, by the scopes and transformations
around it: `jit(train)/transpose(jvp(layer0))/attention/dot_general` is the gradient of a product.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from castmates.analysis.explanations.layers import (
    BACKWARD,
    FORWARD,
    NO_THREAD,
    OPTIMIZER,
    RUNTIME,
    LayerPlace,
    jax_place,
    layer_place,
)
from castmates.analysis.operations.instructions import Work
from castmates.traces import wire
from castmates.traces.hlo_work import Program
from castmates.traces.operations import (
    BETWEEN,
    FEEDS,
    OUTSIDE,
    WAITS,
    WORKS,
    Found,
    Ints,
    Lookup,
    Operation,
    Reading,
    Trace,
    assembled,
    begin_of,
)
from castmates.traces.wire import NotProtobuf
from castmates.traces.xspace import Events, Line, Plane
from castmates.workloads.jobs.tracing import INPUT, STEP
from castmates.workloads.tfmodels.xspace import FETCH, HOST

METADATA = "/host:metadata"  # the plane that has them
PROGRAM = "Hlo Proto"  # the statistic that has one
NAMED = re.compile(r"(.*)\((\d+)\)")  # its module's name and number
CONTAINERS = frozenset({"while", "call", "conditional"})  # only call others
NOT_RUN = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
PRIMITIVES = {"dot": "dot_general", "convolution": "conv_general_dilated"}  # HLO's opcodes, and JAX's names
TRANSPOSED = "transpose"  # what JAX calls the transformation that makes gradients …
GRADIENT = "transpose(jvp)"  # … and the scope that they get here
_WRAPPED = re.compile(r"(\w+)\((.*)\)")
_NUMBER = re.compile(r"\.\d+$")
_LOOP = re.compile(r"while/(body|cond)|.*/(while|closed_call|checkpoint|rematted_computation|branch_\d+_fun)")  # by JAX
_SCOPE = re.compile(r"[A-Za-z_][\w.-]*")
Known = Mapping[str, Operation | None]  # by instruction; None for what only calls others


@dataclass(frozen=True)
class Path:
    """What a JAX operation's name shows."""

    scopes: tuple[str, ...]
    functions: tuple[str, ...]  # compiled apart by JAX itself, such as log_softmax
    primitive: str
    backward: bool

    @property
    def direction(self) -> str:
        """Of what it does in a step."""
        if OPTIMIZER in self.scopes:
            return OPTIMIZER
        return BACKWARD if self.backward else FORWARD


def programs_in(plane: Plane, ran: frozenset[str]) -> dict[int, Known]:
    """By number: the instructions of the programs that ran, or of all where it is not known which ones did."""
    every = [(found[1], int(found[2]), content) for found, content in _contents(plane)]
    chosen = [each for each in every if each[0] in ran] or every
    return {number: _instructions(content) for _, number, content in chosen}


def _contents(plane: Plane) -> Iterator[tuple[re.Match[str], bytes]]:
    for name, content in plane.bytes_of_events(PROGRAM):
        if found := NAMED.fullmatch(name):
            yield found, content


def _instructions(content: bytes) -> Known:
    try:
        module = wire.message("Program").FromString(content).module
    except DecodeError:
        raise NotProtobuf("it has a program that is none") from None
    program = Program(module)
    inside = {one.id: {each.opcode.decode() for each in one.instructions} for one in module.computations}
    fused = {called for one in module.computations for each in one.instructions for called in _fused(each)}
    return {
        each.name.decode(): _operation(each, inside, direction, program.known_of(each, one.id))
        for one in module.computations
        if one.id not in fused
        for each, direction in zip(one.instructions, _directions(one.instructions), strict=True)
        if each.opcode.decode() not in NOT_RUN
    }


def _directions(instructions: Sequence[Any]) -> list[str]:
    """Of each instruction; operands come before those who use them.

    XLA's passes leave some without a name. Computed from gradients, they are backward; others belong to what uses them.
    """
    known = {each.id: _path(each).direction for each in instructions if each.metadata.op_name}
    of_operands, of_users = defaultdict[int, set[str]](set), defaultdict[int, set[str]](set)
    for each in instructions:
        for one in each.operands:
            of_operands[each.id] |= {known[one]} if one in known else of_operands[one]
        if each.id not in known and BACKWARD in of_operands[each.id]:
            known[each.id] = BACKWARD
    for each in reversed(instructions):
        for one in each.operands:
            of_users[one] |= {known[each.id]} if each.id in known else of_users[each.id]
    return [known.get(each.id) or _first(of_users[each.id]) for each in instructions]


def _first(users: Set[str]) -> str:
    return next((each for each in (FORWARD, BACKWARD, OPTIMIZER) if each in users), FORWARD)


def _fused(instruction: Any) -> Sequence[int]:  # noqa: ANN401 (a message)
    return () if instruction.opcode.decode() in CONTAINERS else instruction.called


def _path(instruction: Any) -> Path:  # noqa: ANN401
    return path_of(instruction.metadata.op_name.decode("utf-8", "replace"))


def _operation(
    instruction: Any,  # noqa: ANN401
    inside: Mapping[int, set[str]],
    direction: str,
    known: tuple[Work, str],
) -> Operation | None:
    opcode, name = instruction.opcode.decode(), instruction.name.decode()
    if opcode in CONTAINERS:
        return None
    opcodes = {opcode}.union(*(inside.get(called, ()) for called in _fused(instruction)))
    path = _path(instruction)
    heavy = next((primitive for one, primitive in PRIMITIVES.items() if one in opcodes), "")
    primitive = heavy or path.primitive or (_NUMBER.sub("", name) if opcode == "fusion" else opcode)
    place = jax_place(path.scopes, path.functions, primitive, opcodes, direction)
    parts = [GRADIENT] * path.backward + [*path.scopes, f"{primitive} ({name})"]
    return Operation("/".join(parts), primitive, place, WORKS, *known)


def path_of(name: str) -> Path:
    """The scopes, functions and primitive in a JAX operation's name."""
    scopes, functions, backward = [], [], False
    *around, primitive = _split(name)
    for number, part in enumerate(around):
        while found := _WRAPPED.fullmatch(part):
            backward |= found[1] == TRANSPOSED
            part = found[2]
            if found[1] in ("jit", "pjit"):
                functions += [part] * (number > 0)  # the first one is the whole program
                part = ""
        if _SCOPE.fullmatch(part) and not _LOOP.fullmatch(f"{around[number - 1] if number else ''}/{part}"):
            scopes.append(part)
    primitive = primitive if around and _SCOPE.fullmatch(primitive) else ""  # what stands alone is an argument
    return Path(tuple(scopes), tuple(functions), primitive, backward)


def _split(name: str) -> list[str]:
    """Parts between slashes, but for those within parentheses."""
    parts, depth = [""], 0
    for letter in name:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def merged(programs: Mapping[int, Known]) -> tuple[dict[str, Operation | None], frozenset[str]]:
    """Instructions of all programs by name alone, and the names that mean different things in different programs."""
    meanings: dict[str, list[Operation | None]] = defaultdict(list)
    for known in programs.values():
        for name, operation in known.items():
            if operation not in meanings[name]:
                meanings[name].append(operation)
    several = frozenset(name for name, found in meanings.items() if len(found) > 1)
    return {name: found[0] for name, found in meanings.items()}, several


END = "end: "
VERSION = "jax_version"  # a statistic of the plane of programs that JAX alone writes
NUMBER = "program_id"  # the statistic that names a program
PUT = "DevicePut"  # a batch becomes an array of JAX
# What JAX and XLA do around a program's instructions: it counts where none of them runs.
AROUND = re.compile(r"PjitFunction\(.*\)|ThunkExecutor::\w+|\w*PjRt\w*::\w+|ParseArguments|np\.asarray\(jax\.Array\)")


@dataclass
class _Thread:
    """What happened on a thread: the calls, and the instructions whose ends are still to be found."""

    name: str
    operation: Ints
    begin: Ints
    end: Ints
    instruction: Ints  # its name's number; -1 for what is no instruction
    tid: int = field(default=0, kw_only=True)  # the system's number; 0 for a line that is no thread


class ThunkReading:
    """A host's calls and steps, thread by thread."""

    def __init__(self, host: Plane, metadata: Plane, began_ns: int) -> None:
        self._names = {number: name.name for number, name in host.event_names.items()}
        self._programs = programs_in(metadata, frozenset(host.stat_names.values()))
        self._known, several = merged(self._programs)
        self._asked = (NUMBER,) if several.intersection(self._names.values()) else ()
        self._operations: dict[Operation, int] = {}
        self._fill_lookups()
        lines = list(host.lines())
        self._first_ns = min((line.timestamp_ns for line in lines), default=0)
        self._origin_ns = self._first_ns + (began_ns if self._first_ns < began_ns else 0)
        self._marks: list[tuple[int, int]] = []
        self._ends: list[tuple[Ints, Ints]] = []  # of instructions: number of the name, moment
        self._threads = [self._read(line) for line in lines]
        steps = np.array(sorted(self._marks), np.int64).reshape(-1, 2)
        self.step_begin, self.step_end = steps[:, 0], steps[:, 1]

    def trace(self) -> Trace:
        """All threads together."""
        _set_ends(self._threads, self._ends)
        own = [_part(each, each.name, np.flatnonzero(each.instruction == OUTSIDE), each.tid) for each in self._threads]
        threads = own + _lanes(self._threads)
        self._threads.clear()
        parts = [(each.operation, each.begin, each.end) for each in threads]
        names, steps = [each.name for each in threads], (self.step_begin, self.step_end)
        tids = [each.tid for each in threads]
        return assembled(Found(self._origin_ns, self._first_ns, *steps, list(self._operations), names, parts, tids))

    def _fill_lookups(self) -> None:
        numbers = {name: number for number, name in self._names.items()}
        self._marked = Lookup({number: 0 for number, name in self._names.items() if name == STEP})
        self._of_event = Lookup(
            {number: self._place(found) for number, name in self._names.items() if (found := self._operation(name))}
        )
        self._instruction = Lookup({number: number for number, name in self._names.items() if name in self._known})
        self._ended = Lookup(
            {
                number: numbers[name.removeprefix(END)]
                for number, name in self._names.items()
                if name.startswith(END) and name.removeprefix(END) in numbers
            }
        )

    def _operation(self, event: str) -> Operation | None:
        """What an event is a call of; None where it is none, or only calls others."""
        if event in self._known:
            return self._known[event]
        if event == INPUT:
            return Operation("input", "input", layer_place(FETCH, FETCH, is_input=True), WAITS)
        if event == PUT:
            return Operation(PUT, PUT, LayerPlace(PUT, "input", "input"), FEEDS)
        return Operation("", RUNTIME, layer_place("", RUNTIME), BETWEEN) if AROUND.fullmatch(event) else None

    def _place(self, operation: Operation) -> int:
        return self._operations.setdefault(operation, len(self._operations))

    def _read(self, line: Line) -> _Thread:
        """A thread's calls; keep the steps that it marked, and the ends of instructions."""
        start, kept = 1000 * (line.timestamp_ns - self._first_ns), []
        for events in line.events(self._asked):
            begin, end = start + events.offset_ps, start + events.offset_ps + events.duration_ps
            at = self._marked.find(events.kinds) != OUTSIDE
            self._marks += zip(begin[at].tolist(), end[at].tolist(), strict=True)
            ended = self._ended.find(events.kinds)
            self._ends.append((ended[ended != OUTSIDE], begin[ended != OUTSIDE]))
            operation = self._in_programs(events, self._of_event.find(events.kinds))
            there = operation != OUTSIDE
            kept.append([each[there] for each in (operation, begin, end, self._instruction.find(events.kinds))])
        columns = [np.concatenate([part[number] for part in kept] or [np.empty(0, np.int64)]) for number in range(4)]
        return _Thread(line.name, *columns, tid=line.id)

    def _in_programs(self, events: Events, operation: Ints) -> Ints:
        """The same with what names mean in the program that ran, where they mean several things."""
        for at, number in events.stats.get(NUMBER, {}).items():
            known: Known = self._programs.get(int(number), {})
            found = known.get(self._names[int(events.kinds[at])])
            if found is not None:
                operation[at] = self._place(found)
        return operation


def jax(planes: Mapping[str, Plane]) -> Reading | None:
    """The calls in a trace of JAX; None where it is none of JAX."""
    if HOST not in planes or METADATA not in planes or VERSION not in planes[METADATA].stats:
        return None
    return ThunkReading(planes[HOST], planes[METADATA], begin_of(planes))


def _set_ends(threads: Sequence[_Thread], ends: Sequence[tuple[Ints, Ints]]) -> None:
    """Let instructions end where other threads finished them: the ends of a name come in the order of its calls."""
    name = np.concatenate([each.instruction for each in threads])
    begin = np.concatenate([each.begin for each in threads])
    end = np.concatenate([each.end for each in threads])
    ended_name = np.concatenate([one for one, _ in ends] or [np.empty(0, np.int64)])
    ended_at = np.concatenate([moment for _, moment in ends] or [np.empty(0, np.int64)])
    calls, closes = np.lexsort((begin, name)), np.lexsort((ended_at, ended_name))
    calls = calls[name[calls] != OUTSIDE]
    paired = _same_counts(name[calls], ended_name[closes])
    calls = calls[np.isin(name[calls], paired)]
    closes = closes[np.isin(ended_name[closes], paired)]
    end[calls] = np.maximum(end[calls], ended_at[closes])
    for each, part in zip(threads, np.split(end, np.cumsum([len(each.end) for each in threads])[:-1]), strict=True):
        each.instruction = np.where(part > each.end, each.instruction, OUTSIDE)  # what is left ends later
        each.end = part


def _same_counts(calls: Ints, ends: Ints) -> Ints:
    """The names that have as many calls as ends."""
    (names, count), (others, other) = (np.unique(each, return_counts=True) for each in (calls, ends))
    both, at, at_other = np.intersect1d(names, others, return_indices=True)
    return np.asarray(both[count[at] == other[at_other]])


def _lanes(threads: Sequence[_Thread]) -> list[_Thread]:
    """The calls that end later, on lines on each of which they do not overlap."""
    later = _Thread(NO_THREAD, *(np.concatenate(columns) for columns in zip(*map(_later, threads), strict=True)))
    lanes: list[list[int]] = []
    for place in np.argsort(later.begin, kind="stable").tolist():
        free = next((lane for lane in lanes if later.end[lane[-1]] <= later.begin[place]), None)
        if free is None:
            lanes.append(free := [])
        free.append(place)
    return [_part(later, f"{NO_THREAD}/{number}", np.array(lane)) for number, lane in enumerate(lanes)]


def _later(thread: _Thread) -> tuple[Ints, ...]:
    at = thread.instruction != OUTSIDE
    return thread.operation[at], thread.begin[at], thread.end[at], thread.instruction[at]


def _part(thread: _Thread, name: str, places: Ints, tid: int = 0) -> _Thread:
    columns = (thread.operation, thread.begin, thread.end, thread.instruction)
    return _Thread(name, *(each[places] for each in columns), tid=tid)
