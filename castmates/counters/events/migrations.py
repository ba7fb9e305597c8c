"""Count perf events of each member with perf_event_open, inherited by all its threads and children.

`perf stat --control` would need a process for each member, and its `enable` and `disable` print no counts (perf 6.1,
with or without -I). So the counters are opened here and read at both edges of a window: no helper to die or wait for.
"""

import errno
import os
import struct
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from castmates.linux.perf_event import EXCLUDE_KERNEL, TIMES, Attr, Target, open_event, paranoid
from castmates.linux.perf_event import HARDWARE as _HARDWARE
from castmates.linux.perf_event import SOFTWARE as _SOFTWARE
from castmates.linux.processes import Family, threads_of
from castmates.protocols import Sample

FULLY_COUNTED = 0.95  # what ran for less of its time is no measurement of all of it


class Event(NamedTuple):
    """How the kernel knows an event, and what one count is worth."""

    kind: int
    config: int
    scale: float = 1.0
    in_kernel_only: bool = False  # happens in the kernel, so that a count without the kernel would be a false zero


EVENTS = {
    "task_clock_s": Event(_SOFTWARE, 1, scale=1e-9),
    "page_faults": Event(_SOFTWARE, 2),
    "context_switches": Event(_SOFTWARE, 3, in_kernel_only=True),
    "cpu_migrations": Event(_SOFTWARE, 4, in_kernel_only=True),
    "major_faults": Event(_SOFTWARE, 6),
    "cycles": Event(_HARDWARE, 0),
    "instructions": Event(_HARDWARE, 1),
    "cache_references": Event(_HARDWARE, 2),
    "cache_misses": Event(_HARDWARE, 3),
}
SOFTWARE = tuple(name for name, event in EVENTS.items() if event.kind == _SOFTWARE)
HARDWARE = tuple(name for name, event in EVENTS.items() if event.kind == _HARDWARE)


class Reading(NamedTuple):
    """A count and, in ns, how long it was wanted and how long it really counted."""

    total: int
    enabled: int
    running: int


class PerfEvent:
    """Counts perf events between two edges; an event that cannot be counted gives samples without a value."""

    name = "perf"
    inside_windows = True  # what is inherited costs at each context switch

    def __init__(self, events: Sequence[str] = SOFTWARE) -> None:
        self._events = tuple(events)
        self._counters: dict[tuple[str, str], list[int]] = {}
        self._notes: dict[tuple[str, str], str] = {}
        self._opening: dict[tuple[str, str], Reading | None] = {}
        self._late: list[str] = []

    @staticmethod
    def available(event: str = "task_clock_s") -> str | None:
        """Say in one sentence why this event cannot be counted here; None where it can."""
        try:
            fd, _ = _open_counter(event, 0)
        except OSError as error:
            return explain(event, error)
        os.close(fd)
        return None

    def attach(self, members: Mapping[str, int]) -> None:
        """Open the counters on every thread the members have so far; later threads and children inherit them."""
        for member, pid in members.items():
            before = _threads(pid)
            for event in self._events:
                self._open(member, event, before)
            if _threads(pid) - before:
                self._late.append(member)

    def start(self, active: Sequence[str]) -> None:
        """Read the opening edge."""
        self._opening = {(m, event): self._read((m, event)) for m in active for event in self._events}

    def stop(self) -> list[Sample]:
        """Read the closing edge and return the differences."""
        closing = {key: self._read(key) for key in self._opening}
        now = time.monotonic_ns()
        samples = [Sample(now, self.name, *share) for share in self._running(closing)]
        for (member, event), before in self._opening.items():
            value, note = difference(before, closing[member, event])
            scaled = None if value is None else value * EVENTS[event].scale
            notes = [n for n in (note, self._notes.get((member, event), "")) if n]
            why = notes[-1] if value is None and notes else "; ".join(notes)
            samples.append(Sample(now, self.name, member, event, scaled, why))
        self._opening = {}
        return samples

    def close(self) -> None:
        """Close all counters."""
        for fds in self._counters.values():
            for fd in fds:
                os.close(fd)
        self._counters, self._opening = {}, {}

    def about(self) -> dict[str, str]:
        """Say which events are counted, how, and what may be missing."""
        said = {
            "events": ", ".join(self._events),
            "how": "perf_event_open on every thread, inherited, read at both edges",
            "cost": "each context switch of a member takes longer by up to a few microseconds",
            "perf_event_paranoid": paranoid(),
        }
        if self._late:
            said["started threads while counters were opened"] = ", ".join(self._late)
        return said | {f"{member} {event}": note for (member, event), note in self._notes.items()}

    def _open(self, member: str, event: str, threads: set[int]) -> None:
        """Open one event on these threads, or note why it cannot be had."""
        fds: list[int] = []
        note = "" if threads else "the member had ended before its counters were opened"
        for tid in sorted(threads):
            try:
                fd, note = _open_counter(event, tid)
            except ProcessLookupError:
                continue
            except OSError as error:
                note = explain(event, error)
                break
            fds.append(fd)
        self._counters[member, event] = fds
        if note:
            self._notes[member, event] = note

    def _running(self, closing: Mapping[tuple[str, str], Reading | None]) -> list[tuple[str, str, float]]:
        """For each member the share of its time for which the least counted event was counted."""
        shares: dict[str, float] = {}
        for (member, event), before in self._opening.items():
            share = running_share(before, closing[member, event])
            if share is not None:
                shares[member] = min(share, shares.get(member, 1.0))
        return [(member, "running_share", share) for member, share in shares.items()]

    def _read(self, key: tuple[str, str]) -> Reading | None:
        """Add up the counters of one member and event; None where there are none."""
        totals = [0, 0, 0]
        for fd in self._counters.get(key, []):
            raw = os.read(fd, 24)
            if len(raw) < 24:
                return None
            totals = [total + part for total, part in zip(totals, struct.unpack("3Q", raw), strict=True)]
        return Reading(*totals) if self._counters.get(key) else None


