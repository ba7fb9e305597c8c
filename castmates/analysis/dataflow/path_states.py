"""The path of the schedule of traced steps beside states: what the thread that carried each stretch did; pure.

A step falls into stretches, in time and without gaps: before the path, of each node the wait until it begins and the
node itself, and after the path. What lies before and after is the main thread's. Times are whole nanoseconds: the
states of a stretch add up to it, and the stretches of a step add up to the step. Where no state of the thread is known,
it is `unknown`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.dataflow.join import ABSENT, FETCH, Steps, joined_steps, nodes_of
from castmates.analysis.dataflow.summary import Path, whole_paths

Ints = npt.NDArray[np.int64]
BEFORE, BATCH, OPERATIONS = "before", "batch", "operations"
OTHER, IDLE, AFTER = "other operations", "between operations", "after"
UNKNOWN = "unknown"
NOBODY = -1  # no track
Recording = tuple[str, int]  # its scene, and which of that scene it is


@dataclass(frozen=True)
class TracedSteps:
    """The traced steps of one recording: rows as a profile launch leaves them, with tracks for threads."""

    scene: str
    recording: int
    calls: pd.DataFrame
    steps: pd.DataFrame


@dataclass(frozen=True)
class ThreadStates:
    """What a thread did: states that do not overlap, sorted."""

    begin: Ints
    end: Ints
    state: Sequence[str]
    reason: Sequence[str]

    def within(self, begin: int, end: int) -> dict[tuple[str, str], int]:
        """Nanoseconds of each state and reason between two moments, and of what is not known."""
        low, high = int(np.searchsorted(self.end, begin, "right")), int(np.searchsorted(self.begin, end, "left"))
        found: dict[tuple[str, str], int] = {}
        for at in range(low, high):
            took = min(int(self.end[at]), end) - max(int(self.begin[at]), begin)
            key = (self.state[at], self.reason[at])
            found[key] = found.get(key, 0) + took
        left = end - begin - sum(found.values())
        return found | ({(UNKNOWN, ""): left} if left else {})


NOTHING_KNOWN = ThreadStates(np.empty(0, np.int64), np.empty(0, np.int64), (), ())


@dataclass(frozen=True)
class Stretch:
    """A part of a step, and the thread that carried it."""

    part: str
    node: int  # that runs, or is waited for; ABSENT for none of the graph, and before and after the path
    track: int
    begin: int
    end: int


WhyUnknown = Callable[[Recording, Stretch], str]  # why no state of its thread is known; "" where that is not either


def path_states(
    recordings: Sequence[TracedSteps],
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    states: Mapping[int, ThreadStates],
    main: int,
    why_unknown: WhyUnknown = lambda *_: "",
) -> tuple[list[dict[str, object]], dict[Recording, str]]:
    """A row per step, stretch, state and reason; and why recordings have none. `main`: the main thread's track."""
    graph = nodes_of(nodes, edges)
    names = list(zip(graph.table["operation"].astype("str"), graph.table["type"].astype("str"), strict=True))
    types = [type_ for _, type_ in names]
    rows: list[dict[str, object]] = []
    without: dict[Recording, str] = {}
    for each in recordings:
        recording = each.scene, each.recording
        found = joined_steps(graph, each.calls, each.steps)
        whole, reason = whole_paths(graph, found)
        if reason:
            without[recording] = reason
        numbers = each.steps.sort_values("step")["heartbeat"].tolist()
        for at, path in enumerate(whole):
            common = {"scene": each.scene, "recording": each.recording, "step": int(numbers[at])}
            parts = stretches(types, found, at, path, main)
            rows += [common | row for row in _rows(names, parts, states, partial(why_unknown, recording))]
    return rows, without


def stretches(types: Sequence[str], found: Steps, step: int, path: Path, main: int) -> Iterator[Stretch]:
    """The parts of a step in the order of time; those that take no time are left out."""
    yield from _lasting(Stretch(BEFORE, ABSENT, main, int(found.step_begin[step]), int(path.ready[0])))
    columns = (path.nodes, path.thread, path.ready, path.begin, path.end)
    for node, thread, ready, begin, end in zip(*(each.tolist() for each in columns), strict=True):
        track = int(found.threads[thread])
        yield from _lasting(Stretch(IDLE, node, track, ready, begin))
        part = OTHER if node == ABSENT else BATCH if types[node] == FETCH else OPERATIONS
        yield from _lasting(Stretch(part, node, track, begin, end))
    last = int(found.step_end[step])
    yield from _lasting(Stretch(AFTER, ABSENT, main, last - path.after, last))


def _lasting(stretch: Stretch) -> Iterator[Stretch]:
    if stretch.end > stretch.begin:
        yield stretch


def _rows(
    names: Sequence[tuple[str, str]],
    parts: Iterator[Stretch],
    states: Mapping[int, ThreadStates],
    why_unknown: Callable[[Stretch], str],
) -> Iterator[dict[str, object]]:
    for place, each in enumerate(parts):
        operation, type_ = names[each.node] if each.node != ABSENT else ("", "")
        about = {
            "place": place,
            "part": each.part,
            "operation": operation,
            "type": type_,
            "track": each.track if each.track != NOBODY else None,
            "t0_ns": each.begin,
            "t1_ns": each.end,
        }
        for (state, reason), ns in states.get(each.track, NOTHING_KNOWN).within(each.begin, each.end).items():
            why = reason or (why_unknown(each) if state == UNKNOWN else "")
            yield about | {"state": state, "reason": why, "ns": ns}
