"""Reads the text of ftrace (/sys/kernel/tracing/trace), of `perf script`, and of trace-cmd, also its trace.dat.

Its times are those of the tracer's clock: CLOCK_MONOTONIC where `mono` was chosen, otherwise a clock of the boot.
"""

import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
    COUNTER,
    END,
    IRQ,
    NOTE,
    SOFTIRQ,
    STARTED,
    WAKEUP,
    WAKING,
    KernelEvents,
    Named,
    record,
)
from castmates.timeline.importers.kernel_timeline import KernelTimeline
from castmates.timeline.importers.lines import (
    Ints,
    Progress,
    blocks,
    blocks_of,
    codes,
    integers,
    nanoseconds,
    needed,
    output_of,
    taken_apart,
    where,
)
from castmates.timeline.model import Making, Registry, Timeline
from castmates.timeline.syscalls import syscall_name

SOURCE = "ftrace"
CLOCK = "the tracer's: CLOCK_MONOTONIC where its clock was mono"
_WHO = (
    r"^(?:[\w.]+: +)? *(?P<comm>.*?)(?:-(?P<tid>\d+)|[ ](?P<plain>\d+)(?:/(?P<thread>\d+))?) +"
    r"(?:\( *(?P<tgid>\d+|-+)\) +)?"
)
_LINE = (
    _WHO + r"\[(?P<cpu>\d+)\](?: +[^\s:]{3,12})? +(?P<whole>\d+)\.(?P<fraction>\d+): +"
    r"(?P<event>[\w-]+(?::[\w-]+)?)(?P<mark>: *$|: +| ?\(| -> )(?P<fields>.*)$"
)
# ftrace's form, and that of trace-cmd, which may not know how many
_LOST = r"^CPU:(?P<cpu>\d+) \[(?:LOST (?P<lost>\d+) EVENTS|(?:(?P<dropped>\d+) )?EVENTS DROPPED)\]$"
_FOUND = re.compile(
    rb"^.{1,40}?[- ]\d+(/\d+)? +(\( *[\d-]+\) +)?\[\d+\]( +[^\s:]{3,12})? +\d+\.\d+: +[\w-]+(:[\w-]+)?(:| ?\(| ->)",
    re.M,
)
_TRACER = re.compile(rb"^# tracer: (\w+)", re.M)
_WRITTEN = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")
_COUNTS = re.compile(rb"^.{1,40}?-\d+ +\[\d+\]( +[^\s:]{3,12})? +\d{6,}: \w+:", re.M)


def recognises(beginning: bytes) -> bool:
    """Whether the first lines are events of ftrace, trace-cmd or perf, or the head of ftrace's file."""
    return b"\0" not in beginning and any(each.search(beginning) for each in (_FOUND, _TRACER, _COUNTS))


def read(path: Path, progress: Progress) -> Timeline:
    """Read a file of text."""
    reading = Reading(str(path))
    reading.add_all(blocks(path, progress))
    return reading.timeline(path, SOURCE, path.stat().st_size)


