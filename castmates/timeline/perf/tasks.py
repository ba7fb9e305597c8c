"""Which threads and processes a recording knows: their names, whose they are, when they began and ended."""

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
