"""How the kernel lays out the fields of a tracepoint, from the descriptions that perf copies into its file."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class Field(NamedTuple):
    """Where a field lies within a tracepoint's raw record, in bytes."""

    offset: int
    size: int
    signed: bool


# "name: sched_switch", its number, and a line for each field
_EVENT = re.compile(rb"name: (\w+)\nID: (\d+)\nformat:\n((?:\t?field:[^\n]*\n|\n)+)")
_FIELD = re.compile(rb"\tfield:[^;]*?(\w+)(?:\[\w*\])?;\toffset:(\d+);\tsize:(\d+);(?:\tsigned:(\d+);)?")


class Layout(NamedTuple):
    """A layout that is known without its description."""

    fields: Mapping[str, Field]
    size: int  # of the raw record, by which it is recognised; 0 where that varies


def _numbers(**offsets: int) -> dict[str, Field]:
    return {name: Field(offset, 4, True) for name, offset in offsets.items()}


_FLAGS = {"common_flags": Field(2, 1, False)}
_WOKEN = Layout(_FLAGS | _numbers(pid=24, prio=28, target_cpu=32), 36)  # since Linux 5.14
_NAMES = {"prev_comm": Field(8, 16, False), "next_comm": Field(40, 16, False)}
# perf copies descriptions only for who may read all of tracefs. These layouts are those of all 64-bit machines; a
# record of another size is refused.
KNOWN: Mapping[str, Layout] = {
    "raw_syscalls:sys_enter": Layout({"id": Field(8, 8, True)}, 68),
    "raw_syscalls:sys_exit": Layout({"id": Field(8, 8, True), "ret": Field(16, 8, True)}, 28),
    "sched:sched_switch": Layout(
        _NAMES | _numbers(prev_pid=24, prev_prio=28, next_pid=56, next_prio=60) | {"prev_state": Field(32, 8, True)}, 68
    ),
    "sched:sched_waking": _WOKEN,
    "sched:sched_wakeup": _WOKEN,
    "sched:sched_wakeup_new": _WOKEN,
    "irq:irq_handler_entry": Layout(_numbers(irq=8, name=12), 0),
    "irq:irq_handler_exit": Layout(_numbers(irq=8, ret=12), 20),
    "irq:softirq_entry": Layout(_numbers(vec=8), 12),
    "irq:softirq_exit": Layout(_numbers(vec=8), 12),
}
# The systems of tracepoints, which a description leaves out; a file may lack the list of its events' names.
_SYSTEMS = {"sched_": "sched", "sys_": "raw_syscalls", "irq_": "irq", "softirq_": "irq", "page_fault_": "exceptions"}


def full_name(name: str) -> str:
    """The name of a tracepoint with its system, as far as it is one of those that are read here."""
    system = next((system for begin, system in _SYSTEMS.items() if name.startswith(begin)), "")
    return f"{system}:{name}" if system else name


def fields_by_event(section: bytes) -> dict[int, tuple[str, dict[str, Field]]]:
    """The name and the fields of each tracepoint that is described, by the kernel's number."""
    found = {}
    for name, number, lines in _EVENT.findall(section):
        fields = {
            field.decode(): Field(int(offset), int(size), signed == b"1")
            for field, offset, size, signed in _FIELD.findall(lines)
        }
        found[int(number)] = (name.decode(), fields)
    return found
