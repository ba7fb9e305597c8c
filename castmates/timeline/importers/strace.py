"""Reads what strace writes: system calls with their results, signals, and how threads ended.

Its times are of CLOCK_REALTIME (-ttt), of a day (-tt), or differences (-r).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from castmates.errors import CastmatesError
from castmates.timeline.importers.kernel import Account, record
from castmates.timeline.importers.lines import (
    Columns,
    Ints,
    Progress,
    Words,
    blocks,
    integers,
    nanoseconds,
    taken_apart,
    where,
)
from castmates.timeline.model import Making, Registry, Timeline, categories
from castmates.traces.nesting import fitted

WHOLE, BEGUN, RESUMED, MARK = range(4)  # kinds of lines
SECONDS, OF_DAY, RELATIVE = "seconds", "time of day", "relative"  # how times are written
DAY = 86_400 * 10**9
NO_TIME = -1
_LINE = (
    r"^(?:\[pid\s+(?P<bracket>\d{1,10})(?:<[^>]*>)?\] |(?P<pid>\d{1,7})(?:<[^>]*>)?\s+)?"
    r" *(?:(?:(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)|(?P<whole>\d{1,10}))(?:\.(?P<fraction>\d+))? +)?"
    r"(?:\(\+ *[\d.]+\) +)?"
    r"(?:(?P<call>[\w?]+)\(|<\.\.\. (?P<resumed>[\w?]+) resumed>|(?P<mark>\+\+\+|---) )(?P<more>.*)$"
)
_RESULT = r"\) *= (?P<value>-?\d+|0x[0-9a-f]+|\?)(?P<after>[^=]*)$"
_DURATION = r"<(?P<whole>\d+)\.(?P<fraction>\d+)>$"
_ERROR = r"^(?:<[^>]*>)? (?P<error>E[A-Z0-9_]+)"
_EVENT = r"^(?P<event>SIG\w+|exited with \d+|killed by \w+|stopped by \w+|superseded by execve)"
_CUT = r"<unfinished \.\.\.>\)?(?: = \?)?$|<(?:unavailable|detached) \.\.\.>$"


@dataclass(frozen=True)
class Parsed:
    """All lines that mean something, column by column, in the order of the file."""

    columns: dict[str, npt.NDArray[Any]]  # emptied once they are in a timeline
    names: list[str]  # of calls and events
    errors: list[str]
    clock: str


class Lines:
    """Takes in blocks of lines."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.names, self.errors = Words(), Words()
        self._columns = Columns(
            tid=np.int32, t=np.int64, kind=np.int8, name=np.int32, value=np.float64, error=np.int32, length=np.int64
        )
        self._clocks: set[str] = set()

    def add(self, lines: pa.StringArray, tid: int = -1) -> None:
        """Take in some lines, of the thread that the file is of where it is of one."""
        lines = lines.filter(pc.not_equal(lines, ""))
        self._account.read += len(lines)
        matched, parts = taken_apart(lines, _LINE)
        self._leave(where(lines, ~matched))
        if not len(parts):
            return
        group = {name: parts.field(name) for name in (each.name for each in parts.type)}
        kind = np.select([_there(group["resumed"]), _there(group["mark"])], [RESUMED, MARK], WHOLE)
        more = group["more"]
        kind[(kind == WHOLE) & _cut(more)] = BEGUN
        who = integers(pc.if_else(pc.equal(group["bracket"], ""), group["pid"], group["bracket"]), tid)
        named = pc.if_else(pc.equal(group["call"], ""), group["resumed"], group["call"])
        value, error, length = self._results(more)
        self._columns.add(
            tid=who,
            t=self._times(group),
            kind=kind,
            name=self.names.take(pc.if_else(pa.array(kind == MARK), _event(more), named)),
            value=value,
            error=error,
            length=length,
        )

    def _leave(self, lines: pa.StringArray) -> None:
        ours = pc.match_substring_regex(lines, r"^(\[pid +\d+\] |\d+ +)?strace: ").to_numpy(zero_copy_only=False)
        self._account.leave("messages of strace itself", int(ours.sum()))
        self._account.leave("lines that strace does not write", int((~ours).sum()))

    def _times(self, group: Mapping[str, pa.Array]) -> Ints:
        of_day, numbers = _there(group["hour"]), _there(group["whole"])
        day = (integers(group["hour"], 0) * 60 + integers(group["minute"], 0)) * 60 + integers(group["second"], 0)
        times = nanoseconds(group["whole"], group["fraction"])
        times[of_day] += day[of_day] * 10**9
        times[~(of_day | numbers)] = NO_TIME
        if of_day.any():
            self._clocks.add(OF_DAY)
        if numbers.any():
            long = pc.utf8_length(group["whole"]).to_numpy(zero_copy_only=False)[numbers] >= 9
            self._clocks |= ({SECONDS} if long.any() else set()) | ({RELATIVE} if not long.all() else set())
        return times

    def _results(self, more: pa.Array) -> tuple[npt.NDArray[np.float64], Ints, Ints]:
        """What calls returned (NaN for none), their errors, and how long they took (-1 where that is not written)."""
        value, error = np.full(len(more), np.nan), np.full(len(more), self.errors.number(""), np.int64)
        length = np.full(len(more), -1, np.int64)
        rows, found = taken_apart(more, _RESULT)
        place = np.flatnonzero(rows)
        texts = found.field("value")
        plain = pc.match_substring_regex(texts, r"^-?\d{1,18}$").to_numpy(zero_copy_only=False)
        value[place[plain]] = where(texts, plain).cast(pa.float64()).to_numpy(zero_copy_only=False)
        hexadecimal = pc.starts_with(texts, "0x").to_numpy(zero_copy_only=False)
        value[place[hexadecimal]] = integers(where(texts, hexadecimal), base=16)
        after = found.field("after")
        failed, words = taken_apart(after, _ERROR)
        error[place[failed]] = self.errors.take(words.field("error"))
        timed, took = taken_apart(after, _DURATION)
        length[place[timed]] = nanoseconds(took.field("whole"), took.field("fraction"))
        return value, error, length

    def parsed(self, path: str) -> Parsed:
        """All lines; times that are written as differences or without a date are made to grow."""
        columns = dict(self._columns.whole())
        if len(columns["t"]) and (columns["t"] == NO_TIME).any():
            raise CastmatesError(
                f"{path}: lines of this strace have no times; record with `strace -f -ttt -T -o FILE`."
            )
        if len(self._clocks) > 1:
            raise CastmatesError(f"{path}: the lines of this strace have times of several kinds; record with -ttt.")
        clock = next(iter(self._clocks), SECONDS)
        if clock == RELATIVE:
            columns["t"] = np.cumsum(columns["t"])
        elif clock == OF_DAY:
            columns["t"] = columns["t"] + DAY * np.cumsum(np.diff(columns["t"], prepend=columns["t"][:1]) < -DAY // 2)
        return Parsed(columns, self.names.known(), self.errors.known(), clock)


def _there(words: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.not_equal(words, "").to_numpy(zero_copy_only=False)
    return found


def _cut(more: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.match_substring_regex(more, _CUT).to_numpy(zero_copy_only=False)
    return found


def _event(more: pa.Array) -> pa.Array:
    """A signal's name, or how a thread ended."""
    return pc.coalesce(pc.struct_field(pc.extract_regex(more, _EVENT), "event"), pa.scalar("other"))


SOURCE = "strace"
Rows = dict[str, Any]  # columns
UNNAMED = "the traced program"  # lines of a program with one thread name none
LINE = re.compile(
    rb"^(\[pid +\d+(<[^>]*>)?\] |\d{1,7}(<[^>]*>)? +)? *(\d[\d:.]* +)?(\(\+ *[\d.]+\) +)?"
    rb"(\w+\(.*(\) *= (-?\d|0x|\?)|<unfinished \.\.\.>)|<\.\.\. \w+ resumed>|\+\+\+ (exited|killed)|--- SIG\w+ \{)",
    re.M,
)
CLOCKS = {OF_DAY: "time of day, from midnight", RELATIVE: "nanoseconds from the first line"}


def recognises(beginning: bytes) -> bool:
    """Whether the first lines are those of strace."""
    return LINE.search(beginning) is not None and b"\0" not in beginning


def files_of(path: Path) -> Mapping[Path, int]:
    """The files, and the thread that each one is of: -1 for a file of all threads."""
    if path.is_file():
        return {path: -1}
    found = path.iterdir() if path.is_dir() else path.parent.glob(f"{path.name}.*")
    return {file: int(file.suffix[1:]) for file in sorted(found) if file.suffix[1:].isdigit() and file.is_file()}


def read(path: Path, progress: Progress) -> Timeline:
    """Read a file, or the files of `strace -ff` by their folder or their common name."""
    account, files = Account(), files_of(path)
    lines = Lines(account)
    for file, tid in files.items():
        for block in blocks(file, progress):
            lines.add(block, tid)
    parsed = lines.parsed(str(path))
    if not len(parsed.columns["t"]):
        raise CastmatesError(
            f"{path}: there are no system calls in this file; record with `strace -f -ttt -T -o FILE`."
        )
    if len(files) > 1 and parsed.clock == RELATIVE:
        raise CastmatesError(f"{path}: differences of times (-r) of several files are on no common clock; use -ttt.")
    missing = ["arguments of system calls are not in the timeline", "strace does not see when threads run"]
    if not (parsed.columns["length"] >= 0).any():
        missing.append("how long system calls took: the file does not have it; record with -T")
    making = Making()
    _fill(making, Registry(making), parsed, account)
    clock = CLOCKS.get(parsed.clock, "CLOCK_REALTIME")
    making.about = record(path, SOURCE, account, clock, sum(file.stat().st_size for file in files), missing)
    return making.made()


def _fill(making: Making, registry: Registry, parsed: Parsed, account: Account) -> None:
    """Add the calls, signals and ends, in the order of the file, which is that of time."""
    rows = parsed.columns
    tids, who = np.unique(rows["tid"], return_inverse=True)
    names = [f"thread {tid}" if tid >= 0 else UNNAMED for tid in tids.tolist()]
    tracks = [registry.thread(tid, name=name) for tid, name in zip(tids.tolist(), names, strict=True)]
    rows["track"] = np.array(tracks, np.int32)[who]
    ends = np.zeros(len(tids), np.int64)
    np.maximum.at(ends, who, rows["t"])
    last = ends[who]
    del who  # as large as the file's lines are many
    _marks(making, rows, parsed, account)
    _calls(making, rows, last, parsed, account)


def _calls(making: Making, rows: Rows, last: Ints, parsed: Parsed, account: Account) -> None:
    """Intervals of the calls whose duration is known, and instants of the others."""
    kind, t = rows["kind"], rows["t"]
    result, following = _results(rows)
    chosen = np.flatnonzero((kind == WHOLE) | (kind == BEGUN))
    result, whole, back = result[chosen], kind[chosen] == WHOLE, result[chosen] != chosen
    account.use("calls on one line", int(whole.sum()))
    account.use("calls that are resumed", int((~whole).sum()))
    account.use("resumptions", int(back.sum()))
    account.leave("resumptions without a beginning", int((kind == RESUMED).sum() - back.sum()))
    begin, took = t[chosen], rows["length"][result]  # as strace itself has measured it
    end = np.where(whole, begin + took, last[chosen])
    end = np.where(back, t[result], np.minimum(end, following[chosen]))  # durations are rounded
    end = np.where(back & (took >= 0), np.minimum(begin + took, end), end)
    known = ~whole | (took >= 0)
    columns: dict[str, Any] = {
        "track": rows["track"][chosen],
        "name": categories(rows["name"][chosen], parsed.names),
        "value": rows["value"][result],
        "detail": _details(rows["error"][result], ~(whole | back), parsed.errors),
    }
    rows.clear()  # large
    del result, following, took, last
    if not known.all():
        making.instants(t_ns=begin[~known], kind="syscall", source=SOURCE, **_some(columns, ~known))
        begin, end, columns = begin[known], end[known], _some(columns, known)
    # Where the time of day went back, calls could seem to overlap.
    depth, end, _ = fitted(columns["track"], begin, np.maximum(end, begin))
    making.intervals(t0_ns=begin, t1_ns=end, kind="syscall", depth=depth, source=SOURCE, **columns)


def _some(columns: Mapping[str, Any], rows: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {name: column[rows] for name, column in columns.items()}


def _marks(making: Making, rows: Rows, parsed: Parsed, account: Account) -> None:
    """Instants of signals, and of the ends of threads."""
    places = np.flatnonzero(rows["kind"] == MARK)
    names = rows["name"][places]
    is_signal = np.array([name.startswith(("SIG", "stopped")) for name in parsed.names] or [False])[names]
    making.instants(
        t_ns=rows["t"][places],
        track=rows["track"][places],
        kind=np.where(is_signal, "signal", "exit"),
        name=categories(names, parsed.names),
        source=SOURCE,
    )
    account.use("signals", int(is_signal.sum()))
    account.use("ends of threads", int((~is_signal).sum()))


def _results(rows: Rows) -> tuple[Ints, Ints]:
    """By line: where its call's result stands, on this line or a later one, and when its thread calls next."""
    calls = np.flatnonzero(rows["kind"] != MARK)
    order = calls[np.argsort(rows["tid"][calls], kind="stable")]
    this, then = order[:-1], order[1:]
    same = rows["tid"][this] == rows["tid"][then]
    this, then = this[same], then[same]
    following = np.full(len(rows["t"]), np.iinfo(np.int64).max)
    following[this] = np.maximum(rows["t"][then], rows["t"][this])
    resumed = (
        (rows["kind"][this] == BEGUN) & (rows["kind"][then] == RESUMED) & (rows["name"][this] == rows["name"][then])
    )
    result = np.arange(len(rows["t"]))
    result[this[resumed]] = then[resumed]
    return result, following


def _details(error: Ints, is_open: npt.NDArray[np.bool_], errors: list[str]) -> pd.Categorical:
    """The error of a call, or that it did not return."""
    return categories(np.where(is_open, len(errors), error), [*errors, "did not return"])
