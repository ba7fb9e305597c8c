"""Reads what strace writes: system calls with their results, signals, and how threads ended.

Its times are of CLOCK_REALTIME (-ttt), of a day (-tt), or differences (-r).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.errors import CastmatesError
from castmates.timeline.cells import categories
from castmates.timeline.importers.account import Account
from castmates.timeline.importers.lines import Ints, Progress, blocks
from castmates.timeline.importers.nesting import fitted
from castmates.timeline.importers.record import record
from castmates.timeline.importers.strace_lines import BEGUN, MARK, OF_DAY, RELATIVE, RESUMED, WHOLE, Lines, Parsed
from castmates.timeline.model import Making, Timeline
from castmates.timeline.registry import Registry

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
