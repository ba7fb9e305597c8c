"""Reads traces in the Common Trace Format 1.8, which LTTng writes, by way of babeltrace2.

Each trace of the folder (kernel, user space by user or by process) is read by itself: all of them are on LTTng's one
clock, CLOCK_MONOTONIC.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from castmates.errors import CastmatesError
from castmates.timeline.importers.kernel import (
    BEGIN,
    END,
    IRQ,
    NOTE,
    SOFTIRQ,
    STARTED,
    WAKEUP,
    WAKING,
    KernelEvents,
    Named,
    Rows,
    record,
)
from castmates.timeline.importers.kernel_timeline import KernelTimeline
from castmates.timeline.importers.lines import (
    Ints,
    Progress,
    blocks_of,
    head,
    integers,
    needed,
    output_of,
    taken_apart,
    where,
)
from castmates.timeline.model import Making, Registry, Timeline

SECOND = 10**9
NOBODY = -1
TEXT = 200  # letters of an event's fields that are kept
_LINE = (
    r"^timestamp = (?P<time>\d+), .*?\bname = (?P<name>[^,{]+), (?P<more>.*?)"
    r"(?:event\.fields = \{ ?(?P<fields>.*?) ?\}|event\.fields = \{\}|)$"
)
_KINDS = (("_begin", BEGIN), ("_start", BEGIN), ("_entry", BEGIN), ("_end", END), ("_stop", END), ("_exit", END))
_CALL = re.compile(r"(?:compat_)?syscall_(entry|exit)_(\w+)")
_VALUE = r'(?:\( ?)?(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<number>-?[\w.+-]+))'
Add = Callable[[KernelEvents, Rows, pa.Array], None]


class Reading:
    """Takes in the lines of one trace."""

    def __init__(self, events: KernelEvents, frequency: int) -> None:
        self._events, self._frequency = events, frequency
        self._running: dict[int, tuple[int, int]] = {}  # by CPU: who runs, and its name
        self._count = 0
        self.threadless = 0  # events of programs without a thread

    def add_all(self, blocks: Iterable[pa.StringArray]) -> None:
        """Take in all blocks of lines."""
        for lines in blocks:
            self._add(lines.filter(pc.not_equal(lines, "")))

    def _add(self, lines: pa.StringArray) -> None:
        self._events.account.read += len(lines)
        matched, parts = taken_apart(lines, _LINE)
        self._events.account.leave("lines that are no events", int((~matched).sum()))
        if not len(parts):
            return
        more, every, count = parts.field("more"), parts.field("fields"), len(parts)
        cpu = integers(_field(more, "cpu_id"))
        names = pc.dictionary_encode(parts.field("name"))
        words, numbers = names.dictionary.to_pylist(), names.indices.to_numpy(zero_copy_only=False)
        rows = {
            "n": np.arange(self._count, self._count + count),
            "t": self._nanoseconds(integers(parts.field("time"))),
            "cpu": cpu,
        }
        rows |= self._who(more, cpu, every, np.array([word == "sched_switch" for word in words])[numbers])
        self._count += count
        for number, name in enumerate(words):
            chosen = numbers == number
            some = {key: column[chosen] for key, column in rows.items()}
            self._take(name, some, where(every, chosen))

    def _nanoseconds(self, cycles: Ints) -> Ints:
        if self._frequency == SECOND:
            return cycles
        whole, rest = np.divmod(cycles, self._frequency)
        return np.asarray(whole * SECOND + rest * SECOND // self._frequency, np.int64)

    def _who(self, more: pa.Array, cpu: Ints, fields: pa.Array, switches: npt.NDArray[np.bool_]) -> dict[str, Ints]:
        """Threads by their context; without it by who was switched to last on the CPU."""
        tid, process = np.array(integers(_either(more, "vtid", "tid"))), integers(_either(more, "vpid", "pid"))
        comm = self._events.words.take(_either(more, "procname", "comm"))
        known = (tid >= 0) & (process >= 0)
        pairs = np.unique(np.stack([tid[known], process[known]]), axis=1)
        self._events.processes.update(zip(*pairs.tolist(), strict=True))
        if switches.any() or self._running:
            self._follow(tid, comm, cpu, fields, switches)
        return {"tid": tid, "comm": comm}

    def _follow(self, tid: Ints, comm: Ints, cpu: Ints, fields: pa.Array, switches: npt.NDArray[np.bool_]) -> None:
        """Fill in who runs, CPU by CPU."""
        own = where(fields, switches)
        into = np.full(len(tid), NOBODY, np.int64)
        into[switches] = integers(_field(own, "next_tid"))
        named = np.zeros(len(tid), np.int64)
        named[switches] = self._events.words.take(_field(own, "next_comm"))
        for number in np.unique(cpu).tolist():
            rows = np.flatnonzero(cpu == number)
            last = np.maximum.accumulate(np.where(switches[rows], np.arange(len(rows)), -1))
            before = np.r_[-1, last[:-1]]  # a switch itself happens in the thread that leaves
            thread, name = self._running.get(number, (NOBODY, self._events.words.number("")))
            of = np.where(before >= 0, into[rows][np.maximum(before, 0)], thread)
            names = np.where(before >= 0, named[rows][np.maximum(before, 0)], name)
            lacking = tid[rows] < 0
            tid[rows[lacking]], comm[rows[lacking]] = of[lacking], names[lacking]
            if last[-1] >= 0:
                self._running[number] = int(into[rows][last[-1]]), int(named[rows][last[-1]])

    def _take(self, name: str, rows: Rows, fields: pa.Array) -> None:
        account = self._events.account
        if known := EVENTS.get(name):
            known(self._events, rows, fields)
            account.use(name, len(fields))
        elif call := _CALL.fullmatch(name):
            enters = call[1] == "entry"
            sure = rows["tid"] > 0
            kept, value = {key: column[sure] for key, column in rows.items()}, _numbers(_field(fields, "ret"))[sure]
            if sure.any():
                word = self._events.words.number(call[2])
                self._events.calls.add(**kept, name=word, enters=enters, value=value)
            account.use("sys_enter" if enters else "sys_exit", int(sure.sum()))
            account.leave("system calls before it is known who runs", int((~sure).sum()))
        elif ":" in name:
            self._of_program(name, rows, fields)
        else:
            account.leave(name, len(fields))

    def _of_program(self, name: str, rows: Rows, fields: pa.Array) -> None:
        """Events that a program makes: ranges where names show begins and ends, otherwise notes."""
        base, kind = next(((name.removesuffix(end), one) for end, one in _KINDS if name.endswith(end)), (name, NOTE))
        known = rows["tid"] >= 0  # begins and ends of several threads cannot be told apart without that
        self.threadless += int((~known).sum())
        for of, chosen in ((kind, known & (kind != NOTE)), (NOTE, ~known | (kind == NOTE))):
            if chosen.any():
                some = {key: column[chosen] for key, column in rows.items()}
                self._mark(of, name if of == NOTE else base, some, where(fields, chosen))

    def _mark(self, kind: int, name: str, rows: Rows, fields: pa.Array) -> None:
        words, named = self._events.words, _field(fields, "name")
        labels = _note(name, fields) if kind == NOTE else pc.if_else(pc.equal(named, ""), name, named)
        group = words.number("" if kind == NOTE else name)
        self._events.marks.add(**rows, kind=kind, name=words.take(labels), group=group, value=np.nan)
        self._events.account.use({BEGIN: "marks (begins)", END: "marks (ends)"}.get(kind, "marks (texts)"), len(fields))


def _note(name: str, fields: pa.Array) -> pa.Array:
    """An event's name, and the beginning of its fields."""
    short = pc.utf8_slice_codeunits(fields, 0, TEXT)
    return pc.if_else(pc.equal(short, ""), name, pc.binary_join_element_wise(name, short, ": "))


