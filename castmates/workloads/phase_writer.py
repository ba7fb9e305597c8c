"""The workload's end of a phases file (standard library only, Python 3.10 on)."""

import operator
import os
import struct
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from time import monotonic_ns

from castmates.workloads.phase_file import OTHER_THREADS, map_file
from castmates.workloads.phase_handle import Handle
from castmates.workloads.phase_layout import (
    COUNTER_BYTES,
    COUNTER_SLOT,
    COUNTER_TABLE,
    DROPPED_AT,
    FIRST,
    HEAD_AT,
    HEADER,
    NAMES_AT,
    NOTHING,
    PID_AT,
    STATUS_AT,
    Layout,
)

AT_TOP, IN_OTHERS, NAMELESS = -1, -2, -3  # where a phase may lie that lies in no phase of the table
_RECORD, _COUNT = struct.Struct("4q"), struct.Struct("q")

# A phase that has not ended: the number of its name, its step, its begin, the counts there, whether it was marked;
# and in version 2 its payload, None for one that is too long, and its epoch.
Frame = tuple[int, int, int, Sequence[int | None], bool, bytes | None, int]


class Writer:
    """The workload's end of a phases file; every call does nothing without a listener.

    This one is for version 1, which keeps phases of no domain: what range_writer.py keeps beyond them is passed over.
    """

    layout: Layout = FIRST

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._memory = None if path is None else map_file(path, writable=True, layouts=(self.layout,))
        if self._memory is None:
            return
        _, _, capacity, owner, self._counters, self._head, names, *_ = HEADER.unpack_from(self._memory)
        if owner not in (0, os.getpid()) and _lives(owner):  # a parent that writes, or an older sister
            self._memory.close()
            self._memory = None
            return
        self._words = memoryview(self._memory).cast("q")
        self._halves = memoryview(self._memory).cast("I")
        self._halves[PID_AT] = os.getpid()
        self._last_slot, self._size = capacity - 1, self.layout.record_bytes(self._counters)
        self._records = self.layout.records
        self._names: list[str] = [self._name_at(self._slot_of(number)) for number in range(names)]
        self._ids: dict[Hashable, int] = self._known()
        self._lock = threading.Lock()
        self._threads = threading.local()
        self._written_to = False  # by any thread; its number would not do: one that ended leaves it to the next
        self._complained: set[str] = set()
        wanted = [self._text(COUNTER_TABLE + COUNTER_SLOT * one, COUNTER_BYTES) for one in range(self._counters)]
        self._read = self._counting(wanted) if wanted else None

    @property
    def listened_to(self) -> bool:
        """Whether anybody reads what is written."""
        return self._memory is not None

    @property
    def keeps_ranges(self) -> bool:
        """Whether what is no phase is kept too."""
        return False

    def begin(
        self,
        name: str,
        step: int | None = None,
        marked: bool = False,
        domain: str = "",
        payload: object = None,  # noqa: ARG002
    ) -> None:
        """Begin a phase inside the one that this thread is in; version 1 keeps no payload."""
        if self._memory is None or domain:
            return
        stack = self._stack()
        outer = stack[-1][0] if stack else self._threads.outer
        known = self._ids.get((outer, name))
        if known is None:
            known = self._named(outer, name)
        if step is None:
            number = stack[-1][1] if stack else NOTHING
        else:
            number = step if type(step) is int and 0 <= step < 2**63 else whole_number(step)
        stack.append((known, number, monotonic_ns(), self._read() if self._read else (), marked, b"", NOTHING))

    def end(self, domain: str = "") -> None:
        """End the phase that was begun last in this domain and thread, and marked ones inside it."""
        if self._memory is None:
            return
        counts, now = self._read() if self._read else (), monotonic_ns()
        stack = self._stack_of(domain) if domain else self._stack()
        while stack:
            frame = stack.pop()
            self._write(frame, now, counts)
            if not frame[4]:
                return

    def mark(self, name: str | None, step: int | None = None) -> None:
        """End the phase that was marked last in this thread, and begin this one."""
        if self._memory is None:
            return
        stack = self._stack()
        if stack and stack[-1][4]:
            counts, now = self._read() if self._read else (), monotonic_ns()
            self._write(stack.pop(), now, counts)
        if name is not None:
            self.begin(name, step, marked=True)

    def record(self, name: str, begin_ns: int, end_ns: int, step: int | None = None) -> None:
        """Write a phase of which the times are known already."""
        if self._memory is None:
            return
        stack = self._stack()
        outer = stack[-1][0] if stack else self._threads.outer
        known = self._ids.get((outer, name))
        if known is None:
            known = self._named(outer, name)
        self._write(
            (known, NOTHING if step is None else whole_number(step), begin_ns, (), False, b"", NOTHING), end_ns, ()
        )

    def start(self, name: str, step: int | None = None, domain: str = "", payload: object = None) -> Handle | None:
        """Begin a range that any thread may end: version 1 keeps none."""

    def finish(self, handle: Handle | None) -> None:
        """End it."""

    def instant(self, name: str, step: int | None = None, domain: str = "", payload: object = None) -> None:
        """Note that something happens at this moment: version 1 keeps no instants."""

    def epoch(self, number: int) -> Handle | None:
        """Begin an epoch: version 1 keeps none."""

    def range(self, name: str, begin_ns: int, end_ns: int, step: int | None = None, domain: str = "") -> None:
        """Write a range of which the times are known already: version 1 keeps none."""

    def miss(self, phases: int) -> None:
        """Report that so many phases could not be recorded."""
        if self._memory is not None:
            with self._lock:
                self._words[DROPPED_AT] += phases

    def _stack(self) -> list[Frame]:
        """What this thread has begun and not ended."""
        try:
            return self._threads.stack  # type: ignore[no-any-return]
        except AttributeError:
            with self._lock:
                self._threads.outer = IN_OTHERS if self._written_to else AT_TOP
                self._written_to = True
            stack: list[Frame] = []
            self._threads.stack = stack
            return stack

    def _stack_of(self, domain: str) -> list[Frame]:  # noqa: ARG002 (version 1 knows none)
        """What this thread has begun in a domain that has a name, and not ended."""
        return []

    def _write(self, frame: Frame, end_ns: int, counts: Sequence[int | None]) -> None:
        name, step, begin_ns, before, _, _, _ = frame
        with self._lock:
            if name < 0:
                self._words[DROPPED_AT] += 1
                return
            head = self._head
            at = self._records + self._size * (head & self._last_slot)
            _RECORD.pack_into(self._memory, at, begin_ns, end_ns, step, name)  # type: ignore[arg-type]
            if self._counters:
                self._write_counts(at + FIRST.plain_record, before, counts)
            # Assigning to a memoryview stores all eight bytes at once; pack_into zeroes them first.
            self._head = self._words[HEAD_AT] = head + 1

    def _write_counts(self, at: int, before: Sequence[int | None], after: Sequence[int | None]) -> None:
        for place in range(self._counters):
            one, other = before[place] if before else None, after[place] if after else None
            count = NOTHING if one is None or other is None or other < one else other - one
            _COUNT.pack_into(self._memory, at + 8 * place, count)  # type: ignore[arg-type]

    def _named(self, outer: int, name: str) -> int:
        """The number of a phase in the table of names, where it is put if it can be."""
        with self._lock:
            if outer == NAMELESS or (known := self._ids.get((outer, name))) is not None:
                return NAMELESS if outer == NAMELESS else known  # type: ignore[return-value]
            if complaint := self._complaint(outer, name):
                self._complain("name", f"{complaint}; it is not recorded")
                number = NAMELESS
            else:
                number = self._add_name(self._path(outer, name), self._place(outer))
            self._ids[outer, name] = number
            return number

    def _place(self, outer: int) -> bytes:  # noqa: ARG002 (the later version has something there)
        """What is before the name of a phase."""
        return b""

    def _add_name(self, path: str, place: bytes) -> int:
        """Put a name into the table, and return its number."""
        number, slot = len(self._names), self.layout.name_slot
        at = self._slot_of(number)
        self._memory[at : at + slot] = (place + path.encode()).ljust(slot, b"\0")  # type: ignore[index]
        self._names.append(path)
        self._halves[NAMES_AT] = number + 1
        return number

    def _complain(self, what: str, sentence: str) -> None:
        """Print a sentence, once for each kind of trouble."""
        if what not in self._complained:
            self._complained.add(what)
            print(f"{sentence} (castmates help phases).", file=sys.stderr)

    def _complaint(self, outer: int, name: str, of_a_phase: bool = True) -> str:
        if not isinstance(name, str) or not name or "/" in name or "\0" in name or not name.isprintable():
            return f"A phase needs a name, printable and without a slash, and {name!r} is none"
        if of_a_phase and outer == AT_TOP and name == OTHER_THREADS:
            return f"'{OTHER_THREADS}' is kept for the phases of other threads and is no name of a phase"
        if len(self._path(outer, name).encode()) > self.layout.name_bytes:
            return f"The phase '{self._path(outer, name)}' has a name of more than {self.layout.name_bytes} bytes"
        if len(self._names) >= self.layout.most_names:
            return f"There are {self.layout.most_names} phases already, and '{self._path(outer, name)}' is one more"
        return ""

    def _known(self) -> dict[Hashable, int]:
        """The names that another process has put into the table, by where they lie."""
        return {(self._outer_of(path), path.rpartition("/")[2]): one for one, path in enumerate(self._names)}

    def _slot_of(self, number: int) -> int:
        return self.layout.name_table + self.layout.name_slot * number

    def _name_at(self, slot: int) -> str:
        return self._text(slot + self.layout.before_name, self.layout.name_bytes)

    def _path(self, outer: int, name: str) -> str:
        around = OTHER_THREADS if outer == IN_OTHERS else "" if outer < 0 else self._names[outer]
        return f"{around}/{name}" if around else name

    def _outer_of(self, path: str) -> int:
        """Where a phase lies that another process has named."""
        around = path.rpartition("/")[0]
        if around in ("", OTHER_THREADS):
            return IN_OTHERS if around else AT_TOP
        return self._names.index(around) if around in self._names else NAMELESS

    def _counting(self, events: list[str]) -> Callable[[], Sequence[int | None]]:
        """Open the counters and return what reads them all; how each fares stands in the file."""
        from castmates.workloads.phase_counts import PhaseCounts

        def tell(number: int, status: int, flags: int) -> None:
            at = (COUNTER_TABLE + COUNTER_SLOT * number + STATUS_AT) // 4
            self._halves[at + 1] = flags
            self._halves[at] = status

        return PhaseCounts(events, tell).read

    def _text(self, at: int, size: int) -> str:
        return self._memory[at : at + size].split(b"\0", 1)[0].decode(errors="replace")  # type: ignore[index]


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