def running_share(before: Reading | None, after: Reading | None) -> float | None:
    """The share of the time it was wanted for that an event was counted; None where it was not wanted."""
    if before is None or after is None or after.enabled <= before.enabled:
        return None
    return (after.running - before.running) / (after.enabled - before.enabled)


def difference(before: Reading | None, after: Reading | None) -> tuple[float | None, str]:
    """Subtract two edges; "not supported", "not counted" and 0 are three different answers."""
    if before is None or after is None:
        return None, "not supported"
    count, enabled, running = (b - a for a, b in zip(before, after, strict=True))
    if enabled <= 0:
        return None, "not counted: the member was on no processor in this window"
    if running <= 0:
        return None, "not counted: other events held the counters for the whole window"
    if running < enabled * FULLY_COUNTED:
        return None, f"not counted: the counters were lent for only {running / enabled:.1%} of the member's time"
    if running < enabled * 0.999:
        return count * enabled / running, f"scaled: counted for {running / enabled:.1%} of the member's time"
    return float(count), ""


def explain(event: str, error: OSError) -> str:
    """Turn the kernel's refusal into a sentence that says what to do."""
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return f"not supported: this processor or virtual machine has no counter for {event}"
    if error.errno in (errno.EACCES, errno.EPERM):
        need = 1 if EVENTS[event].in_kernel_only else 2
        return (
            f"perf is refused for {event} (kernel.perf_event_paranoid is {paranoid()}): set it to {need} or less,"
            " or give CAP_PERFMON; inside a container its seccomp profile must allow perf_event_open too"
        )
    if error.errno == errno.ENOSYS:
        return "perf is missing: this kernel or architecture has no perf_event_open that Castmates knows"
    return f"perf failed for {event}: {error.strerror}"


def _threads(pid: int) -> set[int]:
    """List all threads of a member's process tree."""
    return {tid for process in Family(pid).living() for tid in threads_of(process.pid)}


def _open_counter(event: str, tid: int) -> tuple[int, str]:
    """Open one inherited counter, without the kernel's part where only that is allowed and makes sense."""
    attr = Attr(EVENTS[event].kind, EVENTS[event].config)
    target = Target(tid, inherit=True)
    try:
        return open_event(attr, target, read_format=TIMES), ""
    except PermissionError:
        if EVENTS[event].in_kernel_only:
            raise
    return open_event(attr._replace(exclude=EXCLUDE_KERNEL), target, read_format=TIMES), "user mode only"
