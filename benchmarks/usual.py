"""The usual way: fresh processes for every run, one window each; nothing is frozen, rejected or repeated.

The same programs, heartbeats, CPUs and environments as in our launches. Every warm-up and length of window is a piece
of the same recording, and is charged only the seconds of a run that would have ended with it.
"""

import math
import os
import signal
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import beside, scratch
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.machine.lock import machine_lock
from castmates.runner.processes import starts
from castmates.runner.processes.launch import Running, Start, WorkloadFailed, launch
from castmates.study.spec import Cohort, Mix
from castmates.workloads.heartbeat import State

POLL = 0.01
LOOK = 1.0  # seconds between two looks at the heartbeats, as in our runner


@dataclass(frozen=True)
class Choice:
    """When a window opens after everyone was ready, and how long it is open, in seconds."""

    warm_up: float
    length: float


@dataclass(frozen=True)
class Windows:
    """What a run is recorded for."""

    choices: tuple[Choice, ...]
    steps: int  # that the lead should complete, or the window is stretched
    longest: float


@dataclass(frozen=True)
class Run:
    """One run, by choice: the lead's rate (NaN: fewer than two heartbeats) and the machine-seconds it would take."""

    rates: tuple[float, ...]
    seconds: tuple[float, ...]
    start_up: float  # seconds until everyone was ready
    inside: tuple[float, ...]  # seconds that the windows were open


@dataclass(frozen=True)
class _Recording:
    """The lead's heartbeats from when everyone was ready until the last window closed."""

    records: Sequence[tuple[int, int]]
    ready_ns: int
    end_ns: int
    start_up: float


def measure(cohort: Cohort, mix: Mix | None, windows: Windows) -> Run:
    """Run the lead alone, or with the antagonists of a mix."""
    wanted = {cohort.lead.name, *(mix.antagonists if mix else ())}
    lead, everyone = cohort.lead.cpus, {cpu for member in cohort.members for cpu in member.cpus}
    with machine_lock("a run of the usual way (benchmark)"), beside(everyone, set(lead)):
        begin = time.monotonic()
        with scratch(in_memory=True) as place:
            launches = starts.starts(cohort, place, cache_folder())
            try:
                recording = _record([start for start in launches if start.name in wanted], place, windows)
            except WorkloadFailed as failure:
                raise CastmatesError(f"a run of the usual way failed: {failure}") from None
        whole = time.monotonic() - begin
    run = _evaluate(recording, whole, windows)
    if all(math.isnan(rate) for rate in run.rates):
        raise CastmatesError(f"{cohort.lead.name} made fewer than two steps in every window; give longer windows.")
    return run


def _record(launches: Sequence[Start], place: Path, windows: Windows) -> _Recording:
    running: list[Running] = []
    begin = time.monotonic()
    try:
        for start in launches:
            running.append(launch(start, place, place, lambda _name, _pid: None))
        _await_ready(running)
        start_up = time.monotonic() - begin
        lead, ready_ns = running[0], time.monotonic_ns()
        lead.forget_beats()
        end_ns = _watch(lead, ready_ns, windows)
        for one in running:
            if ended := one.ended():
                raise WorkloadFailed.of(one, ended)
    finally:
        _kill(running)
    return _Recording(lead.records, ready_ns, end_ns, start_up)


def _evaluate(recording: _Recording, whole: float, windows: Windows) -> Run:
    opened = [recording.ready_ns + int(choice.warm_up * 1e9) for choice in windows.choices]
    closed = [
        min(closing(recording.records, open_ns, choice.length, windows), recording.end_ns)
        for open_ns, choice in zip(opened, windows.choices, strict=True)
    ]
    edges = list(zip(opened, closed, strict=True))
    return Run(
        rates=tuple(rate_between(recording.records, *edge) for edge in edges),
        seconds=tuple(whole - (recording.end_ns - close_ns) / 1e9 for close_ns in closed),
        start_up=recording.start_up,
        inside=tuple((close_ns - open_ns) / 1e9 for open_ns, close_ns in edges),
    )


def closing(records: Sequence[tuple[int, int]], open_ns: int, length: float, windows: Windows) -> int:
    """When a window closes: after its length, or later (up to a limit) with the last of the lead's steps."""
    asked, last = open_ns + int(length * 1e9), open_ns + int(max(windows.longest, length) * 1e9)
    final = bisect_left(records, (open_ns, 0)) + windows.steps
    return min(max(asked, records[final][0] if final < len(records) else last), last)


def rate_between(records: Sequence[tuple[int, int]], open_ns: int, close_ns: int) -> float:
    """Units per second between the first and the last heartbeat of a window; NaN where there are fewer than two."""
    inside = records[bisect_left(records, (open_ns, 0)) : bisect_right(records, close_ns, key=lambda one: one[0])]
    if len(inside) < 2 or inside[-1][0] == inside[0][0]:
        return float("nan")
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]) * 1e9


def _await_ready(running: Sequence[Running]) -> None:
    for one in running:
        while one.reader.state is not State.READY:
            if ended := one.ended():
                raise WorkloadFailed.of(one, f"{ended} before it was ready")
            if time.monotonic() - one.started > one.start.ready_within:
                raise WorkloadFailed.of(one, f"was not ready within {one.start.ready_within:g} s")
            time.sleep(POLL)


def _watch(lead: Running, ready_ns: int, windows: Windows) -> int:
    """Read the lead's heartbeats until every window is closed; return when that was."""
    while True:
        lead.read_beats()
        opened = [(ready_ns + int(one.warm_up * 1e9), one.length) for one in windows.choices]
        until = max(closing(lead.records, open_ns, length, windows) for open_ns, length in opened)
        asked = max(open_ns + int(length * 1e9) for open_ns, length in opened)
        if (now := time.monotonic_ns()) >= until:
            return now
        time.sleep(min(LOOK, max(asked - now, POLL * 1e9) / 1e9))


def _kill(running: Sequence[Running]) -> None:
    for one in running:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)  # each leads a separate session
    for one in running:
        one.process.wait()
        one.reader.close()
