"""Reads the text of ftrace (/sys/kernel/tracing/trace), of `perf script`, and of trace-cmd, also its trace.dat.

Its times are those of the tracer's clock: CLOCK_MONOTONIC where `mono` was chosen, otherwise a clock of the boot.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from castmates.errors import CastmatesError
from castmates.timeline.importers.ftrace_events import MACHINE, Rows, add
from castmates.timeline.importers.kernel import KernelEvents, record
from castmates.timeline.importers.kernel_timeline import KernelTimeline
from castmates.timeline.importers.lines import (
    Progress,
    blocks,
    blocks_of,
    integers,
    nanoseconds,
    needed,
    output_of,
    taken_apart,
    where,
)
from castmates.timeline.model import Making, Registry, Timeline

SOURCE = "ftrace"
CLOCK = "the tracer's: CLOCK_MONOTONIC where its clock was mono"
_WHO = (
    r"^(?:[\w.]+: +)? *(?P<comm>.*?)(?:-(?P<tid>\d+)|[ ](?P<plain>\d+)(?:/(?P<thread>\d+))?) +"
    r"(?:\( *(?P<tgid>\d+|-+)\) +)?"
)
_LINE = (
    _WHO + r"\[(?P<cpu>\d+)\](?: +[^\s:]{3,12})? +(?P<whole>\d+)\.(?P<fraction>\d+): +"
    r"(?P<event>[\w-]+(?::[\w-]+)?)(?P<mark>: *$|: +| ?\(| -> )(?P<fields>.*)$"
)
# ftrace's form, and that of trace-cmd, which may not know how many
_LOST = r"^CPU:(?P<cpu>\d+) \[(?:LOST (?P<lost>\d+) EVENTS|(?:(?P<dropped>\d+) )?EVENTS DROPPED)\]$"
_FOUND = re.compile(
    rb"^.{1,40}?[- ]\d+(/\d+)? +(\( *[\d-]+\) +)?\[\d+\]( +[^\s:]{3,12})? +\d+\.\d+: +[\w-]+(:[\w-]+)?(:| ?\(| ->)",
    re.M,
)
_TRACER = re.compile(rb"^# tracer: (\w+)", re.M)
_WRITTEN = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")
_COUNTS = re.compile(rb"^.{1,40}?-\d+ +\[\d+\]( +[^\s:]{3,12})? +\d{6,}: \w+:", re.M)


def recognises(beginning: bytes) -> bool:
    """Whether the first lines are events of ftrace, trace-cmd or perf, or the head of ftrace's file."""
    return b"\0" not in beginning and any(each.search(beginning) for each in (_FOUND, _TRACER, _COUNTS))


def read(path: Path, progress: Progress) -> Timeline:
    """Read a file of text."""
    reading = Reading(str(path))
    reading.add_all(blocks(path, progress))
    return reading.timeline(path, SOURCE, path.stat().st_size)


