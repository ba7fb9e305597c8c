"""How a member can be counted here: its control group, its threads with all that they start, or all of its CPUs."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from castmates.counters.events.groups import ENDED, NO_COUNTER, open_groups
from castmates.counters.events.resolving import Event
from castmates.linux import cgroups
from castmates.linux.kernel_files import read_text
from castmates.linux.perf_event import (
    CLOEXEC,
    HARDWARE,
    HW_CACHE,
    OF_CGROUP,
    PERF_DEVICES,
    SOFTWARE,
    Attr,
    Opener,
    Target,
    open_event,
)
from castmates.linux.processes import Family, is_stopped
from castmates.protocols import Held, Refusal
from castmates.study.cpus import parse

ScopeName = Literal["cgroup", "thread", "cpu"]
SCOPES: tuple[ScopeName, ...] = ("cgroup", "thread", "cpu")  # in the order in which they are preferred
STILL_S = 5.0
MAY_LACK = "the member did not stand still while its counters were opened: threads may be missing"
_TRIED = Event("task-clock", "task-clock", "", (Attr(SOFTWARE, 1),))  # which every kernel counts
IN_WORDS = {
    "cgroup": "everything in its control group, on each of its CPUs",
    "thread": "each of its threads and all that they start; opened while they stood still",
    "cpu": "everything that runs on its CPUs, the kernel's and others' work too",
    "": "nothing",
}


@dataclass
class Scope:
    """How a member is counted, and whom its counters are opened on."""

    name: ScopeName | Literal[""] = ""
    targets: list[Target] = field(default_factory=list)
    why_not: dict[str, Refusal] = field(default_factory=dict)  # by scope
    lacks: str = ""  # what may be in no count
    folder: int = -1  # descriptor of the control group

    def close(self) -> None:
        """Let go of the control group; its counters hold it themselves."""
        if self.folder >= 0:
            os.close(self.folder)
            self.folder = -1


@contextmanager
def scope_of(held: Held, how: str, opener: Opener = open_event) -> Iterator[Scope]:
    """Find the first scope that works; a member that is counted by threads stands still meanwhile.

    So no thread is born between the look at its threads and the opening of their counters: those that are born
    later inherit them.
    """
    scope = Scope()
    family: Family | None = None
    try:
        for name in SCOPES if how == "auto" else [how]:
            if name == "thread" and not _stands_still(held):
                family = Family(held.pid)
                still_runs = family.stop(STILL_S)
                scope.lacks = MAY_LACK if still_runs else ""
            try:
                targets = _targets(scope, name, held)
            except OSError as error:
                scope.why_not[name] = Refusal("not supported", error.strerror or "it cannot be opened")
                continue
            if why := _refusal(name, targets, opener):
                scope.why_not[name] = why
                if why == ENDED:
                    break  # what runs on its CPUs now is not its own
                continue
            scope.name, scope.targets = next(known for known in SCOPES if known == name), targets
            break
        yield scope
    finally:
        if family is not None:
            family.resume()
        scope.close()


def _stands_still(held: Held) -> bool:
    """Check whether another process has frozen the member, so that we neither need to stop it nor may let it go on."""
    if held.cgroup is not None:
        with suppress(OSError):
            return cgroups.event(Path(held.cgroup), "frozen")
    living = Family(held.pid).living()
    return bool(living) and all(is_stopped(process.pid) for process in living)


def _targets(scope: Scope, name: str, held: Held) -> list[Target]:
    if name == "cgroup":
        if held.cgroup is None:
            raise OSError(0, "the member has no separate control group")
        scope.folder = os.open(held.cgroup, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        return [Target(scope.folder, cpu, CLOEXEC | OF_CGROUP) for cpu in held.cpus]
    if name == "thread":
        return [Target(tid, inherit=True) for tid in sorted(Family(held.pid).threads())]
    return [Target(-1, cpu) for cpu in held.cpus]


def _refusal(scope: str, targets: Sequence[Target], opener: Opener) -> Refusal | None:
    """Explain why nothing can be counted on these; None where it can."""
    opened = open_groups([_TRIED], targets, opener=opener)
    opened.close()
    refusal = opened.refused.get(_TRIED.name)
    if scope == "cgroup" and refusal == NO_COUNTER:
        # Version 1 has it there, or no controller was handed down from the root since the machine was started.
        return Refusal("not supported", "the hierarchy of its control group has no perf_event controller")
    return refusal


# Which of the processor's units counts on which CPUs: hybrid processors have one for each kind of core.

ELSEWHERE = Refusal(
    "not supported", "this event is one of the processor's other kind of core, on which the member does not run"
)

Units = Mapping[int, frozenset[int]]  # the number that events name a unit by -> the CPUs that it counts on


def core_units(root: Path = Path("/")) -> Units:
    """The units of cores, which list their CPUs; those of whole packages list none."""
    found = {}
    for file in (root / PERF_DEVICES).glob("*/cpus"):
        number = read_text(file.parent / "type")
        if number and number.strip().isdigit():
            found[int(number)] = frozenset(cpus_in(file))
    return found


def counting_on(events: Iterable[Event], cpus: Sequence[int], known: Units) -> list[Event]:
    """The events that can count on any of these CPUs, each as the units of these CPUs know it."""
    here = (replace(event, attrs=tuple(attr for attr in event.attrs if _counts(attr, cpus, known))) for event in events)
    return [event for event in here if event.attrs]


def kinds_of_cores(cpus: Sequence[int], root: Path = Path("/")) -> list[int]:
    """Return one CPU for each set of units that count on these CPUs; processors with one kind of core have one."""
    by_unit = {file.parent.name: cpus_in(file) for file in (root / PERF_DEVICES).glob("*/cpus")}
    first_cpus: dict[frozenset[str], int] = {}
    for cpu in cpus:
        first_cpus.setdefault(frozenset(name for name, counted in by_unit.items() if cpu in counted), cpu)
    return list(first_cpus.values())


def cpus_in(file: Path) -> list[int]:
    """The CPUs that a file of the kernel lists."""
    word = read_text(file)
    return parse(word, file.name) if word else []


def _counts(attr: Attr, cpus: Sequence[int], known: Units) -> bool:
    if attr.kind in (HARDWARE, HW_CACHE) and not attr.config >> 32:
        return True  # it names no unit: the kernel takes the one of the CPU
    return attr.unit not in known or not known[attr.unit].isdisjoint(cpus)
