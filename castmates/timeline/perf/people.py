"""Who is who in a recording: the threads of members, and what the others are called."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.timeline.cells import categories
from castmates.timeline.perf.reading import Recording

Array = npt.NDArray[Any]
IDLE, UNKNOWN = "idle", "unknown"


class People:
    """The threads of members, numbered from 0 in the order of their tids."""

    def __init__(self, recording: Recording, members: Mapping[int, str]) -> None:
        self._tasks = recording.tasks
        self._members = _with_children(recording, members)
        processes = recording.tasks.processes
        mine = sorted(tid for tid, pid in processes.items() if tid > 0 and pid in self._members)
        self.tids = np.array(mine, np.int64)
        self._outside = _numbers_outside(recording)

    def __len__(self) -> int:
        return len(self.tids)

    def number(self, tids: Array) -> Array:
        """The numbers of threads, -1 for those of no member."""
        if not len(self.tids):
            return np.full(len(tids), -1)
        places = np.minimum(np.searchsorted(self.tids, tids), len(self.tids) - 1)
        return np.where(self.tids[places] == tids, places, -1)

    def here(self, pids: Array) -> Array:
        """Threads as perf numbers them, from the numbers in the scheduler's own events: a container's differ."""
        if not self._outside:
            return pids
        return pd.Series(pids).map(self._outside).fillna(pd.Series(pids)).to_numpy(np.int64)

    def pid(self, number: int) -> int:
        """The process of a thread."""
        return self._tasks.processes[int(self.tids[number])]

    def member(self, number: int) -> str:
        """The member to which a thread belongs."""
        return self._members[self.pid(number)]

    def name(self, number: int) -> str:
        """The name of a thread."""
        return self._tasks.name(int(self.tids[number]))

    @cached_property
    def members(self) -> list[str]:
        """The member of each thread."""
        return [self.member(number) for number in range(len(self))]

    def labels(self, tids: Array) -> pd.Categorical:
        """What threads are called for others: the member's name, or the thread's own; "" for -1."""
        codes, unique = pd.factorize(tids)
        numbers = self.number(unique)
        words = [self._label(int(tid), int(number)) for tid, number in zip(unique, numbers, strict=True)]
        return categories(codes, words)

    def _label(self, tid: int, number: int) -> str:
        if tid < 0:
            return ""
        if number >= 0:
            return self.members[number]
        return IDLE if tid == 0 else self._tasks.name(tid) or UNKNOWN


def _with_children(recording: Recording, members: Mapping[int, str]) -> dict[int, str]:
    """The members' processes, with all that they start."""
    found = dict(members)
    parents = recording.tasks.parents
    for pid in parents:
        line = [pid]
        while line[-1] not in found and line[-1] in parents and len(line) <= len(parents):
            line.append(parents[line[-1]])
        if member := found.get(line[-1]):
            found.update(dict.fromkeys(line, member))
    return found


def _numbers_outside(recording: Recording) -> dict[int, int]:
    """Threads' numbers in the kernel's own events -> in perf's records, where they differ: perf ran in a container."""
    table = recording.samples.get("sched:sched_switch")
    if table is None:
        return {}
    pairs = table["prev_pid"].astype(np.int64) << 32 | table["tid"]
    return {pair >> 32: pair & 0xFFFFFFFF for pair in pd.unique(pairs).tolist() if pair >> 32 != pair & 0xFFFFFFFF}
