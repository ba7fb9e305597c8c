"""Wake-ups of members' threads, and when each thread was first seen at work."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.groups import Keys, People, Spans
from castmates.timeline.perf.reading import Recording

Array = npt.NDArray[Any]
EVENTS = ("sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new")
INTERRUPTED = 0x08 | 0x10  # the waker's flags: it was within an interrupt, which has nothing to do with who ran there
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Wakes:
    """Wake-ups, in the order of groups and times."""

    keys: Array
    time: Array
    cpu: Array  # on whose queue the thread was put
    waker: Array  # -1 for an interrupt
    seen: Array  # of each group, when its thread first did something; far in the future where it never did
    seen_cpu: Array


def wakes_of(recording: Recording, people: People, spans: Spans, keys: Keys) -> Wakes:
    """Sort the wake-ups by whom they wake."""
    tables = [recording.samples[name] for name in EVENTS if name in recording.samples]
    time, cpu, waker, pid, flags = (
        np.concatenate([np.empty(0, np.int64), *(table[name] for table in tables)])
        for name in ("time", "target_cpu", "tid", "pid", "common_flags")
    )
    thread, span = people.number(people.here(pid)), spans.of(time)
    kept = np.flatnonzero((thread >= 0) & (span >= 0))
    order = keys.of(thread[kept] * len(spans.begins) + span[kept], time[kept])
    kept = kept[np.argsort(order, kind="stable")]
    order.sort()
    waker = np.where(flags[kept] & INTERRUPTED != 0, -1, waker[kept])
    return Wakes(order, time[kept], cpu[kept], waker, *_first_seen(recording, people, spans))


def _first_seen(recording: Recording, people: People, spans: Spans) -> tuple[Array, Array]:
    """When and where each thread first did something in each stretch: then it ran."""
    groups = len(people) * len(spans.begins)
    seen, cpus = np.full(groups, _NEVER), np.full(groups, -1)
    for table in recording.samples.values():
        thread, span = people.number(table["tid"]), spans.of(table["time"])
        kept = np.flatnonzero((thread >= 0) & (span >= 0))
        group, time = thread[kept] * len(spans.begins) + span[kept], table["time"][kept]
        order = np.lexsort((time, group))
        first = order[np.flatnonzero(np.append(True, np.diff(group[order]) != 0)[: len(order)])]
        earlier = time[first] < seen[group[first]]
        seen[group[first][earlier]] = time[first][earlier]
        cpus[group[first][earlier]] = table["cpu"][kept][first][earlier]
    return seen, cpus
