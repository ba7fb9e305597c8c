"""Reads occupancy and bandwidth by CPU through a pqos that runs as long as a series does."""

import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from castmates.errors import CastmatesError
from castmates.machine.pqos_tool import Reading, complaint, parse_readings, stop
from castmates.protocols import Held, Sample
from castmates.rdt.pqos.session import PqosSession
from castmates.study.cpus import format_cpu_list

FASTEST = 10.0  # looks a second
LONGEST_S = 24 * 3600
ENDING_S = 5.0
WORDS = {"llc_occupancy": "llc", "mbm_local_bytes": "mbl", "mbm_total_bytes": "mbt"}
KIB, MIB = 1 << 10, 1 << 20
# Column -> our metric, and what one unit is worth; pqos counts in kilobytes and megabytes of 1024.
COLUMNS = {
    "LLC[KB]": ("llc_occupancy", KIB),
    "MBL[MB/s]": ("mbm_local", MIB),
    "MBT[MB/s]": ("mbm_total", MIB),
}
ZERO = "pqos shows 0, which is also what it shows where the hardware has no count"
CUT = "pqos did not list all its CPUs: it was ended during this reading, or left them out"


@dataclass
class _Series:
    """One pqos that runs; a series may be made of several, since every other call interrupts it."""

    process: "subprocess.Popen[bytes]"
    output: IO[bytes]
    errors: IO[bytes]
    began_ns: int


class PqosMonitor:
    """Watches the CPUs of members; where several members share a CPU, what is read is the CPU's and no member's."""

    name = "pqos"

    def __init__(self, session: PqosSession, rate: float) -> None:
        self.session, self.rate = session, min(rate, FASTEST)
        self._subjects: dict[int, str] = {}  # CPU -> who is watched there
        self._running: _Series | None = None
        self._wanted = False
        self._samples: list[Sample] = []
        self._holds = ExitStack()

    def attach(self, members: Mapping[str, Held]) -> None:
        """Begin to watch these members, once, after their launch and after the allocator made its groups."""
        on: dict[int, list[str]] = {}
        for name, held in members.items():
            for cpu in held.cpus:
                on.setdefault(cpu, []).append(name)
        shared = {name for names in on.values() if len(names) > 1 for name in names}
        for cpu, names in on.items():
            self._subjects[cpu] = names[0] if names[0] not in shared else f"cpu{cpu}"
        self.session.pause, self.session.resume = self._pause, self._resume

    def start(self) -> None:
        """Begin a series."""
        self._samples, self._wanted = [], True
        self._resume()

    def stop(self) -> list[Sample]:
        """End the series and return it."""
        self._wanted = False
        self._pause()
        samples, self._samples = self._samples, []
        return samples

    def close(self) -> None:
        """Let go of everything; safe to call twice."""
        self.stop()
        self.session.pause = self.session.resume = lambda: None

    def about(self) -> dict[str, str]:
        """Describe what is read and how."""
        return {
            "monitoring": f"pqos {self.session.version}, interface {self.session.tool.interface}, by CPU",
            "rate": f"{self.rate:g} Hz",
            "events": ", ".join(self._events()),
            "times": "pqos prints seconds only: samples are counted from its start, an interval apart",
            "series": "interrupted whenever masks are read back, because only one pqos may run",
            "occupancy": "of what was filled since the last interruption",
        }

    def _events(self) -> list[str]:
        return [event for event in WORDS if event in self.session.cache.events]

    def _resume(self) -> None:
        """Start pqos where a series is wanted and something can be counted."""
        if not self._wanted or self._running is not None or not self._events() or not self._subjects:
            return
        cpus = format_cpu_list(self._subjects)
        wanted = ";".join(f"{WORDS[event]}:{cpus}" for event in self._events())
        words = ("-u", "csv", "-i", str(round(10 / self.rate)), "-t", str(LONGEST_S), "-m", wanted)
        with ExitStack() as holds:
            holds.enter_context(self.session.tool.alone())
            output = holds.enter_context(tempfile.TemporaryFile())
            errors = holds.enter_context(tempfile.TemporaryFile())
            process = self.session.tool.start(output, errors, *words)
            self._running = _Series(process, output, errors, time.monotonic_ns())
            self._holds = holds.pop_all()

    def _pause(self) -> None:
        """End the pqos that runs, and keep what it has read."""
        series, self._running = self._running, None
        if series is None:
            return
        with self._holds.pop_all():
            failed = series.process.poll()
            if not stop(series.process, signal.SIGINT, ENDING_S):
                raise CastmatesError(f"pqos (process {series.process.pid}) cannot be killed: it hangs in the kernel.")
            series.output.seek(0)
            text = series.output.read().decode(errors="replace")
            if failed:
                series.errors.seek(0)
                why = complaint(text, series.errors.read().decode(errors="replace"))
                raise CastmatesError(f"pqos ended by itself while it was watching (exit {failed}): {why}.")
            span = series.began_ns, time.monotonic_ns()
            self._samples += samples_of(parse_readings(text), self._subjects, span, self.rate)


def samples_of(
    readings: list[Reading], subjects: Mapping[int, str], span: tuple[int, int], rate: float
) -> list[Sample]:
    """Add up CPUs by subject; the first line has no bandwidth yet, since that is a difference."""
    looks: dict[str, int] = {}
    values_of: dict[tuple[int, str, str], list[float | None]] = {}
    for reading in readings:
        number = looks[reading.cpus] = looks.get(reading.cpus, -1) + 1
        subject = subjects.get(int(reading.cpus)) if reading.cpus.isdecimal() else None
        if subject is None:
            continue
        nothing = reading.values.get("LLC[KB]") == 0
        for column, (metric, unit) in COLUMNS.items():
            if column in reading.values and (number or metric == "llc_occupancy"):
                value = None if nothing and not reading.values[column] else reading.values[column] * unit
                values_of.setdefault((number, subject, metric), []).append(value)
    samples, cpus = [], Counter(subjects.values())
    for (number, subject, metric), values in values_of.items():
        known = [value for value in values if value is not None]
        total = sum(known) if len(known) == cpus[subject] else None
        why = CUT if len(values) < cpus[subject] else ZERO
        at = min(span[0] + round(number * 1e9 / rate), span[1])
        samples.append(Sample(at, "pqos", subject, metric, total, "" if total is not None else why))
    return samples
