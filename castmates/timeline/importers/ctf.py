"""Reads traces in the Common Trace Format 1.8, which LTTng writes, by way of babeltrace2.

Each trace of the folder (kernel, user space by user or by process) is read by itself: all of them are on LTTng's one
clock, CLOCK_MONOTONIC.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.timeline.importers.ctf_events import Reading
from castmates.timeline.importers.kernel import KernelEvents
from castmates.timeline.importers.kernel_timeline import KernelTimeline
from castmates.timeline.importers.lines import Progress, blocks_of, head
from castmates.timeline.importers.programs import needed, output_of
from castmates.timeline.importers.record import record
from castmates.timeline.model import Making, Timeline
from castmates.timeline.registry import Registry

SOURCE, PROGRAM = "lttng", "babeltrace2"
METADATA = "metadata"
MAGICS = (b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57", b"/* CTF ")  # packets of metadata, and plain text
MONOTONIC = "monotonic"
SECOND = 10**9
_CLOCK = re.compile(r"\bclock\s*\{(.*?)\n?\}\s*;", re.S)
_KEY = re.compile(r'\b(\w+)\s*=\s*(?:"([^"]*)"|(-?\d+))\s*;')
_DISCARDED = re.compile(r"discarded\s+(\d+)\s+event")


@dataclass(frozen=True)
class Clock:
    """The clock of a trace."""

    name: str
    frequency: int
    offset_ns: int  # what has to be added to its time for CLOCK_REALTIME


def recognises(path: Path) -> bool:
    """Whether a folder has traces in this format."""
    return path.is_dir() and bool(traces_in(path))


def traces_in(path: Path) -> list[Path]:
    """The folders of traces in a folder, at most five levels below it."""
    found = []
    for folder, folders, files in os.walk(path):
        if len(Path(folder).relative_to(path).parts) >= 5:
            folders.clear()
        folders.sort()
        if METADATA in files and head(Path(folder) / METADATA, 8).startswith(MAGICS):
            found.append(Path(folder))
    return found


def read(path: Path, progress: Progress) -> Timeline:
    """Read all traces of a folder."""
    program, traces = needed(PROGRAM, path), traces_in(path)
    events, clocks = KernelEvents(), [clock_of(program, trace) for trace in traces]
    if len(set(clocks)) > 1:
        raise CastmatesError(f"{path}: the traces in this folder have different clocks; convert each trace by itself.")
    clock, sizes, lost = clocks[0], [_size(trace) for trace in traces], 0
    threadless = 0
    for trace, size in zip(traces, sizes, strict=True):
        reading = Reading(events, clock.frequency)
        lost += output_of(
            _command(program, trace),
            trace,
            lambda text, reading=reading, trace=trace: reading.add_all(blocks_of(text, str(trace))),  # type: ignore[misc]
            _discarded,
        )
        threadless += reading.threadless
        progress(size)
    if not events.account.read:
        raise CastmatesError(f"{path}: there are no events in this trace.")
    events.account.lost += lost
    making = Making()
    kernel = KernelTimeline(making, Registry(making), events, SOURCE)
    kernel.fill()
    missing = ["arguments of system calls are not in the timeline", *kernel.missing]
    if lost:
        missing.append(f"{lost} events were lost, and it is not known when: states may be those before such a gap")
    if threadless:
        missing.append(
            f"{threadless} events have no thread, so that begins and ends are notes; record with "
            "`lttng add-context -u -t vtid -t vpid -t procname`"
        )
    making.about = record(path, SOURCE, events.account, _words(clock), sum(sizes), missing, clocks=_pair(clock))
    return making.made()


def clock_of(program: str, trace: Path) -> Clock:
    """The clock that a trace's metadata declares."""
    done = subprocess.run([program, "-o", "ctf-metadata", str(trace.absolute())], check=False, capture_output=True)
    text = done.stdout.decode("utf-8", "replace")
    found = _CLOCK.search(text)
    if done.returncode or found is None:
        why = "it declares no clock" if not done.returncode else "its metadata are cut or damaged"
        raise CastmatesError(f"{trace}: this trace cannot be read: {why}.")
    keys = {key: word or number for key, word, number in _KEY.findall(found[1])}
    frequency = int(keys.get("freq", SECOND))
    if frequency <= 0:
        raise CastmatesError(f"{trace}: this trace cannot be read: its clock has the frequency {frequency}.")
    offset = int(keys.get("offset_s", 0)) * SECOND + int(keys.get("offset", 0)) * SECOND // frequency
    return Clock(keys.get("name", ""), frequency, offset)


def _command(program: str, trace: Path) -> Sequence[str]:
    return [program, "--clock-cycles", "--no-delta", "--names=all", "--fields=", str(trace.absolute())]


def _discarded(said: str) -> int:
    """How many events the tracer could not keep, as babeltrace2 reports it."""
    return sum(int(number) for number in _DISCARDED.findall(" ".join(said.split())))


def _words(clock: Clock) -> str:
    return "CLOCK_MONOTONIC" if clock.name == MONOTONIC else f"the trace's clock '{clock.name}'"


def _pair(clock: Clock) -> list[dict[str, Any]]:
    """The pair of clocks that the metadata have: the same moment on both."""
    if not clock.offset_ns:
        return []
    return [{"at": "metadata", "steady_ns": 0, "real_ns": clock.offset_ns, "bracket_ns": 0}]


def _size(trace: Path) -> int:
    return sum(file.stat().st_size for file in trace.iterdir() if file.is_file())
