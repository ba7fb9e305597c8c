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
from castmates.timeline.importers.account import Account
from castmates.timeline.importers.lines import Ints, Progress, blocks
from castmates.timeline.importers.nesting import fitted
from castmates.timeline.importers.record import categories, record
from castmates.timeline.importers.strace_lines import BEGUN, MARK, OF_DAY, RELATIVE, RESUMED, WHOLE, Lines, Parsed
from castmates.timeline.model import Making, Timeline
from castmates.timeline.registry import Registry

SOURCE = "strace"
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
    making = Making()
    _fill(making, Registry(making), parsed, account)
    missing = ["arguments of system calls are not in the timeline", "strace does not see when threads run"]
    clock = CLOCKS.get(parsed.clock, "CLOCK_REALTIME")
    making.about = record(path, SOURCE, account, clock, sum(file.stat().st_size for file in files), missing)
    return making.made()


def _fill(making: Making, registry: Registry, parsed: Parsed, account: Account) -> None:
    """Add the calls, signals and ends, thread by thread."""
    table = pd.DataFrame(dict(parsed.columns))
    rows = table.take(np.argsort(table["tid"].to_numpy(), kind="stable")).reset_index(drop=True)  # lines stay in order
    names = {tid: f"thread {tid}" if tid >= 0 else UNNAMED for tid in map(int, np.unique(rows["tid"]))}
    tracks = {tid: registry.thread(tid, name=name) for tid, name in names.items()}
    rows["track"] = rows["tid"].map(tracks)
    rows["last"] = rows.groupby("tid")["t"].transform("max")
    mark = rows["kind"] == MARK
    _calls(making, rows[~mark].reset_index(drop=True), parsed, account)
    _marks(making, rows[mark], parsed, account)


def _calls(making: Making, rows: pd.DataFrame, parsed: Parsed, account: Account) -> None:
    """Intervals of the calls whose duration is known, and instants of the others."""
    kind, t = rows["kind"].to_numpy(), rows["t"].to_numpy(np.int64)
    resumed = _resumed(rows)
    account.use("calls on one line", int((kind == WHOLE).sum()))
    account.use("calls that are resumed", int((kind == BEGUN).sum()))
    account.use("resumptions", int(resumed.sum()))
    account.leave("resumptions without a beginning", int((kind == RESUMED).sum() - resumed.sum()))
    chosen = np.flatnonzero(kind != RESUMED)
    whole, back = kind[chosen] == WHOLE, resumed[chosen]
    result = chosen + back  # the line with the result
    following = _following(rows)[chosen]
    end = np.where(whole, t[chosen] + rows["length"].to_numpy()[chosen], rows["last"].to_numpy()[chosen])
    timed = rows["length"].to_numpy()[result]  # by strace itself, before it writes the line
    resumed_at = np.where(timed >= 0, np.minimum(t[chosen] + timed, t[result]), t[result])
    end = np.where(back, resumed_at, np.minimum(end, following))  # durations are rounded
    known = ~whole | (rows["length"].to_numpy()[chosen] >= 0)
    columns: dict[str, Any] = {
        "track": rows["track"].to_numpy(np.int64)[chosen],
        "name": categories(rows["name"].to_numpy()[chosen], parsed.names),
        "value": rows["value"].to_numpy()[result],
        "detail": _details(rows["error"].to_numpy()[result], ~(whole | back), parsed.errors),
    }
    spans, moments = ({name: column[some] for name, column in columns.items()} for some in (known, ~known))
    begin = t[chosen][known]
    depth, until, _ = fitted(spans["track"], begin, np.maximum(end[known], begin))  # where the time of day went back
    making.intervals(t0_ns=begin, t1_ns=until, kind="syscall", depth=depth, source=SOURCE, **spans)
    if not known.all():
        making.instants(t_ns=t[chosen][~known], kind="syscall", source=SOURCE, **moments)


def _marks(making: Making, rows: pd.DataFrame, parsed: Parsed, account: Account) -> None:
    """Instants of signals, and of the ends of threads."""
    names = rows["name"].to_numpy()
    is_signal = np.array([name.startswith(("SIG", "stopped")) for name in parsed.names] or [False])[names]
    making.instants(
        t_ns=rows["t"].to_numpy(),
        track=rows["track"].to_numpy(),
        kind=np.where(is_signal, "signal", "exit"),
        name=categories(names, parsed.names),
        source=SOURCE,
    )
    account.use("signals", int(is_signal.sum()))
    account.use("ends of threads", int((~is_signal).sum()))


def _resumed(rows: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which lines begin a call that the thread's next line resumes."""
    kind, name, tid = (rows[column].to_numpy() for column in ("kind", "name", "tid"))
    found = np.zeros(len(rows), bool)
    found[:-1] = (kind[:-1] == BEGUN) & (kind[1:] == RESUMED) & (tid[1:] == tid[:-1]) & (name[1:] == name[:-1])
    return found


def _following(rows: pd.DataFrame) -> Ints:
    """The time of the next call of the same thread."""
    t, tid = rows["t"].to_numpy(np.int64), rows["tid"].to_numpy()
    found = np.full(len(t), np.iinfo(np.int64).max)
    found[:-1][tid[1:] == tid[:-1]] = t[1:][tid[1:] == tid[:-1]]
    return np.asarray(np.maximum(found, t), np.int64)


def _details(error: Ints, is_open: npt.NDArray[np.bool_], errors: list[str]) -> pd.Categorical:
    """The error of a call, or that it did not return."""
    return categories(np.where(is_open, len(errors), error), [*errors, "did not return"])
