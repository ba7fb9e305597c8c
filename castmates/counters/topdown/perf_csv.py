"""Read `perf stat -x SEPARATOR`.

The columns depend on the options (an interval's time, a CPU, a control group) and on the version (headings of metric
groups from 6.5 on). Event names may hold the separator, and so may numbers where the locale has a decimal comma.
"""

import math
import re
from dataclasses import dataclass

from castmates.errors import CastmatesError
from castmates.protocols import Status

# What `perf stat` prints, whatever its version.

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


_SEPARATORS = (";", "\t", "|", ",", ":")
_VALUE = re.compile(r"-?\d+([.,]\d+)?|" + f"{NOT_COUNTED}|{NOT_SUPPORTED}")
_PLACE = re.compile(r"CPU\d+|S\d+(-D\d+)?(-(C|CLS)\d+|-L\d+-ID\d+)?|N\d+")
_THREAD = re.compile(r".*\S-\d+")
_OPEN_PMU = re.compile(r"[\w.-]+/[^/]*")  # the part of cpu/event=1,cmask=2/ that stands before a comma
_HEAD = {"time", "core", "cpus", "cpu", "ctrs", "socket", "die", "cluster", "cache", "node", "comm-pid", ""}
_THRESHOLDS = {"good", "less good", "nearly bad", "bad", "unknown"}


def parse_csv(text: str, separator: str | None = None) -> Report:
    """Read what one perf printed; the separator is found where it is not given."""
    rows = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    if not rows:
        raise CastmatesError("perf stat printed no count: expected lines of CSV.")
    cut = separator or _separator(rows[0][1])
    reader = _Reader(cut)
    header = _header(rows[0][1].split(cut))
    if header:
        for row, line in rows[1:]:
            reader.only_metrics(row, line.split(cut), header)
    else:
        for row, line in rows:
            reader.line(_Fields(row, line, cut))
    if not reader.lines and not reader.metrics:
        raise CastmatesError("perf stat printed headings and no count.")
    return Report(tuple(reader.lines), tuple(reader.metrics))


def _separator(line: str) -> str:
    for separator in _SEPARATORS:
        if line.count(separator) >= 3 or (line.rstrip().endswith(separator) and separator != ":"):
            return separator
    raise CastmatesError(
        f"'{line.strip()[:40]}' is not what perf stat prints: expected JSON (-j), or CSV (-x,) of four columns or more."
    )


def _header(fields: list[str]) -> list[str]:
    """Return the headings where metrics alone were printed; none else."""
    named = [field.strip() for field in fields]
    return named if named[0] and not any(_VALUE.fullmatch(field) or _PLACE.fullmatch(field) for field in named) else []


class _Fields:
    """The fields of a line, taken one by one."""

    def __init__(self, row: int, line: str, cut: str) -> None:
        self.row, self.cut = row, cut
        self._fields = [field.strip() for field in line.split(cut)]
        self._at = 0

    def peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._fields[at] if at < len(self._fields) else ""

    def left(self) -> list[str]:
        return self._fields[self._at :]

    def take(self) -> str:
        field = self.peek()
        self._at += 1
        return field

    def take_number(self) -> str:
        """Return a number; with the next field, where a decimal comma was taken for a separator."""
        field = self.take()
        if self.cut == "," and re.fullmatch(r"-?\d+", field) and re.fullmatch(r"\d+%?", self.peek()):
            return f"{field}.{self.take()}"
        return field

    def take_event(self) -> str:
        event = self.take()
        while _OPEN_PMU.fullmatch(event) and "/" in self.cut.join(self.left()):
            event += self.cut + self.take()
        return event

    def wrong(self, expected: str) -> CastmatesError:
        line = self.cut.join(self._fields)[:60]
        return CastmatesError(
            f"line {self.row} is not CSV of perf stat: expected {expected} in '{line}'; give what `perf stat -x` wrote."
        )