class Reading:
    """Takes in blocks of lines."""

    def __init__(self, name: str) -> None:
        self._name, self._events, self._count = name, KernelEvents(), 0
        self._times = np.empty(0, np.int64)  # of the block's events

    def add_all(self, some: Iterable[pa.StringArray]) -> None:
        """Take in all blocks of lines."""
        for lines in some:
            self.add(lines)

    def add(self, lines: pa.StringArray) -> None:
        """Take in some lines."""
        lines = lines.filter(pc.not_equal(lines, ""))
        comment = pc.match_substring_regex(lines, r"^(#|cpus=|version = |CPU \d+ is empty)").to_numpy(
            zero_copy_only=False
        )
        self._head(where(lines, comment).to_pylist()[:100])
        lines = where(lines, ~comment)
        self._events.account.read += len(lines)
        matched, parts = taken_apart(lines, _LINE)
        if len(parts):
            self._take({field.name: parts.field(field.name) for field in parts.type})
        self._others(where(lines, ~matched), np.cumsum(matched, dtype=np.int64)[~matched])

    def _head(self, lines: list[str]) -> None:
        for line in lines:
            if found := _WRITTEN.search(line):
                self._events.account.lost += int(found[2]) - int(found[1])

    def _others(self, lines: pa.StringArray, after: npt.NDArray[np.int64]) -> None:
        """Lines that are no events: gaps, and the rest; each comes after so many events of the block."""
        matched, parts = taken_apart(lines, _LOST)
        if len(parts):
            lost, dropped = parts.field("lost"), parts.field("dropped")
            count = integers(pc.if_else(pc.equal(lost, ""), dropped, lost))
            at = (
                self._times[np.minimum(after[matched], len(self._times) - 1)]
                if len(self._times)
                else np.zeros_like(count)
            )
            self._events.lost.add(n=self._count, t=at, cpu=integers(parts.field("cpu")), count=count)
            self._events.account.lost += int(np.maximum(count, 0).sum())
            self._events.account.use("LOST", len(count))
        self._events.account.leave("lines that are no events", int((~matched).sum()))

    def _take(self, group: dict[str, pa.Array]) -> None:
        """Give the events of each name to those who know it."""
        count = len(group["cpu"])
        dashed = pc.if_else(pc.equal(group["tid"], ""), group["plain"], group["tid"])
        tid = integers(pc.if_else(pc.equal(group["thread"], ""), dashed, group["thread"]))
        process = pc.if_else(pc.equal(group["thread"], ""), group["tgid"], group["plain"])
        self._processes(tid, process)
        rows = Rows(
            n=np.arange(self._count, self._count + count),
            t=nanoseconds(group["whole"], group["fraction"]),
            cpu=integers(group["cpu"]),
            tid=tid,
            comm=self._events.words.take(pc.utf8_trim_whitespace(group["comm"])),
            mark=group["mark"],
            fields=group["fields"],
        )
        self._count, self._times = self._count + count, rows.t
        names = pc.dictionary_encode(pc.replace_substring_regex(group["event"], r"^[\w-]+:", ""))
        numbers = names.indices.to_numpy(zero_copy_only=False)
        left: Counter[str] = Counter()
        for number, name in enumerate(names.dictionary.to_pylist()):
            chosen = numbers == number
            used = add(self._events, name, rows.where(chosen))
            left[name] += int(chosen.sum()) - used
        for name, some in left.items():
            self._events.account.leave(name, some)

    def _processes(self, tid: npt.NDArray[np.int64], process: pa.Array) -> None:
        known = pc.match_substring_regex(process, r"^\d+$").to_numpy(zero_copy_only=False)
        if known.any():
            found = np.unique(np.stack([tid[known], integers(where(process, known))]), axis=1)
            self._events.processes.update(zip(*found.tolist(), strict=True))

    def timeline(self, path: Path, source: str, size: int) -> Timeline:
        """The timeline of all that was read."""
        if not self._count:
            raise CastmatesError(
                f"{self._name}: there are no events with times in seconds in this file; choose the clock mono "
                "(`trace-cmd record -C mono`), and write what `trace-cmd report`, `perf script` or the file trace show."
            )
        making = Making()
        kernel = KernelTimeline(making, Registry(making), self._events, source)
        kernel.fill()
        missing = ["arguments of system calls are not in the timeline", *kernel.missing]
        if self._events.account.used["sys_enter"]:
            missing.append(f"numbers of system calls were read as those of {MACHINE}")
        making.about = record(path, source, self._events.account, CLOCK, size, missing)
        return making.made()


TRACE_CMD = "trace-cmd"
MAGIC = b"\x17\x08\x44tracing"


def recognises_dat(beginning: bytes) -> bool:
    """Whether a file begins as those of trace-cmd do."""
    return beginning.startswith(MAGIC)


def read_dat(path: Path, progress: Progress) -> Timeline:
    """Read a file."""
    command = [needed(TRACE_CMD, path), "report", "-t", "-i", str(path.absolute())]
    reading = Reading(str(path))
    output_of(command, path, lambda text: reading.add_all(blocks_of(text, str(path))), lambda _: None)
    progress(path.stat().st_size)
    return reading.timeline(path, TRACE_CMD, path.stat().st_size)
