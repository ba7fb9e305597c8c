"""The clock of the launch's CPUs while they run: APERF over MPERF, where perf's `msr` unit counts them.

Unlike scaling_cur_freq, which is a moment's, it is the mean over all that ran between the edges. MPERF counts at the
time stamp counter's rate while a CPU is not halted, APERF at its real clock.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from castmates.counters.edges import BetweenEdges
from castmates.counters.events.groups import Reading, explain
from castmates.counters.package.sources import Unit
from castmates.errors import CastmatesError
from castmates.linux.kernel_files import read_int
from castmates.linux.perf_event import PERF_DEVICES, Opener, Target, open_event, read_group
from castmates.protocols import Sample

NAME = "busy_clock"
GHZ, RUNNING = "busy_ghz", "unhalted_s"
EVENTS = ("tsc", "aperf", "mperf")
NONE_HERE = "this kernel or machine counts no APERF and MPERF through perf (virtual machines have none)"
Clocks = dict[int, dict[str, Reading]]  # CPU -> event -> count


class BusyClock(BetweenEdges[Clocks]):
    """Reads each CPU's mean clock while it ran, whoever ran there."""

    name = NAME

    def __init__(self, cpus: Sequence[int], root: Path = Path("/"), opener: Opener = open_event) -> None:
        self._cpus, self._opener = tuple(cpus), opener
        self._unit = msr_unit(root)
        self._fds: dict[int, dict[str, int]] = {}  # CPU -> event -> descriptor
        self._refused = ""

    def available(self) -> str | None:
        """Explain why there is nothing to count; None where there is something."""
        try:
            if self._unit is None or any(self._unit.named(event) is None for event in EVENTS):
                return NONE_HERE
            self.attach({})
        except CastmatesError as problem:  # of a kernel whose files castmates cannot read
            return str(problem)
        why = self._refused
        self.close()
        return why or None

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002 (a clock is a CPU's)
        """Open the counters of every CPU; none where one is refused."""
        self.close()
        if self._unit is None:
            return
        attrs = {event: self._unit.attr(terms) for event in EVENTS if (terms := self._unit.named(event)) is not None}
        try:
            for cpu in self._cpus:
                self._fds[cpu] = {}
                for event, attr in attrs.items():
                    self._fds[cpu][event] = self._opener(attr, Target(-1, cpu), -1, 0)
        except OSError as error:
            self.close()
            self._refused = str(explain(error))

    def _between(self, opening: Clocks, closing: Clocks) -> list[Sample]:
        """A CPU that was halted all the time had no clock."""
        now = time.monotonic_ns()
        samples = []
        for cpu, after in closing.items():
            if (before := opening.get(cpu)) is None:
                continue
            tsc, aperf, mperf = (after[event].count - before[event].count for event in EVENTS)
            enabled_s = (after["tsc"].enabled - before["tsc"].enabled) / 1e9
            rate = tsc / enabled_s if enabled_s > 0 else 0.0
            running_s = mperf / rate if rate > 0 else 0.0
            ghz = aperf / mperf * rate / 1e9 if mperf > 0 and rate > 0 else None
            samples.append(Sample(now, NAME, f"cpu{cpu}", RUNNING, running_s))
            samples.append(Sample(now, NAME, f"cpu{cpu}", GHZ, ghz, "" if ghz is not None else "it did not run"))
        return samples

    def close(self) -> None:
        """Let go of the counters; safe to call twice."""
        for fds in self._fds.values():
            for fd in fds.values():
                os.close(fd)
        self._fds = {}
        super().close()

    def about(self) -> dict[str, str]:
        """Describe what is counted."""
        words = "APERF ÷ MPERF × time stamp counter of each CPU, whoever ran there"
        return {GHZ: f"none: {self._refused}" if self._refused else words}

    def _look(self) -> Clocks:
        edge = {}
        for cpu, fds in self._fds.items():
            try:
                numbers = {event: read_group(fd, 1) for event, fd in fds.items()}
            except OSError:  # the CPU went offline, for instance
                continue
            known = {event: Reading(raw[2], raw[0], raw[1]) for event, raw in numbers.items() if raw is not None}
            if len(known) == len(EVENTS):
                edge[cpu] = known
        return edge


def msr_unit(root: Path) -> Unit | None:
    """Return perf's unit of model-specific registers, which has no cpumask: it counts on any CPU."""
    folder = root / PERF_DEVICES / "msr"
    kind = read_int(folder / "type")
    return None if kind is None else Unit("msr", folder, kind, ())
