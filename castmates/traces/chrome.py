"""The calls of operations in the profiled steps of a PyTorch job, from the JSON that its profiler wrote.

Times are microseconds with three decimals, from a moment of CLOCK_REALTIME that the file names.

Marks around modules name the scope of all that they call. A gradient is computed elsewhere: it names the sequence
number of the operation that it belongs to, whose module is its scope too.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.analysis.explanations.layers import RUNTIME, decisive_kind, layer_place, torch_place
from castmates.analysis.operations.instructions import NOTHING_KNOWN, Work
from castmates.errors import CastmatesError
from castmates.traces.devices import Given, Memory, memory_of
from castmates.traces.json_events import WHAT, Event, Events
from castmates.traces.nesting import NOBODY, nested
from castmates.traces.operations import BETWEEN, FEEDS, WAITS, WORKS, Found, Ints, Operation, Trace, assembled
from castmates.traces.torch_work import counted, known_of
from castmates.workloads.jobs.tracing import INPUT, STEP
from castmates.workloads.tfmodels.xspace import FETCH

MODULE = "castmates_module "  # before the path of a module
LOADER = re.compile(r"enumerate\(\w+\)#.*")  # PyTorch's mark around the wait for a batch
REGION = "Torch-Compiled Region: "  # before the number of code that PyTorch has compiled, with all that it calls
GRADIENT = "autograd::engine::evaluate_function: "  # before the name of a gradient's node
OPTIMIZER = re.compile(r"Optimizer\.(step|zero_grad)#(\w+)\..*")
DIRECTIONS = ("forward", "backward", "optimizer", "input")
FORWARD, BACKWARD, OPTIMIZES, READS = range(4)
NONE = -1
PS = 1000  # in a nanosecond
Flags = npt.NDArray[np.bool_]
AnyInts = npt.NDArray[np.signedinteger[Any]]
Known = tuple[Work, str]
UNKNOWN: Known = (NOTHING_KNOWN, "")


@dataclass
class Columns:
    """The events of a trace, by thread and time; of events that begin together the longer one comes first."""

    begin: Ints  # nanoseconds
    end: Ints
    kind: AnyInts  # places in `kinds`
    thread: AnyInts  # places in `threads`
    sequence: Ints  # -1 for none
    of_forward: Flags  # whether it belongs to an operation that another event has been
    work: AnyInts  # places in `works`
    kinds: list[tuple[str, bool]]  # name, and whether it is a mark
    threads: list[str]
    works: list[Known] = field(default_factory=lambda: [UNKNOWN])  # what events compute, and the type of their numbers
    tids: list[int] = field(default_factory=list)  # the system's numbers of threads, 0 for what is none


@dataclass(frozen=True)
class _Carrier:
    """What an event settles for all that it calls."""

    scopes: tuple[str, ...] = ()
    direction: int = FORWARD
    node: str = ""  # of a gradient


def found_in(columns: Columns, first_ns: int, origin_ns: int) -> Found:
    """The calls and steps of a trace."""
    operations, operation = _operations(columns, *_settled(columns))
    is_step = np.array([name.startswith(STEP) and mark for name, mark in columns.kinds])
    steps = np.flatnonzero(is_step[columns.kind])
    steps = steps[np.argsort(columns.begin[steps])]
    parts = []
    for number in range(len(columns.threads)):
        at = (columns.thread == number) & (operation != NONE)
        parts.append((operation[at], PS * (columns.begin[at] - first_ns), PS * (columns.end[at] - first_ns)))
    begin, end = PS * (columns.begin[steps] - first_ns), PS * (columns.end[steps] - first_ns)
    return Found(origin_ns, origin_ns, begin, end, operations, columns.threads, parts, columns.tids)


def _settled(columns: Columns) -> tuple[list[_Carrier], AnyInts, AnyInts]:
    """What is settled for events; by event, the place of that, and the kind of the caller that settles its kind."""
    parent, depth = _tree(columns)
    carriers: dict[_Carrier, int] = {_Carrier(): 0}
    own, settles = _of_kinds(columns, carriers), _settles(columns)
    _add_clipping(columns, parent, own)
    carrier, settled = _inherited(own, parent, depth), _inherited(settles, parent, depth, outermost=True)
    gradients = np.flatnonzero(np.array([name.startswith(GRADIENT) for name, _ in columns.kinds])[columns.kind])
    forward = _forward_of(columns, gradients)
    _add_gradients(columns, gradients, np.where(forward != NONE, carrier[forward], NONE), own, carriers)
    settles[gradients] = np.where(forward != NONE, settled[forward], NONE)
    carrier, settled = _inherited(own, parent, depth), _inherited(settles, parent, depth, outermost=True)
    _count_once(columns, parent, depth)
    return list(carriers), carrier, settled


def _tree(columns: Columns) -> tuple[Ints, AnyInts]:
    """By event: who calls it, and how many do so around it."""
    parent = np.full(len(columns.begin), NOBODY, np.int64)
    for number in range(len(columns.threads)):
        at = np.flatnonzero(columns.thread == number)
        if len(at):
            found, _ = nested(columns.begin[at], columns.end[at])
            parent[at] = np.where(found == NOBODY, NOBODY, found + at[0])
    depth: AnyInts = np.zeros(len(parent), np.int16)
    above = parent
    while (inner := above != NOBODY).any():
        depth += inner
        above = np.where(inner, parent[above], NOBODY)
    return parent, depth


def _count_once(columns: Columns, parent: Ints, depth: AnyInts) -> None:
    """Where what an event calls computes at least as much as the event, that counts, and the event has no work."""
    flops = np.nan_to_num([work.flops for work, _ in columns.works])[columns.work]
    called = np.zeros(len(parent))
    for level in range(int(depth.max(initial=0)), -1, -1):
        at = np.flatnonzero(depth == level)
        columns.work[at[(called[at] > 0) & (called[at] >= flops[at])]] = 0
        at = at[parent[at] != NOBODY]
        np.add.at(called, parent[at], np.maximum(called[at], flops[at]))


def _inherited(own: AnyInts, parent: Ints, depth: AnyInts, outermost: bool = False) -> AnyInts:
    """What an event has itself, or else of the nearest caller that has something; or of the outermost one."""
    found = own.copy()
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 2))
    for first, last in pairwise(bounds.tolist()):
        at = order[first:last]
        above = found[parent[at]]
        takes = (above != NONE) if outermost else (found[at] == NONE)
        found[at] = np.where(takes, above, found[at])
    return found


def _of_kinds(columns: Columns, carriers: dict[_Carrier, int]) -> AnyInts:
    """What marks settle: the module, the optimizer or the input that they are around."""
    of_kind = np.full(len(columns.kinds), NONE, np.int32)
    for number, (name, mark) in enumerate(columns.kinds):
        found = _carrier(name) if mark else _of_region(name)
        if found is not None:
            of_kind[number] = carriers.setdefault(found, len(carriers))
    return of_kind[columns.kind]


def _of_region(name: str) -> _Carrier | None:
    """What is settled by code that PyTorch has compiled: modules in it are not known."""
    return _Carrier(("compiled " + name.removeprefix(REGION).replace("/", "."),)) if name.startswith(REGION) else None


def _add_clipping(columns: Columns, parent: Ints, own: AnyInts) -> None:
    """Let what happens between the last gradient and an optimizer's step be the optimizer's: clipping, scaling."""
    found = [OPTIMIZER.fullmatch(name) for name, _ in columns.kinds]
    steps = [one is not None and one[1] == "step" for one in found]
    gradient = np.array([name.startswith(GRADIENT) for name, _ in columns.kinds])[columns.kind]
    settled = np.flatnonzero((own != NONE) | gradient)  # marks, of modules too
    ends = np.sort(columns.end[settled])
    for place in np.flatnonzero(np.array(steps)[columns.kind]).tolist():
        begin = columns.begin[place]
        before = np.searchsorted(ends, begin, "right") - 1
        if before >= 0:
            at = (columns.thread == columns.thread[place]) & (columns.begin >= ends[before]) & (columns.end <= begin)
            own[at & (parent == parent[place]) & (own == NONE)] = own[place]


def _carrier(mark: str) -> _Carrier | None:
    if mark.startswith(MODULE):
        return _Carrier(tuple(filter(None, mark.removeprefix(MODULE).split("/"))))
    if optimizer := OPTIMIZER.fullmatch(mark):
        return _Carrier((optimizer[2],), OPTIMIZES)
    return _Carrier(("input",), READS) if _is_input(mark) else None


def _is_input(mark: str) -> bool:
    return mark == INPUT or LOADER.fullmatch(mark) is not None


def _add_gradients(
    columns: Columns, gradients: Ints, of_forward: AnyInts, own: AnyInts, carriers: dict[_Carrier, int]
) -> None:
    """Let gradients have the scopes of the operations that they belong to."""
    known = list(carriers)
    rows = zip(gradients.tolist(), of_forward.tolist(), columns.kind[gradients].tolist(), strict=True)
    for place, forward, kind in rows:
        scopes = known[forward].scopes if forward != NONE else ()
        found = _Carrier(scopes, BACKWARD, _type(columns.kinds[kind][0].removeprefix(GRADIENT)))
        own[place] = carriers.setdefault(found, len(carriers))


def _forward_of(columns: Columns, gradients: Ints) -> Ints:
    """The operation that each gradient belongs to, which was the last to begin with its number; -1 for none.

    Numbers count in each thread apart. A gradient is computed on the operation's thread, or on one that has none.
    """
    marks = np.array([mark for _, mark in columns.kinds])[columns.kind]
    forward = np.flatnonzero((columns.sequence != NONE) & ~columns.of_forward & ~marks)
    forward = forward[np.isin(columns.sequence[forward], columns.sequence[gradients])]
    threads = len(columns.threads)
    keys = columns.sequence[forward] * threads + columns.thread[forward]
    order = np.argsort(keys, kind="stable")  # which keeps times in order
    keys, forward = keys[order], forward[order]
    if not len(keys):
        return np.full(len(gradients), NONE, np.int64)
    found = np.full(len(gradients), NONE, np.int64)
    with_numbers = np.unique(columns.thread[forward])
    tries = [columns.thread[gradients], *([np.full(len(gradients), with_numbers[0])] if len(with_numbers) == 1 else [])]
    for thread in tries:
        wanted = columns.sequence[gradients] * threads + thread
        last = np.searchsorted(keys, wanted, "right") - 1
        there = (last >= 0) & (keys[np.maximum(last, 0)] == wanted) & (found == NONE)
        found = np.where(there, forward[np.maximum(last, 0)], found)
    return found


def _settles(columns: Columns) -> AnyInts:
    """The number of an event's kind where it settles what kind of operation all is that it calls; else -1."""
    decisive = [not mark and bool(decisive_kind(_type(name))) for name, mark in columns.kinds]
    return np.where(np.array(decisive)[columns.kind], columns.kind, NONE).astype(np.int32)