class Reading:
    """Takes in blocks of lines."""

    def __init__(self, name: str) -> None:
        self._name, self._events, self._count = name, KernelEvents(), 0
        self._times = np.empty(0, np.int64)  # of the block's events

    def add_all(self, some: Iterable[pa.StringArray]) -> None:
        """Take in all blocks of lines."""
        for lines in some:
            self.add(lines)

    def add(self, lines: pa.StringArray) -> None:
        """Take in some lines."""
        lines = lines.filter(pc.not_equal(lines, ""))
        comment = pc.match_substring_regex(lines, r"^(#|cpus=|version = |CPU \d+ is empty)").to_numpy(
            zero_copy_only=False
        )
        self._head(where(lines, comment).to_pylist()[:100])
        lines = where(lines, ~comment)
        self._events.account.read += len(lines)
        matched, parts = taken_apart(lines, _LINE)
        if len(parts):
            self._take({field.name: parts.field(field.name) for field in parts.type})
        self._others(where(lines, ~matched), np.cumsum(matched, dtype=np.int64)[~matched])

    def _head(self, lines: list[str]) -> None:
        for line in lines:
            if found := _WRITTEN.search(line):
                self._events.account.lost += int(found[2]) - int(found[1])

    def _others(self, lines: pa.StringArray, after: npt.NDArray[np.int64]) -> None:
        """Lines that are no events: gaps, and the rest; each comes after so many events of the block."""
        matched, parts = taken_apart(lines, _LOST)
        if len(parts):
            lost, dropped = parts.field("lost"), parts.field("dropped")
            count = integers(pc.if_else(pc.equal(lost, ""), dropped, lost))
            at = (
                self._times[np.minimum(after[matched], len(self._times) - 1)]
                if len(self._times)
                else np.zeros_like(count)
            )
            self._events.lost.add(n=self._count, t=at, cpu=integers(parts.field("cpu")), count=count)
            self._events.account.lost += int(np.maximum(count, 0).sum())
            self._events.account.use("LOST", len(count))
        self._events.account.leave("lines that are no events", int((~matched).sum()))

    def _take(self, group: dict[str, pa.Array]) -> None:
        """Give the events of each name to those who know it."""
        count = len(group["cpu"])
        dashed = pc.if_else(pc.equal(group["tid"], ""), group["plain"], group["tid"])
        tid = integers(pc.if_else(pc.equal(group["thread"], ""), dashed, group["thread"]))
        process = pc.if_else(pc.equal(group["thread"], ""), group["tgid"], group["plain"])
        self._processes(tid, process)
        rows = Rows(
            n=np.arange(self._count, self._count + count),
            t=nanoseconds(group["whole"], group["fraction"]),
            cpu=integers(group["cpu"]),
            tid=tid,
            comm=self._events.words.take(pc.utf8_trim_whitespace(group["comm"])),
            mark=group["mark"],
            fields=group["fields"],
        )
        self._count, self._times = self._count + count, rows.t
        names = pc.dictionary_encode(pc.replace_substring_regex(group["event"], r"^[\w-]+:", ""))
        numbers = names.indices.to_numpy(zero_copy_only=False)
        left: Counter[str] = Counter()
        for number, name in enumerate(names.dictionary.to_pylist()):
            chosen = numbers == number
            used = add(self._events, name, rows.where(chosen))
            left[name] += int(chosen.sum()) - used
        for name, some in left.items():
            self._events.account.leave(name, some)

    def _processes(self, tid: npt.NDArray[np.int64], process: pa.Array) -> None:
        known = pc.match_substring_regex(process, r"^\d+$").to_numpy(zero_copy_only=False)
        if known.any():
            found = np.unique(np.stack([tid[known], integers(where(process, known))]), axis=1)
            self._events.processes.update(zip(*found.tolist(), strict=True))

    def timeline(self, path: Path, source: str, size: int) -> Timeline:
        """The timeline of all that was read."""
        if not self._count:
            raise CastmatesError(
                f"{self._name}: there are no events with times in seconds in this file; choose the clock mono "
                "(`trace-cmd record -C mono`), and write what `trace-cmd report`, `perf script` or the file trace show."
            )
        making = Making()
        kernel = KernelTimeline(making, Registry(making), self._events, source)
        kernel.fill()
        missing = ["arguments of system calls are not in the timeline", *kernel.missing]
        if self._events.account.used["sys_enter"]:
            missing.append(f"numbers of system calls were read as those of {MACHINE}")
        making.about = record(path, source, self._events.account, CLOCK, size, missing)
        return making.made()


TRACE_CMD = "trace-cmd"
MAGIC = b"\x17\x08\x44tracing"


def recognises_dat(beginning: bytes) -> bool:
    """Whether a file begins as those of trace-cmd do."""
    return beginning.startswith(MAGIC)


def read_dat(path: Path, progress: Progress) -> Timeline:
    """Read a file."""
    command = [needed(TRACE_CMD, path), "report", "-t", "-i", str(path.absolute())]
    reading = Reading(str(path))
    output_of(command, path, lambda text: reading.add_all(blocks_of(text, str(path))), lambda _: None)
    progress(path.stat().st_size)
    return reading.timeline(path, TRACE_CMD, path.stat().st_size)


# Puts the events of ftrace into columns, by their names: each event that is known has a function here.

