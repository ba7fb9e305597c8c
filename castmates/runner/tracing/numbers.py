"""Numbers that are read while a trace is recorded, some times a second: of each member, and of each CPU."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from castmates.counters.package.busy_clock import GHZ, BusyClock
from castmates.counters.proc.frequency import DRIVER, Frequency
from castmates.linux.host import cpu_ticks
from castmates.linux.processes import TICK_S, cpu_ns_of_process, resident_bytes
from castmates.protocols import Sample
from castmates.sampler import Sampler

RATE = 10.0  # looks a second
CPU_SHARE, MEMORY, BUSY, CPU_GHZ = "cpu_share", "memory_bytes", "busy_share", "cpu_ghz"
UNITS: Mapping[str, str] = {CPU_SHARE: "CPUs", MEMORY: "B", BUSY: "", CPU_GHZ: "GHz"}
SOURCE = "numbers"
_BUSY, _ALL = (1, 2, 3, 6, 7), (1, 2, 3, 4, 5, 6, 7, 8)  # columns of a CPU's line of /proc/stat
NO_GHZ = "the clock of CPUs: this kernel shows none that changes (virtual machines show the nominal one)"


class Numbers:
    """Reads them in a thread from `start` to `finish`."""

    def __init__(self, cpus: Sequence[int], pids_of: Callable[[str], list[int]]) -> None:
        self._cpus, self._pids_of = tuple(cpus), pids_of
        self._clock = _clock(cpus)
        self._members: tuple[str, ...] = ()
        self._last: tuple[int, dict[str, dict[int, int]], dict[int, list[bytes]]] | None = None
        self._thread: Sampler | None = None

    def start(self, members: Sequence[str]) -> None:
        """Begin to look."""
        self._members, self._last = tuple(members), None
        if self._clock:
            self._clock.attach({})
            self._clock.start(members)
        self._thread = Sampler("numbers", lambda: list(self._look()), 1 / RATE, edges=True)
        self._thread.start()

    def finish(self) -> list[Sample]:
        """End it and return what was read; safe where it never began."""
        thread, self._thread = self._thread, None
        try:
            return thread.finish() if thread else []
        finally:
            if self._clock:
                self._clock.close()

    def _look(self) -> Iterator[Sample]:
        now, ticks = time.monotonic_ns(), cpu_ticks(set(self._cpus))
        spent: dict[str, dict[int, int]] = {}
        for member in self._members:
            pids = self._pids_of(member)
            known = {pid: cpu_ns_of_process(pid) for pid in pids}
            spent[member] = {pid: cpu_ns for pid, cpu_ns in known.items() if cpu_ns is not None}
            yield Sample(now, SOURCE, member, MEMORY, float(sum(resident_bytes(pid) or 0 for pid in pids)))
        last, self._last = self._last, (now, spent, ticks)
        if last is None or now <= last[0]:
            return
        passed = now - last[0]
        for member, after in spent.items():
            used = sum(cpu_ns - last[1].get(member, {}).get(pid, 0) for pid, cpu_ns in after.items())
            yield Sample(now, SOURCE, member, CPU_SHARE, max(0, used) / passed)
        for cpu in self._cpus:
            if (before := last[2].get(cpu)) and (line := ticks.get(cpu)):
                whole = _passed(before, line, _ALL)
                if whole >= TICK_S:
                    yield Sample(now, SOURCE, f"cpu{cpu}", BUSY, min(1.0, _passed(before, line, _BUSY) / whole))
        yield from self._ghz()

    def _ghz(self) -> Iterator[Sample]:
        if self._clock is None:
            return
        for sample in self._clock.stop():
            if sample.value is not None and sample.metric == GHZ:
                yield Sample(sample.t_ns, SOURCE, sample.subject, CPU_GHZ, sample.value)
            elif sample.value is not None and sample.note == DRIVER:
                yield Sample(sample.t_ns, SOURCE, sample.subject, CPU_GHZ, sample.value / 1e3)
        self._clock.start(self._members)


def _clock(cpus: Sequence[int]) -> BusyClock | Frequency | None:
    """What shows how fast CPUs run: the mean over all that ran, or else the moment's."""
    busy = BusyClock(cpus)
    if busy.available() is None:
        return busy
    frequency = Frequency(cpus)
    frequency.start(())
    return frequency if any(sample.note == DRIVER for sample in frequency.stop()) else None


def _passed(before: Sequence[bytes], after: Sequence[bytes], columns: Sequence[int]) -> float:
    return max(0, sum(int(after[column]) - int(before[column]) for column in columns)) * TICK_S
