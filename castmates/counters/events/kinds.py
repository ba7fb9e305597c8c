"""Which of the processor's units counts on which CPUs: hybrid processors have one for each kind of core."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from castmates.counters.events.resolving import Event
from castmates.linux.kernel_files import read_text
from castmates.linux.perf_event import HARDWARE, HW_CACHE, PERF_DEVICES, Attr
from castmates.protocols import Refusal
from castmates.study.cpus import parse

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
