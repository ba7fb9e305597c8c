"""By what rows of a recording are grouped: the threads of members, and the stretches in which nothing was lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.errors import CastmatesError
from castmates.timeline.model import categories
from castmates.timeline.perf.reading import Recording, Table

Array = npt.NDArray[Any]


class Keys:
    """One number for a group and a time in it, so that many searches in many groups are a single one."""

    def __init__(self, first: int, last: int, groups: int) -> None:
        self.first = first
        self._bits = max(1, (last - first + 1).bit_length())
        if self._bits + max(1, groups).bit_length() > 62:
            raise CastmatesError("the times in the recording of perf lie years apart: it is damaged; record it again")

    def of(self, groups: Array, times: Array) -> Array:
        """The keys of times in groups; times must lie within the recording."""
        return np.asarray(groups.astype(np.int64) << self._bits | (np.maximum(times, self.first) - self.first))

    def last_before(self, keys: Array, groups: Array, times: Array) -> Array:
        """The place of the last of `keys` in the same group that is not after a time; -1 where there is none."""
        places = np.searchsorted(keys, self.of(groups, times), side="right") - 1
        return self._same_group(keys, places, groups)

    def first_after(self, keys: Array, groups: Array, times: Array) -> Array:
        """The place of the first of `keys` in the same group that is after a time; -1 where there is none."""
        places = np.searchsorted(keys, self.of(groups, times), side="right")
        return self._same_group(keys, np.where(places < len(keys), places, -1), groups)

    def _same_group(self, keys: Array, places: Array, groups: Array) -> Array:
        if not len(keys):
            return np.full(len(places), -1)
        return np.where((places >= 0) & (keys[places] >> self._bits == groups), places, -1)


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


Span = tuple[int, int]


@dataclass(frozen=True)
class Spans:
    """Stretches in order, none of which overlap."""

    begins: Array
    ends: Array
    whole: Array  # whether every event was already recorded when it began, so that silence means something

    def of(self, times: Array) -> Array:
        """In which stretch each time lies, -1 for none."""
        if not len(self.begins):
            return np.full(len(times), -1)
        places = np.searchsorted(self.begins, times, side="right") - 1
        return np.where((places >= 0) & (times <= self.ends[places]), places, -1)


def spans_of(recording: Recording, asked: Sequence[Span]) -> Spans:
    """The stretches in which nothing was lost; without any that were asked, all that was recorded."""
    wanted = sorted(asked) or [(recording.first_ns, recording.last_ns)]
    found: list[tuple[int, int, bool]] = []
    losses = lost_ranges(recording)
    for begin, end in wanted:
        at, is_whole = begin, bool(asked)
        for lost_from, lost_to in losses:
            if lost_to <= at or lost_from >= end:
                continue
            if lost_from > at:
                found.append((at, lost_from, is_whole))
            at, is_whole = lost_to, True
        if at < end:
            found.append((at, end, is_whole))
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Spans(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(bool))


def lost_ranges(recording: Recording) -> list[Span]:
    """The ranges in which events of any CPU were lost, joined where they overlap."""
    losses = recording.losses
    found: list[Span] = []
    for begin, end in sorted(zip(losses["since"].tolist(), losses["time"].tolist(), strict=True)):
        begin = min(begin or recording.first_ns, end)
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


class Scope:
    """The rows of members' threads in the stretches; a group is a thread in a stretch: thread * stretches + stretch."""

    def __init__(self, recording: Recording, people: People, spans: Spans) -> None:
        self.recording, self.people, self.spans = recording, people, spans
        self.stretches = len(spans.begins)
        first = min(recording.first_ns, int(spans.begins[0]))  # one earlier is asked for what comes from it on
        last = max(recording.last_ns, int(spans.ends[-1]))
        self.keys = Keys(first - 1, last, max(len(people) * self.stretches, 1 << 16))
        tasks, tids = recording.tasks, people.tids.tolist()
        born = np.array([tasks.births.get(tid, 0) for tid in tids], np.int64).repeat(self.stretches)
        never = np.iinfo(np.int64).max
        died = np.array([never if (end := tasks.end(tid)) is None else end for tid in tids]).repeat(self.stretches)
        # Of each group: when its stretch begins; when its thread is there too; when either ends …
        self.begins = np.tile(spans.begins, len(people))
        self.since = np.maximum(self.begins, born)
        self.ends = np.minimum(np.tile(spans.ends, len(people)), died)
        # … and whether its thread was there and all events were on as the stretch began.
        self.opened = np.tile(spans.whole, len(people)) & (born < self.begins)

    def rows(self, table: Table, tids: Array | None = None) -> tuple[Table, Array]:
        """The rows of members' threads within the stretches, and the group of each; `tids` are of whom they are."""
        thread, span = self.people.number(table["tid"] if tids is None else tids), self.spans.of(table["time"])
        kept, group = (thread >= 0) & (span >= 0), thread * self.stretches + span
        return (table, group) if kept.all() else (table.compress(kept), group[kept])

    def order(self, group: Array, times: Array) -> Array:
        """The order of groups and times; what is equal in both stays as it is."""
        return np.argsort(self.keys.of(group, times), kind="stable")
