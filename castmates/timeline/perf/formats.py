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
_LONG = 8
# These have had one layout on all 64-bit machines since they exist; a plain user's perf cannot copy it.
KNOWN: Mapping[str, Mapping[str, Field]] = {
    "raw_syscalls:sys_enter": {"id": Field(8, _LONG, True)},
    "raw_syscalls:sys_exit": {"id": Field(8, _LONG, True), "ret": Field(16, _LONG, True)},
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
