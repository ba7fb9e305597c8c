"""The workload's end of a phases file of version 2, which keeps each range (standard library only, Python 3.10 on)."""

import json
import os
import struct
import threading
from collections.abc import Hashable, Sequence
from time import monotonic_ns

from castmates.workloads.phase_file import OTHER_THREADS
from castmates.workloads.phase_handle import Handle
from castmates.workloads.phase_layout import (
    CUT_AT,
    DOMAIN_BYTES,
    DOMAIN_SLOT,
    DOMAIN_TABLE,
    DOMAINS_AT,
    DROPPED_AT,
    EPOCH,
    HEAD_AT,
    INSTANT,
    MOST_DOMAINS,
    NOTHING,
    OPEN_AT,
    PAYLOAD_BYTES,
    PAYLOAD_LOST,
    PHASE,
    RANGE,
    SECOND,
)
from castmates.workloads.phase_writer import AT_TOP, IN_OTHERS, NAMELESS, Frame, Writer, whole_number

_RECORD = struct.Struct("4q6Iq")  # begin, end, step, epoch, name, type and flags, threads, bytes of payload, reserved
_PLACE = struct.Struct("HH")  # before a name: its domain, and what it is the name of
_TOPS = -4  # where the outermost phases of the second domain lie; of further ones below it
EPOCH_NAME = "epoch"
OF_NO_THREAD = -1  # a range of which the thread is not known


