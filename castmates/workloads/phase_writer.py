"""The workload's end of a phases file (standard library only, Python 3.10 on)."""

import json
import mmap
import operator
import os
import struct
import threading
from collections.abc import Callable, Sequence
from time import monotonic_ns

from castmates.workloads.phase_file import (
    COUNTER_BYTES,
    COUNTER_SLOT,
    COUNTER_TABLE,
    CUT_AT,
    DROPPED_AT,
    EPOCH,
    HEAD_AT,
    HEADER,
    INSTANT,
    NOTHING,
    OPEN_AT,
    PAYLOAD_BYTES,
    PAYLOAD_LOST,
    PHASE,
    PID_AT,
    RANGE,
    RECORD,
    RECORDS,
    STATUS_AT,
    map_file,
    record_bytes,
    text_at,
)
from castmates.workloads.phase_names import AT_TOP, IN_OTHERS, NAMELESS, NameTable

EPOCH_NAME = "epoch"
OF_NO_THREAD = -1  # a range of which the thread is not known
_COUNT = struct.Struct("q")


class Begun:
    """What has begun and not ended; each phase makes one, so it has no more than the file needs."""

    __slots__ = ("begin_ns", "counts", "epoch", "marked", "name", "payload", "step", "thread", "type")
    counts: Sequence[int | None]

    def __init__(
        self, type_: int, name: int, step: int, payload: bytes | None, epoch: int, begin_ns: int = 0, thread: int = 0
    ) -> None:
        self.type, self.name, self.step, self.epoch = type_, name, step, epoch
        self.payload = payload  # None: it was too long
        self.begin_ns, self.thread = begin_ns, thread  # 0: whichever ends it
        self.marked, self.counts = False, ()


class Handle(Begun):
    """A range or an epoch: `start` returns it, and `end` takes it in any function and any thread."""

    __slots__ = ("around", "writer")
    around: int  # of an epoch: the one around it
    writer: "Writer | None"  # whose it is until it ends