def _field(texts: pa.Array, name: str) -> pa.Array:
    """A field's text; empty where there is none. Of an enumeration it is the label."""
    if not len(texts):
        return texts
    found = pc.extract_regex(texts, rf"(?:^|[ {{]){name} = {_VALUE}")
    text, number = pc.struct_field(found, "text"), pc.struct_field(found, "number")
    return pc.if_else(pc.equal(text, ""), number, text).fill_null("")


def _either(texts: pa.Array, one: str, other: str) -> pa.Array:
    first = _field(texts, one)
    return pc.if_else(pc.equal(first, ""), _field(texts, other), first)


def _numbers(texts: pa.Array) -> npt.NDArray[np.float64]:
    return integers(texts, 0, base=0).astype(np.float64) if len(texts) else np.empty(0)


def _thread(fields: pa.Array, tid: str = "tid", comm: str = "comm") -> Named:
    return _field(fields, tid), _field(fields, comm)


def _switch(events: KernelEvents, rows: Rows, fields: pa.Array) -> None:
    left, came = _thread(fields, "prev_tid", "prev_comm"), _thread(fields, "next_tid", "next_comm")
    events.switch(rows, left, _field(fields, "prev_state"), came)


def _wake(kind: int) -> Add:
    def add(events: KernelEvents, rows: Rows, fields: pa.Array) -> None:
        events.wake(rows, kind, _thread(fields), _field(fields, "target_cpu"))

    return add