# perf and ftrace name every field; trace-cmd has shorter forms: python:3776 [120] R ==> rcu_preempt:15 [120].
_SWITCH = (
    r"^(?:prev_comm=(?P<comm>.*) prev_pid=(?P<tid>\d+) prev_prio=-?\d+ prev_state=(?P<state>\S+) ==> "
    r"next_comm=(?P<next_comm>.*) next_pid=(?P<next>\d+) next_prio=-?\d+"
    r"|(?P<short_comm>.*):(?P<short_tid>\d+) \[-?\d+\] (?P<short_state>\S+) ==> "
    r"(?P<short_next_comm>.*):(?P<short_next>\d+) \[-?\d+\]).*$"
)
_WAKE = (
    r"^(?:comm=(?P<comm>.*) pid=(?P<tid>\d+) prio=-?\d+(?: success=\d)? target_cpu=(?P<cpu>\d+)"
    r"|(?P<short_comm>.*):(?P<short_tid>\d+) \[-?\d+\].* CPU:(?P<short_cpu>\d+)).*$"
)
_MIGRATE = r"^comm=(?P<comm>.*) pid=(?P<tid>\d+) prio=-?\d+ orig_cpu=(?P<origin>\d+) dest_cpu=(?P<cpu>\d+).*$"
_RAW_ENTER, _RAW_EXIT = r"^NR (?P<number>-?\d+)(?: \(.*)?$", r"^NR (?P<number>-?\d+) = (?P<value>-?\d+).*$"
_NAMED_EXIT = r"^(?P<value>0x[0-9a-f]+|-?\d+).*$"
_IRQ = r"^irq=(?P<line>\d+)(?: name=(?P<name>.*))?.*$"
_SOFTIRQ = r"^vec=(?P<line>\d+) \[action=(?P<name>\w+)\].*$"
_FAULT = r"^address=(?P<address>\S+).*$"
_MARK = (
    r"^(?:tracing_mark_write: ?|\S+: )?"
    r"(?:(?P<kind>[BECI])(?:\|(?P<pid>\d+))?(?:\|(?P<name>[^|]*))?(?:\|(?P<value>-?[\d.]+))?|(?P<text>.*))$"
)
_SHORT = "short_"


MACHINE = platform.machine()  # a trace does not say whose numbers of system calls it has
MARKS = ("tracing_mark_write", "print")  # what programs write into trace_marker
RETURNS, CALL_MARK = " -> ", r"^( ?\(| -> )$"  # ftrace's forms of an exit, and of both


@dataclass(frozen=True)
class Rows:
    """Some events, column by column."""

    n: Ints
    t: Ints
    cpu: Ints
    tid: Ints
    comm: Ints
    mark: pa.Array  # what stands between the name and the fields
    fields: pa.Array

    def where(self, rows: npt.NDArray[np.bool_]) -> "Rows":
        """Those rows alone."""
        if rows.all():
            return self
        n, t, cpu, tid, comm = (column[rows] for column in (self.n, self.t, self.cpu, self.tid, self.comm))
        return Rows(n, t, cpu, tid, comm, where(self.mark, rows), where(self.fields, rows))

    def taken(self, pattern: str) -> "tuple[Rows, Mapping[str, pa.Array]]":
        """The rows whose fields have this form, and their parts."""
        matched, parts = taken_apart(self.fields, pattern)
        return self.where(matched), {field.name: parts.field(field.name) for field in parts.type}

    def who(self) -> dict[str, Ints]:
        """Where, when and in which thread."""
        return {"n": self.n, "t": self.t, "cpu": self.cpu, "tid": self.tid, "comm": self.comm}


def add(events: KernelEvents, name: str, rows: Rows) -> int:
    """Add events of one name; return how many of them could be used."""
    if name in MARKS:
        return _mark(events, rows)
    own = pc.match_substring_regex(rows.mark, CALL_MARK).to_numpy(zero_copy_only=False)
    if name.startswith("sys_") and own.any():  # sys_exit(…) is a call, and sys_exit: NR 1 = 2 the end of one
        exits = pc.equal(rows.mark, RETURNS).to_numpy(zero_copy_only=False)
        call = name.removeprefix("sys_")
        return sum(
            _named_call(events, call, rows.where(each), enters)
            for each, enters in ((own & ~exits, True), (exits, False))
        )
    if known := EVENTS.get(name):
        used = known(events, rows)
        events.account.use(name, used)
        return used
    for prefix, enters in (("sys_enter_", True), ("sys_exit_", False)):
        if name.startswith(prefix):
            return _named_call(events, name.removeprefix(prefix), rows, enters)
    return 0


def _either(parts: Mapping[str, pa.Array], name: str) -> pa.Array:
    """A field in its full or in trace-cmd's shorter form."""
    return pc.if_else(pc.equal(parts[name], ""), parts[_SHORT + name], parts[name])


def _thread(parts: Mapping[str, pa.Array], tid: str = "tid", comm: str = "comm") -> Named:
    return _either(parts, tid), _either(parts, comm)


def _switch(events: KernelEvents, rows: Rows) -> int:
    rows, parts = rows.taken(_SWITCH)
    events.switch(rows.who(), _thread(parts), _either(parts, "state"), _thread(parts, "next", "next_comm"))
    return len(rows.t)


