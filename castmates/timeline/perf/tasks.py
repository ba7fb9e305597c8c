"""What is noted while records are read piece by piece: tasks, losses, and until when all of it is there."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.timeline.perf.records import Piece

_NAME = 16  # bytes of a thread's name


@dataclass
class Tasks:
    """The tasks of a recording, by the numbers that perf saw."""

    processes: dict[int, int] = field(default_factory=dict)  # thread -> its process
    names: dict[int, str] = field(default_factory=dict)  # thread -> its last name
    comms: dict[int, str] = field(default_factory=dict)  # the same, as the scheduler's own events have it
    irqs: dict[int, str] = field(default_factory=dict)  # names of interrupts
    births: dict[int, int] = field(default_factory=dict)  # thread -> when it was made
    ends: dict[int, int] = field(default_factory=dict)  # thread -> when it ended
    parents: dict[int, int] = field(default_factory=dict)  # process -> the process that made it

    def seen(self, who: npt.NDArray[np.uint64]) -> None:
        """Note whose threads these are; each word has a process in its lower half and a thread in its upper one."""
        for word in pd.unique(who).tolist():
            self.processes.setdefault(word >> 32, word & 0xFFFFFFFF)

    def take(self, piece: Piece, rows: npt.NDArray[Any], is_name: bool, is_birth: bool) -> None:
        """Take records of threads' names, begins and ends; there are few, so one after the other."""
        for row in rows.tolist():
            begin, end = int(piece.begins[row]), int(piece.ends[row])
            if is_name:
                self._name(piece, begin, end)
            elif end >= begin + 4:
                self._task(piece, begin, is_birth)

    def end(self, tid: int) -> int | None:
        """When a thread ended; None where it did not, or another one was given its number since."""
        end = self.ends.get(tid)
        return None if end is None or end < self.births.get(tid, 0) else end

    def name(self, tid: int) -> str:
        """A thread's name, as far as it is known."""
        return self.names.get(tid) or self.comms.get(tid, "")

    def _name(self, piece: Piece, begin: int, end: int) -> None:
        if end < begin + 3:
            return
        word = int(piece.words[begin + 1])
        text = piece.words[begin + 2 : min(end, begin + 2 + _NAME // 8)].tobytes()
        self.names[word >> 32] = text.split(b"\0")[0].decode(errors="replace")
        self.processes.setdefault(word >> 32, word & 0xFFFFFFFF)

    def _task(self, piece: Piece, begin: int, is_birth: bool) -> None:
        """A record of pid, ppid, tid, ptid and a time."""
        parents, threads, time = (int(word) for word in piece.words[begin + 1 : begin + 4])
        pid, parent, tid, by = parents & 0xFFFFFFFF, parents >> 32, threads & 0xFFFFFFFF, threads >> 32
        self.processes[tid] = pid
        if not is_birth:
            self.ends[tid] = max(time, self.ends.get(tid, 0))
            if pid != parent:  # its birth may lie before the recording
                self.parents.setdefault(pid, parent)
            return
        if time:  # perf notes the threads that it finds with a time of 0
            self.births[tid] = min(time, self.births.get(tid, time))
        if pid != parent:
            self.parents[pid] = parent
        if tid not in self.names and (name := self.name(by)):
            self.names[tid] = name


Array = npt.NDArray[Any]


class Latest:
    """The last record of each CPU: since then records of its buffer were lost, where some were."""

    def __init__(self) -> None:
        self._before = np.zeros(1, np.int64)  # the latest time by CPU + 1, of the pieces that are done
        self._parts: list[tuple[Array, Array, Array]] = []

    def add(self, rows: Array, cpus: Array, times: Array) -> None:
        """Note records of the piece that is being read: their places in it, CPUs (-1: unknown) and times."""
        self._parts.append((rows, cpus, times))

    def since(self, rows: Array, cpus: Array) -> Array:
        """When the last record before each of these places was made on the same CPU; 0 where there was none."""
        found = np.where(cpus + 1 < len(self._before), self._before[np.minimum(cpus + 1, len(self._before) - 1)], 0)
        if not self._parts:
            return found
        all_rows, all_cpus, times = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.lexsort((all_rows, all_cpus))
        keys = (all_cpus[order] + 1) << 32 | all_rows[order]
        places = np.searchsorted(keys, (cpus + 1) << 32 | rows) - 1
        same = (places >= 0) & (all_cpus[order][places] == cpus)
        return np.where(same, times[order][places], found)

    @property
    def least(self) -> int:
        """The time until which every CPU that shows up has records, of the pieces that are done; 0 for none."""
        known = self._before[self._before > 0]
        return int(known.min()) if len(known) else 0

    def end_piece(self) -> None:
        """Go on to the next piece."""
        for _, cpus, times in self._parts:
            if len(cpus) and (most := int(cpus.max()) + 2) > len(self._before):
                self._before = np.append(self._before, np.zeros(min(most, 1 << 20) - len(self._before), np.int64))
            known = cpus + 1 < len(self._before)
            np.maximum.at(self._before, cpus[known] + 1, times[known])
        self._parts.clear()


FINISHED_ROUND = 68


class Sure:
    """Until when a recording has everything, where perf ended by itself: what lay in the buffers of CPUs may be gone.

    perf marks each time that it has emptied the buffers of all CPUs. What came later than the last record before the
    last mark but one may still have lain in a buffer; what came earlier was read.
    """

    def __init__(self) -> None:
        self._latest = 0
        self._marks: list[int] = []  # the last two
        self._parts: list[tuple[Array, Array]] = []

    def add(self, rows: Array, times: Array) -> None:
        """Note records of the piece that is being read: their places in it, and times."""
        self._parts.append((rows, times))

    def end_piece(self, types: Array) -> None:
        """Go on to the next piece; `types` are those of all records of this one."""
        marks = np.flatnonzero(types == FINISHED_ROUND)
        empty = np.empty(0, np.int64)
        rows = np.concatenate([empty, *(rows for rows, _ in self._parts)])
        times = np.concatenate([empty, *(times for _, times in self._parts)])
        order = np.argsort(rows, kind="stable")
        latest = np.maximum.accumulate(np.append(self._latest, times[order]))
        at_marks = latest[np.searchsorted(rows[order], marks)]
        self._marks = [*self._marks, *at_marks[-2:].tolist()][-2:]
        self._latest = int(latest[-1])
        self._parts.clear()

    @property
    def until(self) -> int:
        """The time until which everything was read; 0 where perf has marked too little."""
        return int(self._marks[0]) if len(self._marks) > 1 else 0