class _Reader:
    """Reads line after line; a metric without an event belongs to what stands above it."""

    def __init__(self, cut: str) -> None:
        self.lines: list[Line] = []
        self.metrics: list[Metric] = []
        self._cut = cut
        self._group = self._pmu = ""
        self._running: float | None = None

    def line(self, fields: _Fields) -> None:
        """Read a line with its event, a further metric of it, or a heading."""
        place = _place(fields)
        if fields.peek():
            self._event(fields, place)
        else:
            self._further(fields, place)

    def only_metrics(self, row: int, fields: list[str], header: list[str]) -> None:
        """Read a line of metrics alone, below their headings."""
        if len(fields) != len(header):
            raise CastmatesError(f"line {row} of perf stat's CSV has {len(fields)} columns, its heading {len(header)}.")
        cells = list(zip(header, (field.strip() for field in fields), strict=True))
        time = next((number(field) for name, field in cells if name == "time"), None)
        where = next((field for name, field in cells if name in _HEAD - {"time", "cpus", "ctrs", ""}), "")
        for name, field in cells:
            if name not in _HEAD:
                unit, plain = unit_and_name(name)
                self.metrics.append(Metric(plain, number(field), unit, place=Place(time, where)))

    def _event(self, fields: _Fields, place: Place) -> None:
        text = fields.take_number()
        if not _VALUE.fullmatch(text):
            raise fields.wrong("a count")
        unit, event = fields.take(), fields.take_event()
        if not event:
            raise fields.wrong("the name of an event")
        spread = None
        while not re.fullmatch(r"\d+", fields.peek()) and fields.left():
            if re.fullmatch(r"\d+([.,]\d+)?%", fields.peek()):
                spread = number(fields.take().rstrip("%"))
            else:
                place = Place(place.t_s, place.where, fields.take())
        if self._cut == "," and re.fullmatch(r"\d+%", fields.peek(1)):
            spread = number(fields.take_number().rstrip("%"))
        runtime, running = number(fields.take()), number(fields.take_number())
        if runtime is None or running is None:
            raise fields.wrong("the time that it was counted, and the share")
        value, status = counted(text, number(text), running / 100)
        known = running / 100 if value is not None else None
        self.lines.append(
            Line(event, value, status, unit, known, int(runtime), None if spread is None else spread / 100, place)
        )
        self._group, self._running, self._pmu = "", known, pmu_of(event)
        metric, text = fields.take_number(), fields.take()
        if text:
            self._metric(metric, text, place)

    def _further(self, fields: _Fields, place: Place) -> None:
        running = None
        if re.fullmatch(r"\d+", fields.peek(1)) and number(fields.peek(2)) is not None:
            fields.take(), fields.take()
            share = number(fields.take_number())
            running = None if share is None else share / 100
        cells = fields.left()
        cells = cells[:-1] if cells and cells[-1] in _THRESHOLDS else cells
        *before, last = cells or [""]
        if not last:
            raise fields.wrong("a metric or the heading of a group")
        if running is not None and not any(before) and "  " not in last and "%" not in last:
            self._group, self._running, self._pmu = last, running, pmu_of(last)
            return
        self._running = running if running is not None else self._running
        self._metric(before[-1] if before else "", last, place)

    def _metric(self, value: str, text: str, place: Place) -> None:
        unit, name = unit_and_name(text)
        self.metrics.append(Metric(name, number(value), unit, self._group, self._running, self._pmu, place))


def _place(fields: _Fields) -> Place:
    """Take what stands before the count."""
    time = None
    if re.fullmatch(r"\d+\.\d{6,9}", fields.peek()):
        time = number(fields.take())
    elif fields.cut == "," and re.fullmatch(r"\d+", fields.peek()) and re.fullmatch(r"\d{9}", fields.peek(1)):
        time = number(fields.take_number())
    if fields.peek() == "summary":
        fields.take()
    where = ""
    if _PLACE.fullmatch(fields.peek()):
        where = fields.take()
        if not where.startswith("CPU") and re.fullmatch(r"\d+", fields.peek()) and _counts_follow(fields):
            fields.take()  # how many CPUs were added up
    elif _THREAD.fullmatch(fields.peek()) and not _VALUE.fullmatch(fields.peek()):
        where = fields.take()
    return Place(time, where)


def _counts_follow(fields: _Fields) -> bool:
    return not fields.peek(1) or bool(_VALUE.fullmatch(fields.peek(1)))