class RangeWriter(Writer):
    """The workload's end of such a file; what version 1 keeps is kept as there."""

    layout = SECOND

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        super().__init__(path)
        if self._memory is None:
            return
        count = self._halves[DOMAINS_AT]
        texts = [self._text(DOMAIN_TABLE + DOMAIN_SLOT * number, DOMAIN_BYTES) for number in range(count)]
        self._domains = {text: number for number, text in enumerate(texts)}
        self._epoch = NOTHING

    @property
    def keeps_ranges(self) -> bool:
        """Whether what is no phase is kept too."""
        return self.listened_to

    def begin(
        self, name: str, step: int | None = None, marked: bool = False, domain: str = "", payload: object = None
    ) -> None:
        """Begin a phase inside the one of its domain that this thread is in."""
        if self._memory is None:
            return
        stack = self._stack_of(domain) if domain else self._stack()
        outer = stack[-1][0] if stack else self._top_of(domain) if domain else self._threads.outer
        known = self._ids.get((outer, name))
        if known is None:
            known = self._named(outer, name)
        if step is None:
            number = stack[-1][1] if stack else NOTHING
        else:
            number = step if type(step) is int and 0 <= step < 2**63 else whole_number(step)
        text = b"" if payload is None else self._text_of(payload)
        counts = self._read() if self._read else ()
        stack.append((known, number, monotonic_ns(), counts, marked, text, self._epoch))

    def start(self, name: str, step: int | None = None, domain: str = "", payload: object = None) -> Handle | None:
        """Begin a range that any thread may end; it lies in no phase, and none lies in it."""
        if self._memory is None:
            return None
        text = b"" if payload is None else self._text_of(payload)
        return self._begun(Handle(RANGE, self._named_alone(RANGE, domain, name), whole_number(step), text, self._epoch))

    def finish(self, handle: Handle | None) -> None:
        """End a range or an epoch that was begun before."""
        if self._memory is None or handle is None:
            return
        now = monotonic_ns()
        with self._lock:
            mine, handle.writer = handle.writer is self, None
            if mine:
                self._words[OPEN_AT] -= 1
                if handle.type == EPOCH:
                    self._epoch = handle.before
        if not mine:
            self._complain("handle", "A range was ended that has ended already; it is recorded once")
            return
        about = (handle.type, handle.name, handle.step, handle.epoch, handle.payload, handle.thread)
        self._put(about, handle.begin_ns, now)

    def instant(self, name: str, step: int | None = None, domain: str = "", payload: object = None) -> None:
        """Note that something happens at this moment, inside the phase of the domain that this thread is in."""
        if self._memory is None:
            return
        now, stack = monotonic_ns(), self._stack_of(domain) if domain else getattr(self._threads, "stack", ())
        outer, number = (stack[-1][0], stack[-1][1]) if stack else (AT_TOP, NOTHING)
        number = number if step is None else whole_number(step)
        known = NAMELESS if outer == NAMELESS else self._named_alone(INSTANT, domain, name, outer)
        text = b"" if payload is None else self._text_of(payload)
        self._put((INSTANT, known, number, self._epoch, text, 0), now, now)

    def epoch(self, number: int) -> Handle | None:
        """Begin an epoch, which lasts until its handle is finished: what begins meanwhile is part of it."""
        if self._memory is None:
            return None
        known, now = self._named_alone(EPOCH, "", EPOCH_NAME), whole_number(number)
        handle = Handle(EPOCH, known, NOTHING, b"", now)
        with self._lock:
            handle.before, self._epoch = self._epoch, now
        return self._begun(handle)

    def range(self, name: str, begin_ns: int, end_ns: int, step: int | None = None, domain: str = "") -> None:
        """Write a range of which the times are known already, and the thread is not."""
        if self._memory is not None:
            known = self._named_alone(RANGE, domain, name)
            self._put((RANGE, known, whole_number(step), self._epoch, b"", OF_NO_THREAD), begin_ns, end_ns)

    def _begun(self, handle: Handle) -> Handle:
        with self._lock:
            self._words[OPEN_AT] += 1
        handle.writer, handle.thread, handle.begin_ns = self, self._thread(), monotonic_ns()
        return handle

    def _write(self, frame: Frame, end_ns: int, counts: Sequence[int | None]) -> None:
        name, step, begin_ns, before, _, payload, epoch = frame
        self._put((PHASE, name, step, epoch, payload, 0), begin_ns, end_ns, before, counts)

    def _put(
        self,
        about: tuple[int, int, int, int, bytes | None, int],
        begin_ns: int,
        end_ns: int,
        before: Sequence[int | None] = (),
        after: Sequence[int | None] = (),
    ) -> None:
        """Write a record, and publish it."""
        flags, name, step, epoch, text, begun_by = about
        if text is None:
            flags, text = flags | PAYLOAD_LOST << 8, b""
        thread, memory = self._thread(), self._memory
        with self._lock:
            if name < 0:
                self._words[DROPPED_AT] += 1
                return
            head = self._head
            at = self._records + self._size * (head & self._last_slot)
            threads = (0, 0) if begun_by == OF_NO_THREAD else (begun_by or thread, thread)
            _RECORD.pack_into(memory, at, begin_ns, end_ns, step, epoch, name, flags, *threads, len(text), 0, 0)  # type: ignore[arg-type]
            at += SECOND.plain_record
            if self._counters:
                self._write_counts(at, before, after)
                at += 8 * self._counters
            if text:
                memory[at : at + len(text)] = text  # type: ignore[index]
            self._head = self._words[HEAD_AT] = head + 1

    def _named_alone(self, type_: int, domain: str, name: str, outer: int = AT_TOP) -> int:
        """The number of a name that is none of a phase, in the table of names, where it is put if it can be."""
        number = self._domain(domain)
        if number is None:
            return NAMELESS
        key = (type_, number, outer, name)
        known = self._ids.get(key)
        if known is not None:
            return known
        with self._lock:
            if key not in self._ids:
                if complaint := self._complaint(outer, name, of_a_phase=False):
                    self._complain("name", f"{complaint}; it is not recorded")
                    self._ids[key] = NAMELESS
                else:
                    self._ids[key] = self._add_name(self._path(outer, name), _PLACE.pack(number, type_))
                    self._domain_of.append(number)
            return self._ids[key]

    def _place(self, outer: int) -> bytes:
        """What is before the name of a phase."""
        domain = _TOPS - outer if outer <= _TOPS else self._domain_of[outer] if outer >= 0 else 0
        self._domain_of.append(domain)
        return _PLACE.pack(domain, PHASE)

    def _known(self) -> dict[Hashable, int]:
        """The names that another process has put into the table."""
        places = [_PLACE.unpack_from(self._memory, self._slot_of(one)) for one in range(len(self._names))]  # type: ignore[arg-type]
        self._domain_of = [domain for domain, _ in places]
        phases = {
            (domain, path): number
            for number, ((domain, type_), path) in enumerate(zip(places, self._names, strict=True))
            if type_ == PHASE
        }
        known: dict[Hashable, int] = {}
        for number, ((domain, type_), path) in enumerate(zip(places, self._names, strict=True)):
            around, _, name = path.rpartition("/")
            top = AT_TOP if type_ != PHASE or not domain else _TOPS - domain
            others = IN_OTHERS if domain == 0 and around == OTHER_THREADS else NAMELESS
            outer = phases.get((domain, around), others) if around else top
            known[(outer, name) if type_ == PHASE else (type_, domain, outer, name)] = number
        return known

    def _text_of(self, payload: object) -> bytes | None:
        """A payload as the file has it; None for one that is too long or cannot be written."""
        try:
            text = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"), default=str)
            data = text.encode(errors="replace")
        except (TypeError, ValueError, RecursionError) as problem:
            self._complain("payload", f"A payload cannot be written ({problem}); the range is kept without it")
        else:
            if len(data) <= PAYLOAD_BYTES:
                return data
            self._complain(
                "payload",
                f"The payload {text[:40]!r}… has {len(data)} bytes and at most {PAYLOAD_BYTES} are kept; the range is "
                "kept without it",
            )
        with self._lock:
            self._words[CUT_AT] += 1
        return None

    def _thread(self) -> int:
        """The system's number of this thread."""
        try:
            return self._threads.number  # type: ignore[no-any-return]
        except AttributeError:
            self._threads.number = number = threading.get_native_id()
            return number

    def _stack_of(self, domain: str) -> list[Frame]:
        """What this thread has begun in a domain and not ended."""
        stacks: dict[str, list[Frame]] | None = getattr(self._threads, "stacks", None)
        if stacks is None:
            self._threads.stacks = stacks = {}
        return stacks.setdefault(domain, [])

    def _top_of(self, domain: str) -> int:
        """Where the outermost phases of a domain that has a name lie."""
        number = self._domain(domain)
        return NAMELESS if number is None else _TOPS - number

    def _domain(self, domain: str) -> int | None:
        """The number of a domain in the table, where it is put if it can be."""
        known = self._domains.get(domain)
        if known is not None:
            return known
        with self._lock:
            if domain in self._domains:
                return self._domains[domain]
            if not isinstance(domain, str) or not domain.isprintable() or len(domain.encode()) > DOMAIN_BYTES:
                self._complain("domain", f"A domain needs a printable name of at most {DOMAIN_BYTES} bytes, and "
                               f"{domain!r} is none; what it has is not recorded")  # fmt: skip
                return None
            number = len(self._domains)
            if number >= MOST_DOMAINS:
                self._complain("domains", f"There are {MOST_DOMAINS} domains already, and '{domain}' is one more; "
                               "what it has is not recorded")  # fmt: skip
                return None
            at = DOMAIN_TABLE + DOMAIN_SLOT * number
            self._memory[at : at + DOMAIN_SLOT] = domain.encode().ljust(DOMAIN_SLOT, b"\0")  # type: ignore[index]
            self._domains[domain] = number
            self._halves[DOMAINS_AT] = number + 1
            return number
