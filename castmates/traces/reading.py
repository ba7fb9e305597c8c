"""Reads a trace, whichever framework wrote it.

Of TensorFlow's also what each stage of tf.data does in a step: its own work, the functions that it runs, and its waits.
TensorFlow marks each call of a stage (Iterator::Root::Prefetch::Map, the last one is the stage) on the thread that asks
for an element. A stage that has its elements made on other threads, such as Prefetch, waits there: its input never runs
inside of it. Functions that such a stage runs are known by their numbers.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from castmates.traces.chrome import read_json
from castmates.traces.devices import DeviceCall, Memory, read_devices, read_memory
from castmates.traces.nesting import NOBODY, in_order, nested, own
from castmates.traces.operations import OUTSIDE, Reading, Trace, read_trace, step_of, tensorflow
from castmates.traces.thunks import jax
from castmates.traces.xspace import Line, Plane, Space
from castmates.workloads.tfmodels.xspace import HOST

STAGE, PRODUCES, FUNCTION, RUNS = "Iterator::", "Produce", "InstantiatedCapturedFunction::", "ExecutorState::Process"
NUMBER = "id"  # of a function's run
_INPUT = re.compile(r"\[\d+\]")  # which of several equal inputs


@dataclass
class Stage:
    """A stage over all steps of a trace; inputs that differ in their number alone are one."""

    path: tuple[str, ...]  # from the one that the step asks, without the root
    calls: int = 0
    own_ps: int = 0  # of all calls, without the stages that they ask on the same thread
    function_ps: int = 0  # of the functions that it runs on other threads
    waits: bool = False  # its elements are made on other threads: its own time is a wait for them
    threads: set[int] = field(default_factory=set)  # on which it is asked, and its functions run


@dataclass(frozen=True)
class _Call:
    """A marked event of a thread."""

    name: str
    begin: int
    end: int
    number: int | None  # of a function's run
    parent: "_Call | None"


def read_stages(path: Path, trace: Trace) -> list[Stage]:
    """Read the stages that a step of a trace asks, in their order; none where it has no input pipeline."""
    found = _Stages(trace)
    with Space(path) as space:
        for plane in space.planes():
            if plane.name == HOST and any(name.name.startswith(STAGE) for name in plane.event_names.values()):
                for thread, line in enumerate(plane.lines()):
                    found.add(thread, plane, line)
    return found.stages()


class _Stages:
    """The stages of a trace, thread by thread."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._stages: dict[tuple[str, ...], Stage] = {}
        self._nested: set[tuple[str, ...]] = set()  # stages that ran inside of the one that asks them
        self._of_function: dict[int, tuple[str, ...]] = {}
        self._runs: dict[int, Counter[int]] = defaultdict(Counter)  # by function: of each thread

    def add(self, thread: int, plane: Plane, line: Line) -> None:
        """Take in a thread."""
        calls = _calls(plane, line, self._trace)
        self._count(thread, [call for call in calls if call.name.startswith(STAGE)])
        inputs = {id(call.parent): path_of(call.name) for call in calls if call.name.startswith(STAGE)}
        for call in calls:
            if call.name.startswith(FUNCTION) and call.number is not None and call.parent is not None:
                asked = inputs.get(id(call.parent))
                if call.parent.name.endswith(PRODUCES) and asked:
                    self._of_function[call.number] = asked[:-1]
            if call.name == RUNS and call.number is not None and call.parent is None and self._inside(call):
                self._runs[call.number][thread] += call.end - call.begin

    def _inside(self, call: _Call) -> bool:
        begin = np.array([call.begin], np.int64)
        return bool(step_of(begin, self._trace.step_begin_ps, self._trace.step_end_ps)[0] != OUTSIDE)

    def _count(self, thread: int, calls: list[_Call]) -> None:
        """Add a thread's calls of stages up."""
        begin, end = (np.array([getattr(call, side) for call in calls], np.int64) for side in ("begin", "end"))
        order = in_order(begin, end)
        begin, end = begin[order], end[order]
        parents, cut = nested(begin, end)
        steps = step_of(begin, self._trace.step_begin_ps, self._trace.step_end_ps)
        paths = [path_of(calls[place].name) for place in order.tolist()]
        rows = zip(paths, own(begin, cut, parents).tolist(), parents.tolist(), steps.tolist(), strict=True)
        for path, own_ps, parent, step in rows:
            if parent != NOBODY and paths[parent] == path[:-1]:
                self._nested.add(path)
            if step != OUTSIDE:
                stage = self._stages.setdefault(path, Stage(path))
                stage.calls += 1
                stage.own_ps += own_ps
                stage.threads.add(thread)

    def stages(self) -> list[Stage]:
        """All of them, and which ones wait."""
        for number, path in self._of_function.items():
            stage = self._stages.setdefault(path, Stage(path))
            stage.function_ps += self._runs[number].total()
            stage.threads |= set(self._runs[number])
        asked = defaultdict(list)
        for path in self._stages:
            asked[path[:-1]].append(path)
        for path, stage in self._stages.items():
            stage.waits = bool(asked[path]) and not any(one in self._nested for one in asked[path])
        return [self._stages[path] for path in sorted(self._stages) if path]


def path_of(name: str) -> tuple[str, ...]:
    """The stages from the first one below the root to this one."""
    return tuple(_INPUT.sub("", part) for part in name.removeprefix(STAGE).split("::"))[1:]


def _calls(plane: Plane, line: Line, trace: Trace) -> list[_Call]:
    """A thread's marked events, each with the one that it is in."""
    names = {number: name.name for number, name in plane.event_names.items() if _is_marked(name.name)}
    wanted = np.array(sorted(names), np.int64)
    start, rows = 1000 * (line.timestamp_ns - trace.first_ns), []
    for events in line.events((NUMBER,), names):
        numbers = events.stats.get(NUMBER, {})
        for place in np.flatnonzero(np.isin(events.kinds, wanted)).tolist():
            begin = start + int(events.offset_ps[place])
            number = numbers.get(place)
            name = names[int(events.kinds[place])]
            rows.append((name, begin, begin + int(events.duration_ps[place]), number))
    begins, ends = (np.array([row[side] for row in rows], np.int64) for side in (1, 2))
    order = in_order(begins, ends)
    parents, _ = nested(begins[order], ends[order])
    found: list[_Call] = []
    for place, parent in zip(order.tolist(), parents.tolist(), strict=True):
        name, first, last, number = rows[place]
        known = number if isinstance(number, int) else None
        found.append(_Call(name, first, last, known, None if parent == NOBODY else found[parent]))
    return found


def _is_marked(name: str) -> bool:
    return name.startswith((STAGE, FUNCTION)) or name.endswith(PRODUCES) or name == RUNS


# All that a trace shows.

FILES = ("*.xplane.pb", "*.pt.trace.json.gz")  # what profilers write: TensorFlow's and JAX's, PyTorch's
JSON = ".json"


@dataclass(frozen=True)
class Found:
    """What a trace shows of a job's steps."""

    trace: Trace
    memory: Memory
    stages: Sequence[Stage] = ()  # of the input pipeline
    devices: Sequence[DeviceCall] = ()


def read(path: Path) -> Found:
    """Read what a trace has of its steps; what is wrong with the file is a sentence."""
    if JSON in path.suffixes:
        return Found(*read_json(path))
    trace = read_trace(path, _reading)
    return Found(trace, read_memory(path, trace), read_stages(path, trace), read_devices(path, trace))


def _reading(planes: Mapping[str, Plane]) -> Reading | None:
    return jax(planes) or tensorflow(planes)
