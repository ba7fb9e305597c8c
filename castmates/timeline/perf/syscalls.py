"""System calls of members' threads: each enter with its exit; what was going on at an edge is open there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.timeline.model import categories
from castmates.timeline.perf.groups import Keys, People, Spans
from castmates.timeline.perf.reading import Recording
from castmates.timeline.syscalls import FAULT, UNKNOWN, number_of, syscall_name, wait_of

Array = npt.NDArray[Any]
ENTER, EXIT = "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"
ENDED, BEFORE, STILL, UNSEEN = range(4)
RESTARTS, TIMED_OUT = -516, -110  # ERESTART_RESTARTBLOCK, which programs never see, and ETIMEDOUT
HOW = ("", "began before", "not over", "end not seen")  # the detail of an interval


@dataclass(frozen=True)
class Calls:
    """System calls in the order of groups and times; those of a group do not overlap."""

    group: Array
    thread: Array
    begins: Array
    ends: Array
    number: Array
    result: Array  # NaN where the end was not seen
    how: Array
    cpu: Array
    unpaired: int  # ends without a begin, which are in none of these


def calls_of(recording: Recording, people: People, spans: Spans, end_of: Array) -> Calls:
    """Pair enters and exits."""
    stretch = max(1, len(spans.begins))
    parts = [_side(recording, people, spans, name) for name in (ENTER, EXIT)]
    group, time, number, result, cpu = (np.concatenate([part[place] for part in parts]) for place in range(5))
    is_exit = np.arange(len(group)) >= len(parts[0][0])
    order = np.lexsort((is_exit, time, group))
    group, time, number, cpu = group[order], time[order], number[order], cpu[order]
    is_exit, result = is_exit[order], result[order]
    has_next = np.append(group[1:] == group[:-1], False)[: len(group)]
    following = np.minimum(np.arange(len(group)) + 1, max(len(group) - 1, 0))
    enters = np.flatnonzero(~is_exit)
    more, nexts = has_next[enters], following[enters]
    closed = more & is_exit[nexts]
    ends = np.where(more, time[nexts], np.maximum(end_of[group[enters]], time[enters]))
    how = np.where(closed, ENDED, np.where(more, UNSEEN, STILL))
    first = np.append(True, group[1:] != group[:-1])[: len(group)]
    lonely = np.flatnonzero(is_exit & first)
    born = np.array([recording.tasks.births.get(tid, 0) for tid in people.tids.tolist()], np.int64)
    begins_of = np.tile(spans.begins, len(people))
    opened = np.tile(spans.whole, len(people)) & (born.repeat(stretch) < begins_of)
    early = lonely[opened[group[lonely]]]
    columns = {
        "group": np.concatenate([group[enters], group[early]]),
        "begins": np.concatenate([time[enters], begins_of[group[early]]]),
        "ends": np.concatenate([ends, time[early]]),
        "number": np.concatenate([number[enters], number[early]]),
        "result": np.concatenate([np.where(closed, result[nexts], np.nan), result[early]]),
        "how": np.concatenate([how, np.full(len(early), BEFORE)]),
        "cpu": np.concatenate([cpu[enters], cpu[early]]),
    }
    order = np.lexsort((columns["begins"], columns["group"]))
    columns = {name: column[order] for name, column in columns.items()}
    columns["number"] = _restarted(columns, recording.header.about.get("arch", ""))
    unpaired = int(is_exit.sum()) - int(closed.sum()) - len(early)
    return Calls(**columns, thread=columns["group"] // stretch, unpaired=unpaired)


def _restarted(columns: dict[str, Array], machine: str) -> Array:
    """The numbers of calls, where one that the kernel restarts keeps its own, as its thread waits for the same.

    A freeze or a signal ends a wait with a time limit, and the kernel goes on with it by `restart_syscall`. Where the
    call before it was not seen, a time limit that is over shows a futex: no other restarted call returns that.
    """
    group, number, result = columns["group"], columns["number"], columns["result"]
    again = number == number_of("restart_syscall", machine)
    follows = again.copy()
    follows[:1] = False
    follows[1:] &= (group[1:] == group[:-1]) & (result[:-1] == RESTARTS)
    first = np.maximum.accumulate(np.where(follows, 0, np.arange(len(number))))
    found = number[first]
    still = found == number_of("restart_syscall", machine)
    return np.where(still & again & (result == TIMED_OUT), number_of("futex", machine), found)


def _side(recording: Recording, people: People, spans: Spans, name: str) -> tuple[Array, ...]:
    """The enters or the exits of members' threads: group, time, number, result, CPU."""
    table = recording.samples.get(name)
    if table is None:
        return tuple(np.empty(0, kind) for kind in ("i8", "i8", "i4", "f8", "i4"))
    thread, span = people.number(table["tid"]), spans.of(table["time"])
    kept = np.flatnonzero((thread >= 0) & (span >= 0))
    group = thread[kept] * len(spans.begins) + span[kept]
    result = table["ret"][kept].astype(float) if "ret" in table else np.full(len(kept), np.nan)
    return group, table["time"][kept], table["id"][kept], result, table["cpu"][kept]


def waits(group: Array, times: Array, is_deep: Array, calls: Calls, keys: Keys, machine: str) -> pd.Categorical:
    """In what threads of these groups were blocked at these times.

    A thread that is blocked outside of any call, so that no signal ends it, waits within a page fault; this shows
    only where calls were recorded.
    """
    if not len(calls.group):
        return pd.Categorical([UNKNOWN] * len(times), categories=pd.Index([UNKNOWN], dtype="str"))
    at = keys.last_before(keys.of(calls.group, calls.begins), group, times)
    within = (at >= 0) & (calls.ends[at] >= times)
    numbers = np.where(within, calls.number[at], np.where(is_deep & (at >= 0), -2, -1))
    codes, unique = pd.factorize(numbers)
    words = [_word(int(number), machine) for number in unique]
    return categories(codes, words)


def _word(number: int, machine: str) -> str:
    if number < 0:
        return FAULT if number == -2 else UNKNOWN
    name = syscall_name(number, machine)
    return wait_of(name)
