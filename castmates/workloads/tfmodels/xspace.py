"""Adds up an XSpace, TensorFlow's own trace, to the time of each operation in a step; standard library only.

What runs at the same moment, in several threads, shares that moment equally, so that all operations and what is left
over add up to the steps' time. Where no operation of the model runs, the step waits if a fetch of its batch goes on,
whatever the input does meanwhile. An operation's time is its own: what it calls is taken off. Containers, which only
call others, are left out, and so is all that is not an operation.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

STEP = "castmates_step"  # the mark around each step
HOST = "/host:CPU"
OPERATION = re.compile(r"([^:]+):(_?[A-Z]\w*)")
CONTAINERS = re.compile(
    r"(Stateful|Stateless)?(PartitionedCall|If|While|Case|For)|SymbolicGradient|RemoteCall|IteratorGetNext\w*"
)
FETCH = "IteratorGetNext"  # the step waits for its batch, or is given it
FETCHES = re.compile(r"IteratorGetNext\w*Op::DoCompute")  # the same as an event, on whichever thread
EAGER = "EagerLocalExecute: "  # all that Python has TensorFlow do
INPUT_THREADS = "tf_data"  # what the names of the input pipeline's threads begin with

Key = tuple[str, str, bool]  # an operation's name and type, and whether the input pipeline ran it
WAITING: Key = (FETCH, FETCH, True)
RUNTIME: Key = ("", "runtime", False)  # inside TensorFlow, between two operations
Segment = tuple[int, int, Key]  # from, to, in picoseconds


def rolled(space: Any) -> dict[str, Any]:
    """The steps' seconds, and of each operation its calls and nanoseconds, over all steps."""
    plane = next((plane for plane in space.planes if plane.name == HOST), None)
    lines = [] if plane is None else [(line.name, list(_events(plane, line))) for line in plane.lines]
    steps = sorted((begin, end) for _, events in lines for begin, end, name in events if name == STEP)
    calls: Counter[Key] = Counter()
    segments: list[Segment] = []
    for thread, events in lines:
        known = [(begin, end, key) for begin, end, name in events if (key := key_of(name, thread))]
        inside = [(begin, end, key) for begin, end, key in known if _overlaps(steps, begin, end)]
        calls.update(key for begin, _, key in inside if _step_of(steps, begin) is not None)
        segments += own_time(inside)
    picoseconds = shared(_cut(segments, steps))
    return {
        "step_seconds": [(end - begin) / 1e12 for begin, end in steps],
        "operations": [[*key, calls[key], picoseconds.get(key, 0) / 1e3] for key in sorted({*calls, *picoseconds})],
    }


def key_of(name: str, thread: str) -> Key | None:
    """Which operation an event is of; None where it is none, or only calls others."""
    if name.startswith(EAGER):
        return RUNTIME
    if FETCHES.fullmatch(name):
        return WAITING
    found = OPERATION.fullmatch(name)
    if found is None or CONTAINERS.fullmatch(found[2]):
        return None
    return found[1], found[2], thread.startswith(INPUT_THREADS)


def own_time(events: Sequence[tuple[int, int, Key]]) -> Iterator[Segment]:
    """Cut the nested events of one thread into pieces that do not overlap: at each moment, the innermost."""
    open_: list[tuple[int, Key]] = []
    now = 0
    for begin, end, key in sorted(events, key=lambda one: (one[0], -one[1])):
        while open_ and open_[-1][0] <= begin:
            until, whose = open_.pop()
            yield now, until, whose
            now = max(now, until)
        if open_:
            yield now, begin, open_[-1][1]
            end = min(end, open_[-1][0])
        open_.append((end, key))
        now = begin
    while open_:
        until, whose = open_.pop()
        yield now, until, whose
        now = max(now, until)


def shared(segments: Iterable[Segment]) -> dict[Key, float]:
    """Divide each moment equally among all that runs and comes first: the model, the wait, the input, the runtime."""
    edges: dict[int, list[tuple[int, Key]]] = defaultdict(list)
    for begin, end, key in segments:
        edges[begin].append((1, key))
        edges[end].append((-1, key))
    total: dict[Key, float] = defaultdict(float)
    levels: list[Counter[Key]] = [Counter() for _ in range(4)]
    before = 0
    for now in sorted(edges):
        running = next(filter(None, levels), Counter())
        for key, count in running.items():
            total[key] += count * (now - before) / running.total()
        for change, key in edges[now]:
            own = levels[3 if key == RUNTIME else 1 if key == WAITING else 2 if key[2] else 0]
            own[key] += change
            if not own[key]:
                del own[key]
        before = now
    return dict(total)


def _events(plane: Any, line: Any) -> Iterator[tuple[int, int, str]]:
    """Begin, end and name of a thread's events."""
    names = plane.event_metadata
    for event in line.events:
        begin = 1000 * line.timestamp_ns + event.offset_ps
        yield begin, begin + event.duration_ps, names[event.metadata_id].name


def _cut(segments: Iterable[Segment], steps: Sequence[tuple[int, int]]) -> Iterator[Segment]:
    """Keep what lies inside the steps."""
    for begin, end, key in segments:
        first = max(bisect_right(steps, (begin, begin)) - 1, 0)
        for step_begin, step_end in steps[first:]:
            if step_begin >= end:
                break
            if max(begin, step_begin) < min(end, step_end):
                yield max(begin, step_begin), min(end, step_end), key


def _overlaps(steps: Sequence[tuple[int, int]], begin: int, end: int) -> bool:
    after = bisect_right(steps, (end, end))
    return after > 0 and steps[after - 1][1] > begin


def _step_of(steps: Sequence[tuple[int, int]], moment: int) -> int | None:
    found = bisect_right(steps, (moment, float("inf"))) - 1
    return found if found >= 0 and moment < steps[found][1] else None
