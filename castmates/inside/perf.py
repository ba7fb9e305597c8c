"""The first method: perf_event_open, counters for each thread there is, inherited by those that come later."""

import errno
import os
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from castmates.inside.events import Event
from castmates.inside.readings import NO_COUNT, WHOLE, Reading, Refusal, for_every_thread
from castmates.linux.perf_event import AGAIN, PAUSE_S, Target, open_event, paranoid

_TRY_NS = 300_000  # in which a group that fits is counted
Row = tuple[int, ...]


class Group(NamedTuple):
    """Events that are counted together and read by one call, in every thread."""

    events: tuple[Event, ...]
    opened: list[tuple[int, ...]]  # descriptors of each thread, the leader's first

    @property
    def size(self) -> int:
        """Bytes of a reading: how many counts, the two times, the counts."""
        return 8 * (3 + len(self.events))

    @property
    def unpack(self) -> Callable[[bytes], Row]:
        """Return the function that takes a reading apart."""
        return struct.Struct(f"={self.size // 8}Q").unpack


class PerfCounters:
    """Counters of this process: of all threads that it has, and of threads and children that they start later."""

    source = "perf_event_open"

    def __init__(self, events: Sequence[Event], *, inherit: bool = True) -> None:
        self.refused: dict[str, Refusal] = {}
        self.notes: dict[str, str] = {}
        self.misses = ""
        self._inherit = inherit
        self._groups: list[Group] = []
        allowed = [found for event in events if (found := self._allowed(event))]
        try:
            for unit in dict.fromkeys(event.attr.unit for event in allowed):
                self._open([event for event in allowed if event.attr.unit == unit])
        except BaseException:
            self.close()
            raise
        self.names = tuple(event.name for group in self._groups for event in group.events)
        self._leaders = self._calls()

    def read(self) -> tuple[int | None, ...]:
        """Read the totals so far: a system call for each group and thread; None where the kernel gives no count."""
        totals: list[int | None] = []
        for size, unpack, leaders in self._leaders:
            rows = _rows(size, unpack, leaders)
            totals += list(map(sum, zip(*rows, strict=True)))[3:] if rows else [None] * (size // 8 - 3)
        return tuple(totals)

    def readings(self) -> tuple[Reading, ...]:
        """Read the totals so far, with the times of all threads added up."""
        found: list[Reading] = []
        for size, unpack, leaders in self._leaders:
            rows = _rows(size, unpack, leaders)
            if rows:
                _, enabled, running, *totals = map(sum, zip(*rows, strict=True))
                found += [Reading(total, enabled, running) for total in totals]
            else:
                found += [Reading(None, 0, 0)] * (size // 8 - 3)
        return tuple(found)

    def close(self) -> None:
        """Close them."""
        for group in self._groups:
            _close(group.opened)
        self._groups, self._leaders = [], []

    def _calls(self) -> list[tuple[int, Callable[[bytes], Row], list[int]]]:
        """What a reading takes: the size and shape of each group, and the leaders of all threads."""
        return [(group.size, group.unpack, [descriptors[0] for descriptors in group.opened]) for group in self._groups]

    def _allowed(self, event: Event) -> Event | None:
        """Try it alone, without the kernel where only that is allowed and makes sense; a refusal is kept."""
        if event.in_kernel_only and not event.kernel:
            why = "it happens in the kernel: in user mode only it would be a false zero"
            self.refused[event.name] = Refusal("not supported", why)
            return None
        try:
            _close([self._open_group((event,), 0)])
            return event
        except PermissionError as error:
            blind = event._replace(kernel=False)
            if not event.in_kernel_only and event.user and event.kernel and self._allowed(blind):
                self.notes[event.name] = "user mode only"
                return blind
            self.refused.setdefault(event.name, explain(event, error))
        except OSError as error:
            self.refused.setdefault(event.name, explain(event, error))
        return None

    def _open(self, events: list[Event]) -> None:
        """Open events of one unit, together if the processor has room for all of them at once."""
        if not self._fits(events) or not self._add(tuple(events)):
            for event in events:
                if not self._add((event,)):
                    self.refused[event.name] = Refusal("not counted", NO_COUNT)

    def _add(self, events: tuple[Event, ...]) -> bool:
        """Open a group on every thread; False where it must be taken apart."""
        try:
            opened, missed = for_every_thread(lambda tid: self._open_group(events, tid), _close)
        except OSError as error:
            self.refused |= {event.name: explain(event, error) for event in events}
            return True
        group = Group(events, opened)
        leaders = [descriptors[0] for descriptors in opened]
        if _rows(group.size, group.unpack, leaders) is None:
            _close(opened)  # who was forked in the midst of the opening inherited a part of the group
            return False
        self._groups.append(group)
        self.misses = self.misses or missed
        return True

    def _fits(self, events: Sequence[Event]) -> bool:
        """Whether they are counted together, all of the time: some other user may hold a counter."""
        try:
            descriptors = self._open_group(tuple(events), 0)
        except OSError:
            return False
        try:
            until = time.thread_time_ns() + (0 if events[0].attr.in_software else _TRY_NS)
            while time.thread_time_ns() < until:
                pass
            group = Group(tuple(events), [descriptors])
            rows = _rows(group.size, group.unpack, descriptors[:1])
        finally:
            _close([descriptors])
        return rows is not None and rows[0][2] >= WHOLE * rows[0][1]

    def _open_group(self, events: tuple[Event, ...], tid: int) -> tuple[int, ...]:
        """Open them on one thread; 0 is the calling one."""
        descriptors: list[int] = []
        try:
            for event in events:
                leader = descriptors[0] if descriptors else -1
                descriptors.append(open_event(event.attr, Target(tid, inherit=self._inherit), leader))
        except BaseException:
            _close([tuple(descriptors)])
            raise
        return tuple(descriptors)


def _rows(size: int, unpack: Callable[[bytes], Row], leaders: Iterable[int]) -> list[Row] | None:
    """Read a group in every thread; None where the kernel holds it for broken in one of them."""
    rows = []
    for fd in leaders:
        for _ in range(AGAIN):
            try:
                raw = os.read(fd, size)
            except ChildProcessError:  # a process that inherits it is starting or ending: a moment later it is whole
                time.sleep(PAUSE_S)
                continue
            except OSError:
                return None
            break
        else:
            return None
        if len(raw) != size:
            return None
        rows.append(unpack(raw))
    return rows


def explain(event: Event, error: OSError) -> Refusal:
    """Turn the kernel's refusal into a sentence with what to do."""
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL):
        return Refusal("not supported", f"this processor or virtual machine has no counter for {event.name}")
    if error.errno in (errno.EACCES, errno.EPERM):
        need = 1 if event.in_kernel_only else 2
        why = f"perf is refused for {event.name} (kernel.perf_event_paranoid is {paranoid()}): set it to {need} or "
        return Refusal("not counted", f"{why}less, or let root run once: castmates doctor --grant")
    if error.errno == errno.ENOSYS:
        return Refusal("not supported", "this kernel or architecture has no perf_event_open that Castmates knows")
    return Refusal("not counted", f"perf failed for {event.name}: {error.strerror}")


def _close(opened: Iterable[Sequence[int]]) -> None:
    for descriptors in opened:
        for fd in descriptors:
            os.close(fd)
