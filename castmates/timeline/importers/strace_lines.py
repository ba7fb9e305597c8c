"""The lines of strace's output: whose, when, and which call, signal or end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from castmates.timeline.importers.account import Account
from castmates.timeline.importers.lines import Columns, Ints, Words, integers, nanoseconds, taken_apart, where

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
        from castmates.errors import CastmatesError

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
