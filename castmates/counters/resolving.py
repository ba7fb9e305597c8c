"""What an event is on this processor: perf is asked, which knows its names, its units and its kinds of cores."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from castmates.counters import event_names
from castmates.counters.kernel_events import (
    EXCLUDE_HV,
    EXCLUDE_IDLE,
    EXCLUDE_KERNEL,
    EXCLUDE_USER,
    Attr,
)
from castmates.study.counter_keys import name_of

PATIENCE_S = 20.0
_FIELD = re.compile(r"\s+(\{[^}]*\}|\w+)\s+(.+)")
_DECIDING = ("type", "config", "config1", "config2")
_EXCLUDE = {
    "exclude_user": EXCLUDE_USER,
    "exclude_kernel": EXCLUDE_KERNEL,
    "exclude_hv": EXCLUDE_HV,
    "exclude_idle": EXCLUDE_IDLE,
}
Ask = Callable[[Sequence[str]], str | None]  # events -> what perf prints; None where there is no perf


@dataclass(frozen=True)
class Event:
    """An event that a study wants, and what it is here."""

    words: str  # in perf's words, as the study has them
    name: str
    group: str  # the set that names it first
    attrs: tuple[Attr, ...] = ()  # one for each kind of core; none where it is not known
    source: str = ""  # who said so
    note: str = ""  # why it is not known

    @property
    def in_software(self) -> bool:
        """Whether the kernel counts it itself."""
        return bool(self.attrs) and all(attr.in_software for attr in self.attrs)


def resolve(sets: Sequence[tuple[str, Sequence[str]]], ask: Ask | None = None) -> list[Event]:
    """Every event of these sets once, in their order."""
    ask = ask or ask_perf
    wanted: dict[str, tuple[str, str]] = {}
    for group, events in sets:
        for words in events:
            wanted.setdefault(name_of(words), (words, group))
    at_once = _at_once([words for words, _ in wanted.values()], ask)
    return [
        Event(words, name, group, (at_once[words],), "perf")
        if words in at_once
        else _resolved(words, name, group, ask([words]))
        for name, (words, group) in wanted.items()
    ]


def _at_once(words: Sequence[str], ask: Ask) -> dict[str, Attr]:
    """Ask for all of them in one go; nothing is known where perf knows not all of them, or tries any of them twice."""
    said = ask(words) if len(words) > 1 else None
    tried = list(_tries(said or ""))
    return dict(zip(words, tried, strict=True)) if len(tried) == len(words) else {}


def _resolved(words: str, name: str, group: str, said: str | None) -> Event:
    if said is None:
        attr = event_names.look_up(words)
        if attr is None:
            note = "not supported: the kernel's own events alone are known without perf, which is not installed here"
            return Event(words, name, group, note=note)
        return Event(words, name, group, (attr,), "the kernel's own table (there is no perf here)")
    attrs = attributes(said)
    if not attrs:
        return Event(words, name, group, note=f"not supported: perf does not know this event here ({_complaint(said)})")
    return Event(words, name, group, attrs, "perf")


def ask_perf(words: Sequence[str]) -> str | None:
    """Have perf open the events for a program that does nothing, and say what it asks of the kernel."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    try:
        done = subprocess.run(
            [perf, "stat", "-vv", *(word for event in words for word in ("-e", event)), "true"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stderr + done.stdout
    # Some distributions install a wrapper that only says that this kernel's perf is missing.
    return said if done.returncode == 0 or "event syntax" in said or "perf list" in said else None


def attributes(said: str) -> tuple[Attr, ...]:
    """Read an event out of what `perf stat -vv` prints, once for each kind of core.

    perf prints what it asks the kernel for before it knows the answer, and again where it tries with less: the first
    try is what was meant.
    """
    found: dict[Attr, Attr] = {}
    for attr in _tries(said):
        found.setdefault(attr._replace(exclude=0), attr)
    return tuple(found.values())


def _tries(said: str) -> Iterator[Attr]:
    """Everything that perf wants counted; what newer ones try out for themselves they do not ask the times of."""
    for part in said.split("perf_event_attr:")[1:]:
        fields = dict(_fields(part))
        if "TOTAL_TIME_ENABLED" in fields.get("read_format", ""):
            exclude = sum(bit for name, bit in _EXCLUDE.items() if _number(fields.get(name, "0")))
            kind, config, config1, config2 = (_number(fields.get(name, "0")) for name in _DECIDING)
            yield Attr(kind, config, config1, config2, exclude)


def _fields(part: str) -> Iterator[tuple[str, str]]:
    """The fields of one attr, which ends with a line of hyphens; a union's name ends with what we want of it."""
    for line in part.split("\n-----", 1)[0].splitlines():
        if found := _FIELD.fullmatch(line):
            yield found[1].strip("{ }").split(",")[-1].strip(), found[2].strip()


def _number(text: str) -> int:
    """`0x1 (PERF_COUNT_HW_INSTRUCTIONS)` -> 1."""
    try:
        return int(text.split()[0], 0)
    except (ValueError, IndexError):
        return 0


def _complaint(said: str) -> str:
    """What perf says is wrong, in its own words."""
    lines = [line.strip(" \\_") for line in said.splitlines()]
    wrong = [line for line in lines if line.startswith(("event syntax", "Cannot", "Unable", "Bad", "unknown"))]
    return "; ".join(dict.fromkeys(wrong[:2])) or "it says nothing more"