def _migrate(events: KernelEvents, rows: Rows, fields: pa.Array) -> None:
    events.migrate(rows, _thread(fields), _field(fields, "orig_cpu"), _field(fields, "dest_cpu"))


def _interrupt(kind: int, enters: bool) -> Add:
    line = "vec" if kind == SOFTIRQ else "irq"

    def add(events: KernelEvents, rows: Rows, fields: pa.Array) -> None:
        events.interrupt(rows, kind, enters, _field(fields, line), _field(fields, "name"))

    return add


def _fault(where_: str) -> Add:
    def add(events: KernelEvents, rows: Rows, fields: pa.Array) -> None:
        del fields
        events.faults.add(**rows, name=events.words.number(where_))

    return add


EVENTS: Mapping[str, Add] = {
    "sched_switch": _switch,
    "sched_waking": _wake(WAKING),
    "sched_wakeup": _wake(WAKEUP),
    "sched_wakeup_new": _wake(STARTED),
    "sched_migrate_task": _migrate,
    "irq_handler_entry": _interrupt(IRQ, enters=True),
    "irq_handler_exit": _interrupt(IRQ, enters=False),
    "irq_softirq_entry": _interrupt(SOFTIRQ, enters=True),
    "irq_softirq_exit": _interrupt(SOFTIRQ, enters=False),
    "x86_exceptions_page_fault_user": _fault("user"),
    "x86_exceptions_page_fault_kernel": _fault("kernel"),
}


