"""Read `perf stat -x SEPARATOR`.

The columns depend on the options (an interval's time, a CPU, a control group) and on the version (headings of metric
groups from 6.5 on). Event names may hold the separator, and so may numbers where the locale has a decimal comma.
"""

import re

from castmates.counters.topdown.perf_output.model import (
    NOT_COUNTED,
    NOT_SUPPORTED,
    Line,
    Metric,
    Place,
    Report,
    counted,
    number,
    pmu_of,
    unit_and_name,
)
from castmates.errors import CastmatesError

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