def _wake(kind: int) -> Callable[[KernelEvents, Rows], int]:
    def add_wakes(events: KernelEvents, rows: Rows) -> int:
        rows, parts = rows.taken(_WAKE)
        events.wake(rows.who(), kind, _thread(parts), _either(parts, "cpu"))
        return len(rows.t)

    return add_wakes


def _migrate(events: KernelEvents, rows: Rows) -> int:
    rows, parts = rows.taken(_MIGRATE)
    events.migrate(rows.who(), (parts["tid"], parts["comm"]), parts["origin"], parts["cpu"])
    return len(rows.t)


def _raw_call(enters: bool) -> Callable[[KernelEvents, Rows], int]:
    def add_calls(events: KernelEvents, rows: Rows) -> int:
        rows, parts = rows.taken(_RAW_ENTER if enters else _RAW_EXIT)
        numbers, known = codes(parts["number"])
        names = np.array([events.words.number(syscall_name(int(each), MACHINE)) for each in known] or [0], np.int64)[
            numbers
        ]
        value = np.nan if enters else parts["value"].cast(pa.float64()).to_numpy(zero_copy_only=False)
        events.calls.add(**rows.who(), name=names, enters=enters, value=value)
        return len(rows.t)

    return add_calls


def _named_call(events: KernelEvents, call: str, rows: Rows, enters: bool) -> int:
    value: Any = np.nan
    if not enters:
        rows, parts = rows.taken(_NAMED_EXIT)
        value = integers(parts["value"], base=0)
    if len(rows.t):
        events.calls.add(**rows.who(), name=events.words.number(call), enters=enters, value=value)
    events.account.use("sys_enter" if enters else "sys_exit", len(rows.t))
    return len(rows.t)


def _interrupt(kind: int, enters: bool) -> Callable[[KernelEvents, Rows], int]:
    def add_interrupts(events: KernelEvents, rows: Rows) -> int:
        rows, parts = rows.taken(_IRQ if kind == IRQ else _SOFTIRQ)
        events.interrupt(rows.who(), kind, enters, parts["line"], parts["name"])
        return len(rows.t)

    return add_interrupts


def _fault(where_: str) -> Callable[[KernelEvents, Rows], int]:
    def add_faults(events: KernelEvents, rows: Rows) -> int:
        rows, _ = rows.taken(_FAULT)
        rows = rows.where(rows.tid != 0)
        if len(rows.t):
            events.faults.add(**rows.who(), name=events.words.number(where_))
        return len(rows.t)

    return add_faults


def _mark(events: KernelEvents, rows: Rows) -> int:
    rows, parts = rows.taken(_MARK)
    rows_kept = rows.tid != 0
    numbers, letters = codes(parts["kind"])
    kinds = np.array([{"B": BEGIN, "E": END, "C": COUNTER}.get(each, NOTE) for each in letters] or [NOTE])[numbers]
    texts = pc.if_else(pc.equal(parts["kind"], ""), parts["text"], parts["name"])
    value = pc.if_else(pc.match_substring_regex(parts["value"], r"^-?\d+(\.\d+)?$"), parts["value"], None)
    columns = {
        "kind": kinds,
        "name": events.words.take(texts),
        "group": np.full(len(kinds), events.words.number(""), np.int64),  # an end does not name what it ends
        "value": value.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False),
    }
    if rows_kept.any():
        events.marks.add(**rows.where(rows_kept).who(), **{name: each[rows_kept] for name, each in columns.items()})
    for word, chosen in (
        ("begins", kinds == BEGIN),
        ("ends", kinds == END),
        ("counters", kinds == COUNTER),
        ("texts", kinds == NOTE),
    ):
        events.account.use(f"marks ({word})", int((chosen & rows_kept).sum()))
    return int(rows_kept.sum())


EVENTS: Mapping[str, Callable[[KernelEvents, Rows], int]] = {
    "sched_switch": _switch,
    "sched_waking": _wake(WAKING),
    "sched_wakeup": _wake(WAKEUP),
    "sched_wakeup_new": _wake(STARTED),
    "sched_migrate_task": _migrate,
    "sys_enter": _raw_call(enters=True),
    "sys_exit": _raw_call(enters=False),
    "irq_handler_entry": _interrupt(IRQ, enters=True),
    "irq_handler_exit": _interrupt(IRQ, enters=False),
    "softirq_entry": _interrupt(SOFTIRQ, enters=True),
    "softirq_exit": _interrupt(SOFTIRQ, enters=False),
    "page_fault_user": _fault("user"),
    "page_fault_kernel": _fault("kernel"),
}