SOURCE, PROGRAM = "lttng", "babeltrace2"
METADATA = "metadata"
MAGICS = (b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57", b"/* CTF ")  # packets of metadata, and plain text
MONOTONIC = "monotonic"
_CLOCK = re.compile(r"\bclock\s*\{(.*?)\n?\}\s*;", re.S)
_KEY = re.compile(r'\b(\w+)\s*=\s*(?:"([^"]*)"|(-?\d+))\s*;')
_DISCARDED = re.compile(r"discarded\s+(\d+)\s+event")


@dataclass(frozen=True)
class Clock:
    """The clock of a trace."""

    name: str
    frequency: int
    offset_ns: int  # what has to be added to its time for CLOCK_REALTIME


def recognises(path: Path) -> bool:
    """Whether a folder has traces in this format."""
    return path.is_dir() and bool(traces_in(path))


def traces_in(path: Path) -> list[Path]:
    """The folders of traces in a folder, at most five levels below it."""
    found = []
    for folder, folders, files in os.walk(path):
        if len(Path(folder).relative_to(path).parts) >= 5:
            folders.clear()
        folders.sort()
        if METADATA in files and head(Path(folder) / METADATA, 8).startswith(MAGICS):
            found.append(Path(folder))
    return found


def read(path: Path, progress: Progress) -> Timeline:
    """Read all traces of a folder."""
    program, traces = needed(PROGRAM, path), traces_in(path)
    events, clocks = KernelEvents(), [clock_of(program, trace) for trace in traces]
    if len(set(clocks)) > 1:
        raise CastmatesError(f"{path}: the traces in this folder have different clocks; convert each trace by itself.")
    clock, sizes, lost = clocks[0], [_size(trace) for trace in traces], 0
    threadless = 0
    for trace, size in zip(traces, sizes, strict=True):
        reading = Reading(events, clock.frequency)
        lost += output_of(
            _command(program, trace),
            trace,
            lambda text, reading=reading, trace=trace: reading.add_all(blocks_of(text, str(trace))),  # type: ignore[misc]
            _discarded,
        )
        threadless += reading.threadless
        progress(size)
    if not events.account.read:
        raise CastmatesError(f"{path}: there are no events in this trace.")
    events.account.lost += lost
    making = Making()
    kernel = KernelTimeline(making, Registry(making), events, SOURCE)
    kernel.fill()
    missing = ["arguments of system calls are not in the timeline", *kernel.missing]
    if lost:
        missing.append(f"{lost} events were lost, and it is not known when: states may be those before such a gap")
    if threadless:
        missing.append(
            f"{threadless} events have no thread, so that begins and ends are notes; record with "
            "`lttng add-context -u -t vtid -t vpid -t procname`"
        )
    making.about = record(path, SOURCE, events.account, _words(clock), sum(sizes), missing, clocks=_pair(clock))
    return making.made()


def clock_of(program: str, trace: Path) -> Clock:
    """The clock that a trace's metadata declares."""
    done = subprocess.run([program, "-o", "ctf-metadata", str(trace.absolute())], check=False, capture_output=True)
    text = done.stdout.decode("utf-8", "replace")
    found = _CLOCK.search(text)
    if done.returncode or found is None:
        why = "it declares no clock" if not done.returncode else "its metadata are cut or damaged"
        raise CastmatesError(f"{trace}: this trace cannot be read: {why}.")
    keys = {key: word or number for key, word, number in _KEY.findall(found[1])}
    frequency = int(keys.get("freq", SECOND))
    if frequency <= 0:
        raise CastmatesError(f"{trace}: this trace cannot be read: its clock has the frequency {frequency}.")
    offset = int(keys.get("offset_s", 0)) * SECOND + int(keys.get("offset", 0)) * SECOND // frequency
    return Clock(keys.get("name", ""), frequency, offset)


def _command(program: str, trace: Path) -> Sequence[str]:
    return [program, "--clock-cycles", "--no-delta", "--names=all", "--fields=", str(trace.absolute())]


def _discarded(said: str) -> int:
    """How many events the tracer could not keep, as babeltrace2 reports it."""
    return sum(int(number) for number in _DISCARDED.findall(" ".join(said.split())))


def _words(clock: Clock) -> str:
    return "CLOCK_MONOTONIC" if clock.name == MONOTONIC else f"the trace's clock '{clock.name}'"


def _pair(clock: Clock) -> list[dict[str, Any]]:
    """The pair of clocks that the metadata have: the same moment on both."""
    if not clock.offset_ns:
        return []
    return [{"at": "metadata", "steady_ns": 0, "real_ns": clock.offset_ns, "bracket_ns": 0}]


def _size(trace: Path) -> int:
    return sum(file.stat().st_size for file in trace.iterdir() if file.is_file())