def _operations(
    columns: Columns, carriers: list[_Carrier], carrier: AnyInts, settled: AnyInts
) -> tuple[list[Operation], Ints]:
    """The operations of a trace, and by event which it is a call of; -1 for marks."""
    kinds = len(columns.kinds)
    keys = ((carrier.astype(np.int64) + 1) * (kinds + 1) + settled + 1) * kinds + columns.kind
    keys = keys * len(columns.works) + columns.work
    different, places = np.unique(keys, return_inverse=True)
    operations: dict[Operation, int] = {}
    numbers = np.full(len(different), NONE, np.int64)
    for number, key in enumerate(different.tolist()):
        place, work = divmod(key, len(columns.works))
        above, kind = divmod(place, kinds)
        of_carrier, of_settled = divmod(above, kinds + 1)
        by = _type(columns.kinds[of_settled - 1][0]) if of_settled else ""
        found = _operation(carriers[of_carrier - 1] if of_carrier else _Carrier(), columns.kinds[kind], by)
        if found is not None:
            found = replace(found, work=columns.works[work][0], data_type=columns.works[work][1])
            numbers[number] = operations.setdefault(found, len(operations))
    return list(operations), numbers[places]


def _operation(carrier: _Carrier, kind: tuple[str, bool], settled: str) -> Operation | None:
    """What an event is a call of; `settled` is the type of the caller that settles its kind, or ""."""
    name, mark = kind
    if mark:
        return Operation("input", "input", layer_place(FETCH, FETCH, is_input=True), WAITS) if _is_input(name) else None
    if name.startswith(GRADIENT):  # what it calls works; it looks for the next one
        return Operation("", RUNTIME, layer_place("", RUNTIME), BETWEEN)
    type_, kind_of_layer = _type(name), decisive_kind(settled)
    place = torch_place(carrier.scopes, type_, DIRECTIONS[carrier.direction], kind_of_layer)
    known = kind_of_layer in (decisive_kind(type_), decisive_kind(carrier.node))  # and need not be named
    parts = [*carrier.scopes, "" if known else settled, "" if carrier.node == type_ else carrier.node, type_]
    level = FEEDS if carrier.direction == READS else WORKS
    return Operation("/".join(filter(None, parts)), type_, place, level)


