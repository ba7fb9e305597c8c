"""Puts the events of ftrace into columns, by their names: each event that is known has a function here."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
)
from castmates.timeline.importers.lines import Ints, codes, integers, taken_apart, where
from castmates.timeline.syscalls import syscall_name

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
