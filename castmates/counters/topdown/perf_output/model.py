"""What `perf stat` prints, whatever its version."""

import math
import re
from dataclasses import dataclass

from castmates.protocols import Status

# Versions before 6.3 or so cut the share to whole per cent, so that 99.99 % reads 99.
WHOLE = 0.99
NOT_SUPPORTED, NOT_COUNTED = "<not supported>", "<not counted>"


@dataclass(frozen=True, slots=True)
class Place:
    """What a line is about, where not all was added up."""

    t_s: float | None = None  # end of the interval, of -I
    where: str = ""  # CPU3, S0-D0-C1, N0, "stream-4711" (a thread)
    cgroup: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """The count of one event."""

    event: str
    value: float | None  # None unless it was counted or scaled
    status: Status
    unit: str = ""
    running: float | None = None  # share of its time for which it was counted
    runtime_ns: int | None = None
    spread: float | None = None  # of several runs (-r), relative to their mean
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Metric:
    """A value that perf computed from its counts."""

    name: str
    value: float | None  # None where perf prints nan or none, or nothing
    unit: str = ""  # "%", "percent of slots"; "" where the name is all
    group: str = ""  # the heading that it stands below, such as "TopdownL1 (cpu_core)"
    running: float | None = None  # of the event that it stands beside, or the heading
    pmu: str = ""  # cpu_core, cpu_atom of hybrid processors
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Report:
    """All that was printed."""

    lines: tuple[Line, ...]
    metrics: tuple[Metric, ...]


def counted(text: str, value: float | None, running: float | None) -> tuple[float | None, Status]:
    """Separate what was not supported or not counted from what was, and what perf scaled up."""
    if text == NOT_SUPPORTED:
        return None, "not supported"
    if text == NOT_COUNTED or value is None:
        return None, "not counted"
    return value, "counted" if running is None or running >= WHOLE else "scaled"


def number(text: str) -> float | None:
    """Return a number with a point or, as some locales have it, a comma; None for nan, inf and none."""
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def unit_and_name(text: str) -> tuple[str, str]:
    """`%  tma_retiring` is a metric with a unit; `insn per cycle` is all one name."""
    unit, gap, name = text.strip().rpartition("  ")
    return (unit.strip(), name) if gap else ("", name)


def pmu_of(text: str) -> str:
    """Return the kind of core in `TopdownL1 (cpu_atom)` or `cpu_atom/TOPDOWN_RETIRING.ALL/`; "" where none is named."""
    match = re.search(r"\bcpu_\w+(?=[/)])", text)
    return match[0] if match else ""