class Writer:
    """The workload's end of a phases file; every call does nothing without a listener."""

    _memory: mmap.mmap

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.listened_to = self.keeps_ranges = False  # the latter: whether what is no phase of a step is wanted
        if path is None:
            return
        memory = map_file(path, writable=True)
        _, _, capacity, owner, self._counters, self._head, _, domains, _ = HEADER.unpack_from(memory)
        if owner not in (0, os.getpid()) and _lives(owner):  # a parent that writes, or an older sister
            memory.close()
            return
        self._memory, self.listened_to, self.keeps_ranges = memory, True, domains > 0
        self._words = memoryview(memory).cast("q")
        self._halves = memoryview(memory).cast("I")
        self._halves[PID_AT] = os.getpid()
        self._last_slot, self._size = capacity - 1, record_bytes(self._counters)
        self._epoch = NOTHING
        self._lock = threading.Lock()
        self._names = NameTable(memory, self._lock)
        self._numbers = self._names.numbers
        self._threads = threading.local()
        self._written_to = False  # by any thread; its number would not do: one that ended leaves it to the next
        wanted = [text_at(memory, COUNTER_TABLE + COUNTER_SLOT * one, COUNTER_BYTES) for one in range(self._counters)]
        self._read = self._counting(wanted) if wanted else None

    def begin(
        self, name: str, step: int | None = None, marked: bool = False, domain: str = "", payload: object = None
    ) -> None:
        """Begin a phase inside the one of its domain that this thread is in."""
        if not self.listened_to or (domain and not self.keeps_ranges):
            return
        stack = self._stack_of(domain) if domain else self._stack()
        outer = stack[-1].name if stack else self._names.top_of(domain) if domain else self._threads.outer
        known = self._numbers.get((outer, name))
        if known is None:
            known = self._names.phase(outer, name)
        if step is None:
            number = stack[-1].step if stack else NOTHING
        else:
            number = step if type(step) is int and 0 <= step < 2**63 else whole_number(step)
        text = b"" if payload is None else self._payload(payload)
        begun = Begun(PHASE, known, number, text, self._epoch)
        begun.marked = marked
        if self._read:
            begun.counts = self._read()
        stack.append(begun)
        begun.begin_ns = monotonic_ns()

    def end(self, domain: str = "") -> None:
        """End the phase that was begun last in this domain and thread, and marked ones inside it."""
        if not self.listened_to:
            return
        counts, now = self._read() if self._read else (), monotonic_ns()
        # A thread that has begun nothing is not the first that writes.
        stack: list[Begun] = self._stack_of(domain) if domain else getattr(self._threads, "stack", [])
        while stack:
            ended = stack.pop()
            self._write(ended, now, counts)
            if not ended.marked:
                return

    def mark(self, name: str | None, step: int | None = None) -> None:
        """End the phase that was marked last in this thread, and begin this one."""
        if not self.listened_to:
            return
        stack: list[Begun] = getattr(self._threads, "stack", [])  # who ends nothing is not the first that writes
        if stack and stack[-1].marked:
            counts, now = self._read() if self._read else (), monotonic_ns()
            self._write(stack.pop(), now, counts)
        if name is not None:
            self.begin(name, step, marked=True)

    def record(self, name: str, begin_ns: int, end_ns: int, step: int | None = None) -> None:
        """Write a phase of which the times are known already."""
        if not self.listened_to:
            return
        stack = self._stack()
        outer = stack[-1].name if stack else self._threads.outer
        known = self._numbers.get((outer, name))
        if known is None:
            known = self._names.phase(outer, name)
        self._write(Begun(PHASE, known, whole_number(step), b"", NOTHING, begin_ns), end_ns)

    def start(self, name: str, step: int | None = None, domain: str = "", payload: object = None) -> Handle | None:
        """Begin a range that any thread may end; it lies in no phase, and none lies in it."""
        if not self.keeps_ranges:
            return None
        known = self._names.other(RANGE, domain, name)
        return self._begun(Handle(RANGE, known, whole_number(step), self._payload(payload), self._epoch))

    def finish(self, handle: Handle | None) -> None:
        """End a range or an epoch that was begun before."""
        if not self.keeps_ranges or handle is None:
            return
        now = monotonic_ns()
        with self._lock:
            mine, handle.writer = handle.writer is self, None
            if mine:
                self._words[OPEN_AT] -= 1
                if handle.type == EPOCH:
                    self._epoch = handle.around
        if mine:
            self._write(handle, now)
        else:
            self._names.complain("handle", "A range was ended that has ended already; it is recorded once")

    def instant(self, name: str, step: int | None = None, domain: str = "", payload: object = None) -> None:
        """Note that something happens at this moment, inside the phase of the domain that this thread is in."""
        if not self.keeps_ranges:
            return
        now, stack = monotonic_ns(), self._stack_of(domain) if domain else getattr(self._threads, "stack", ())
        outer, number = (stack[-1].name, stack[-1].step) if stack else (AT_TOP, NOTHING)
        known = NAMELESS if outer == NAMELESS else self._names.other(INSTANT, domain, name, outer)
        number = number if step is None else whole_number(step)
        self._write(Begun(INSTANT, known, number, self._payload(payload), self._epoch, now), now)

    def epoch(self, number: int) -> Handle | None:
        """Begin an epoch, which lasts until its handle is finished: what begins meanwhile is part of it."""
        if not self.keeps_ranges:
            return None
        handle = Handle(EPOCH, self._names.other(EPOCH, "", EPOCH_NAME), NOTHING, b"", whole_number(number))
        with self._lock:
            handle.around, self._epoch = self._epoch, handle.epoch
        return self._begun(handle)

    def range(self, name: str, begin_ns: int, end_ns: int, step: int | None = None, domain: str = "") -> None:
        """Write a range of which the times are known already, and the thread is not."""
        if self.keeps_ranges:
            known = self._names.other(RANGE, domain, name)
            self._write(Begun(RANGE, known, whole_number(step), b"", self._epoch, begin_ns, OF_NO_THREAD), end_ns)

    def miss(self, phases: int) -> None:
        """Report that so many phases could not be recorded."""
        if self.listened_to:
            with self._lock:
                self._words[DROPPED_AT] += phases

    def _begun(self, handle: Handle) -> Handle:
        with self._lock:
            self._words[OPEN_AT] += 1
        handle.writer, handle.thread, handle.begin_ns = self, threading.get_native_id(), monotonic_ns()
        return handle

    def _write(self, ended: Begun, end_ns: int, counts: Sequence[int | None] = ()) -> None:
        """Write a record, and publish it."""
        flags, text, memory = ended.type, ended.payload, self._memory
        if text is None:
            flags, text = flags | PAYLOAD_LOST, b""
        try:
            end_thread = self._threads.number
        except AttributeError:
            end_thread = self._threads.number = threading.get_native_id()
        thread = ended.thread or end_thread
        if thread == OF_NO_THREAD:
            thread = end_thread = 0
        with self._lock:
            if ended.name < 0:
                self._words[DROPPED_AT] += 1
                return
            head = self._head
            at = RECORDS + self._size * (head & self._last_slot)
            RECORD.pack_into(
                memory, at, ended.begin_ns, end_ns, ended.step, ended.epoch, ended.name, flags, thread, end_thread,
                len(text), 0, 0,
            )  # fmt: skip
            at += RECORD.size
            if self._counters:
                self._write_counts(at, ended.counts, counts)
                at += 8 * self._counters
            if text:
                memory[at : at + len(text)] = text
            # Assigning to a memoryview stores all eight bytes at once; pack_into zeroes them first.
            self._head = self._words[HEAD_AT] = head + 1

    def _write_counts(self, at: int, before: Sequence[int | None], after: Sequence[int | None]) -> None:
        for place in range(self._counters):
            one, other = before[place] if before else None, after[place] if after else None
            count = NOTHING if one is None or other is None or other < one else other - one
            _COUNT.pack_into(self._memory, at + 8 * place, count)

    def _stack(self) -> list[Begun]:
        """What this thread has begun and not ended, of no domain."""
        try:
            return self._threads.stack  # type: ignore[no-any-return]
        except AttributeError:
            with self._lock:
                self._threads.outer = IN_OTHERS if self._written_to else AT_TOP
                self._written_to = True
            self._threads.stack = stack = list[Begun]()
            return stack

    def _stack_of(self, domain: str) -> list[Begun]:
        """What this thread has begun in a domain that has a name, and not ended."""
        stacks: dict[str, list[Begun]] | None = getattr(self._threads, "stacks", None)
        if stacks is None:
            self._threads.stacks = stacks = {}
        return stacks.setdefault(domain, [])

    def _payload(self, payload: object) -> bytes | None:
        """A payload as the file has it; None for one that is too long or cannot be written."""
        if payload is None or not self.keeps_ranges:
            return b""
        try:
            text = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"), default=str)
            data = text.encode(errors="replace")
        except (TypeError, ValueError, RecursionError) as problem:
            self._names.complain("payload", f"A payload cannot be written ({problem}); the range is kept without it")
        else:
            if len(data) <= PAYLOAD_BYTES:
                return data
            self._names.complain(
                "payload",
                f"The payload {text[:40]!r}… has {len(data)} bytes and at most {PAYLOAD_BYTES} are kept; the range is "
                "kept without it",
            )
        with self._lock:
            self._words[CUT_AT] += 1
        return None

    def _counting(self, events: list[str]) -> Callable[[], Sequence[int | None]]:
        """Open the counters and return what reads them all; how each fares stands in the file."""
        from castmates.workloads.phase_counts import PhaseCounts

        def tell(number: int, status: int, flags: int) -> None:
            at = (COUNTER_TABLE + COUNTER_SLOT * number + STATUS_AT) // 4
            self._halves[at + 1] = flags
            self._halves[at] = status

        return PhaseCounts(events, tell).read


def whole_number(step: int | None) -> int:
    """A step, or an epoch, as the file takes it."""
    try:
        number = NOTHING if step is None else operator.index(step)
    except TypeError:
        return NOTHING
    return number if 0 <= number < 2**63 else NOTHING


def _lives(pid: int) -> bool:
    """Whether a process runs, also another user's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