def _type(name: str) -> str:
    """An operation's type: `mm` of `aten::mm`; other libraries keep their name before a point."""
    if name.startswith(REGION):
        return "CompiledRegion"
    return name.removeprefix("aten::").replace("::", ".")


VERSION = 1  # of the file
OPERATION, MARK = "cpu_op", "user_annotation"  # categories of events
MEMORY = "[memory]"
SHAPES = "Input Dims"  # of an operation's operands
NS = 1000  # in a microsecond
DEVICES = {0: "cpu", 1: "cuda"}
LARGEST = 2**63
COLUMNS = ("begin", "end", "kind", "thread", "sequence", "of_forward", "work")
_THREAD = re.compile(r"thread (\d+) \((.*)\)")


class _Reading:
    """The columns of a trace, some events at a time."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, bool], int] = {}  # name, and whether it is a mark
        self.threads: dict[Any, int] = {}
        self.names: dict[Any, str] = {}
        self.given: list[Given] = []
        self.works: dict[Known, int] = {UNKNOWN: 0}
        self._known: dict[str, int] = {}  # by what a call was given: the place of its work
        self._parts: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def add(self, events: Iterable[Event]) -> None:
        """Keep what counts of some events."""
        rows = []
        for event in events:
            category = event.get("cat")
            if category in (OPERATION, MARK) and event.get("ph") == "X":
                more = event.get("args") or {}
                kind = self.kinds.setdefault((event["name"], category == MARK), len(self.kinds))
                thread = self.threads.setdefault(event["tid"], len(self.threads))
                sequence = more.get("Sequence number", -1)
                forward = more.get("Fwd thread id", 0)
                work = self._work(event["name"], more) if SHAPES in more else 0
                rows.append((event["ts"], event["dur"], kind, thread, sequence, forward, work))
            elif event.get("name") == MEMORY:
                self._keep_memory(event)
            elif event.get("ph") == "M" and event.get("name") == "thread_name":
                self.names[event["tid"]] = str(event["args"]["name"])
        for name, column in _packed(rows).items() if rows else ():
            self._parts[name].append(column)

    def _work(self, name: str, given: Mapping[str, Any]) -> int:
        if counted(_type(name)) is None:
            return 0
        what = (SHAPES, "Input Strides", "Input type", "Concrete Inputs")
        key = f"{name} {[given.get(each) for each in what]}"
        if key not in self._known:
            self._known[key] = self.works.setdefault(known_of(_type(name), given), len(self.works))
        return self._known[key]

    def _keep_memory(self, event: Event) -> None:
        about = event["args"]
        device, number = about.get("Device Type", 0), about.get("Device Id", -1)
        name = DEVICES.get(device, f"device {device}")
        thread = self.threads.setdefault(event["tid"], len(self.threads))
        allocator = name if number < 0 else f"{name}:{number}"
        self.given.append(Given(event["ts"], thread, int(about["Bytes"]), allocator))

    def columns(self) -> Columns:
        """All events, by thread and time, times in nanoseconds."""
        columns = {name: self._column(name) for name in COLUMNS}
        order = np.lexsort((-columns["end"], columns["begin"], columns["thread"]))
        for name in COLUMNS:  # large, as all of these: each is let go of
            columns[name] = columns[name][order]
        tids = [thread if isinstance(thread, int) else 0 for thread in self.threads]
        threads, works = self._thread_names(), list(self.works)
        return Columns(**columns, kinds=list(self.kinds), threads=threads, works=works, tids=tids)

    def _column(self, name: str) -> Any:  # noqa: ANN401 (an array of numbers or of flags)
        found = np.concatenate(self._parts[name])
        self._parts[name].clear()
        return found

    def _thread_names(self) -> list[str]:
        """The same thread of two launches has one name but for a number behind a slash."""
        named = {thread: _THREAD.fullmatch(self.names.get(thread, "")) for thread in self.threads}
        return [f"{found[2]}/{thread}" if found else f"thread/{thread}" for thread, found in named.items()]


def _packed(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Some events as columns."""
    ts, duration, kind, thread, sequence, forward, work = zip(*rows, strict=True)
    begin = np.rint(np.array(ts, np.float64) * NS).astype(np.int64)
    end = begin + np.rint(np.array(duration, np.float64) * NS).astype(np.int64)
    numbers = np.array([one if 0 <= one < LARGEST else -1 for one in sequence], np.int64)
    small = (np.array(each, np.int32) for each in (kind, thread))
    columns = begin, end, *small, numbers, np.array(forward, np.int64) > 0, np.array(work, np.int32)
    return dict(zip(COLUMNS, columns, strict=True))


def read_json(path: Path) -> tuple[Trace, Memory]:
    """Read the calls and allocations in steps; a file that is cut, foreign, newer or without steps is a sentence."""
    reading, events = _Reading(), Events(path)
    try:
        for some in events:
            reading.add(some)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CastmatesError(f"{path}: this is {WHAT}: its events have another form.") from None
    version = events.facts.get("schemaVersion", VERSION)
    if version != VERSION:
        raise CastmatesError(f"{path}: this trace has the schema {version}, and {VERSION} is what can be read.")
    if not any(mark and name.startswith(STEP) for name, mark in reading.kinds):
        raise CastmatesError(f"{path}: this trace has none of the job's steps ('{STEP}').")
    found, first = _found(reading, int(events.facts.get("baseTimeNanoseconds", 0)))
    trace = assembled(found)
    return trace, memory_of(reading.given, trace, first)


def _found(reading: _Reading, base_ns: int) -> tuple[Found, int]:
    """The calls of a trace, and its first moment; the columns that they come from are let go of."""
    columns = reading.columns()
    first = int(columns.begin.min())
    return found_in(columns, first, base_ns + first), first
