"""The time of CPUs and of members, cheap enough to be read at both edges of every slice."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from castmates.counters.edges import BetweenEdges
from castmates.counters.proc.procstat import ENDED, UNWAITED
from castmates.linux.host import cpu_ticks
from castmates.linux.processes import (
    TICK_S,
    cpu_ns_of_process,
    living,
    tree_of,
    waited_ns_of,
    waits_are_counted,
)
from castmates.protocols import Sample

# Columns of a "cpuN" line of /proc/stat that make up each metric; guest time is contained in user time.
_CPU_COLUMNS = {"user_s": (1, 2), "system_s": (3,), "idle_s": (4, 5), "irq_s": (6, 7), "steal_s": (8,)}
_BUSY_COLUMNS = (1, 2, 3, 6, 7)
_OFFLINE = "this CPU is offline"
_UNSEEN = "this kernel does not count how long threads wait for a CPU"


@dataclass(slots=True)
class _CputimeEdge:
    """Everything that is read at one edge of a slice."""

    t_ns: int
    cpus: dict[int, list[bytes]]
    members: "dict[str, Spent | None]"  # None where no process is left
    runner_ns: int  # CPU time of this very process


class CpuTime(BetweenEdges[_CputimeEdge]):
    """Counts CPU time between two edges: of CPUs in clock ticks, of members in nanoseconds."""

    name = "cputime"
    every_slice = True

    def __init__(self, cpus: Sequence[int], around: Mapping[str, Sequence[int]] | None = None) -> None:
        self._cpus = tuple(cpus)
        self._around = {place: tuple(beside) for place, beside in (around or {}).items()}
        self._watched = {*self._cpus}.union(*self._around.values())
        self._waits = waits_are_counted()

    def _between(self, opening: _CputimeEdge, closing: _CputimeEdge) -> list[Sample]:
        runner_s = (closing.runner_ns - opening.runner_ns) / 1e9
        samples = [*self._of_cpus(opening, closing), *self._of_neighbours(opening, closing)]
        samples.append(Sample(closing.t_ns, self.name, "runner", "cpu_s", runner_s))
        for member, before in opening.members.items():
            for metric, (value, note) in _differences(before, closing.members[member]).items():
                samples.append(Sample(closing.t_ns, self.name, member, metric, value, note))
        return samples

    def about(self) -> dict[str, str]:
        """Describe what is read and how finely."""
        return {
            "cpu time": f"/proc/stat of CPUs {','.join(map(str, self._cpus))}, in ticks of {TICK_S * 1e3:g} ms;"
            " idle_s contains waiting for input and output",
            "around the launch": ", ".join(f"{len(cpus)} CPUs of {place}" for place, cpus in self._around.items())
            or "no other CPU shares a last-level cache with the launch",
            "members": "process CPU clocks in ns, and what parents waited for in ticks; read_s is between the readings",
            "waited_s": "field 2 of /proc/<pid>/task/<tid>/schedstat of every thread" if self._waits else _UNSEEN,
        }

    def _look(self) -> _CputimeEdge:
        members = {member: spent_by(self._members[member], self._waits) for member in self._active}
        return _CputimeEdge(time.monotonic_ns(), cpu_ticks(self._watched), members, time.process_time_ns())

    def _of_cpus(self, opening: _CputimeEdge, closing: _CputimeEdge) -> list[Sample]:
        samples = []
        for cpu in self._cpus:
            before, after = opening.cpus.get(cpu), closing.cpus.get(cpu)
            for metric, columns in _CPU_COLUMNS.items():
                value = _passed(before, after, columns) if before and after else None
                note = "" if value is not None else _OFFLINE
                samples.append(Sample(closing.t_ns, self.name, f"cpu{cpu}", metric, value, note))
        return samples

    def _of_neighbours(self, opening: _CputimeEdge, closing: _CputimeEdge) -> list[Sample]:
        """Return how busy the CPUs around the launch were, those that are offline left out."""
        samples = []
        for place, beside in self._around.items():
            both = [cpu for cpu in beside if cpu in opening.cpus and cpu in closing.cpus]
            busy = sum(_passed(opening.cpus[cpu], closing.cpus[cpu], _BUSY_COLUMNS) for cpu in both)
            samples.append(Sample(closing.t_ns, self.name, place, "neighbours_busy_s", busy, f"{len(both)} CPUs"))
        return samples


class Spent(NamedTuple):
    """What a member's process tree had of the CPUs, and what it lacked, from its start to one moment."""

    t_ns: int
    cpu_ns: int
    waited_ns: dict[int, int] | None  # by thread: ready to run, on no CPU; None where the kernel does not count it


def spent_by(leader: int, waits: bool = False) -> Spent | None:
    """Add up the CPU time of a process and all its descendants, ended ones included; None where no process is left.

    The clock of a process counts nanoseconds and keeps the time of threads that have ended; children that were waited
    for are in their parent's cutime and cstime. How long threads waited for a CPU adds 9 µs a thread (docs/ledger.md).
    """
    total, first = 0, 0
    waited: dict[int, int] | None = {} if waits else None
    for pid, threads in tree_of(leader):
        if (fields := living(pid)) is None or (own := cpu_ns_of_process(pid)) is None:
            continue
        first = first or time.monotonic_ns()
        total += own + round((int(fields[13]) + int(fields[14])) * TICK_S * 1e9)
        if waited is not None:
            for tid in threads:
                with contextlib.suppress(OSError):
                    waited[tid] = waited_ns_of(pid, tid)
    return Spent(first, total, waited) if first else None


def _passed(before: list[bytes], after: list[bytes], columns: Sequence[int]) -> float:
    # Idle time may run backwards by a tick in the kernel's own books.
    return max(0, sum(int(after[c]) - int(before[c]) for c in columns)) * TICK_S


def _differences(before: Spent | None, after: Spent | None) -> dict[str, tuple[float | None, str]]:
    """Metric -> value and note, with no value where there is none to give."""
    if before is None or after is None:
        return dict.fromkeys(("cpu_s", "waited_s", "read_s"), (None, ENDED))
    cpu_ns = after.cpu_ns - before.cpu_ns
    return {
        "cpu_s": (cpu_ns / 1e9, "") if cpu_ns >= 0 else (None, UNWAITED),
        "waited_s": _waited(before.waited_ns, after.waited_ns),
        "read_s": ((after.t_ns - before.t_ns) / 1e9, ""),
    }


def _waited(before: dict[int, int] | None, after: dict[int, int] | None) -> tuple[float | None, str]:
    if before is None or after is None:
        return None, _UNSEEN
    lost = len(before.keys() - after.keys())
    total = sum(max(0, ns - before.get(tid, 0)) for tid, ns in after.items())
    return total / 1e9, f"a lower bound: {lost} threads ended in the slice" if lost else ""
