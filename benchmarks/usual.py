"""The usual way: fresh processes for every run, one window each; nothing is frozen, rejected or repeated.

The same programs, heartbeats, CPUs and environments as in our blocks. Both lengths of window come from the same run:
the long one begins with the short one, and what the long one took longer is not charged to the short one.
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
from castmates import project
from castmates.errors import CastmatesError
from castmates.machine.lock import machine_lock
from castmates.runner import cast as casting
from castmates.runner.launch import Running, Start, WorkloadFailed, launch
from castmates.study.spec import Company, Mix
from castmates.workloads.heartbeat import State

POLL = 0.01
LOOK = 1.0  # seconds between two looks at the heartbeats, as in our runner


@dataclass(frozen=True)
class Windows:
    """How long a run is measured."""

    short: float
    long: float
    warm_up: float  # seconds from "all ready" to the opening
    steps: int  # that the lead should complete, or the window is stretched
    longest: float


@dataclass(frozen=True)
class Run:
    """One run: the lead's rate in the short and in the long window, and the machine-seconds of either."""

    rates: tuple[float, float]
    seconds: tuple[float, float]
    start_up: float  # seconds until everyone was ready
    inside: tuple[float, float]  # seconds that the windows were open


def measure(company: Company, mix: Mix | None, windows: Windows) -> Run:
    """Run the lead alone, or with the antagonists of a mix."""
    wanted = {company.lead.name, *(mix.antagonists if mix else ())}
    lead, everyone = company.lead.cpus, {cpu for member in company.members for cpu in member.cpus}
    with machine_lock("a run of the usual way (benchmark)"), beside(everyone, set(lead)):
        begin = time.monotonic()
        with scratch(in_memory=True) as place:
            starts = [one for one in casting.starts(company, place, project.cache()) if one.name in wanted]
            try:
                run = _run(starts, place, windows)
            except WorkloadFailed as failure:
                raise CastmatesError(f"a run of the usual way failed: {failure}") from None
        whole = time.monotonic() - begin
    longer = run.inside[1] - run.inside[0]
    return Run(run.rates, (whole - longer, whole), run.start_up, run.inside)


def _run(starts: Sequence[Start], place: Path, windows: Windows) -> Run:
    running: list[Running] = []
    begin = time.monotonic()
    try:
        for start in starts:
            running.append(launch(start, place, place, lambda _name, _pid: None))
        _await_ready(running)
        start_up = time.monotonic() - begin
        time.sleep(windows.warm_up)
        lead = running[0]
        lead.forget_beats()
        open_ns = time.monotonic_ns()
        closings = [_hold_open(lead, open_ns, length, windows) for length in (windows.short, windows.long)]
        for one in running:
            if ended := one.ended():
                raise WorkloadFailed.of(one, ended)
    finally:
        _kill(running)
    rates = [rate_between(lead.records, open_ns, close_ns) for close_ns in closings]
    if any(math.isnan(rate) for rate in rates):
        raise CastmatesError(f"{lead.name} made fewer than two steps in {windows.short:g} s; give longer windows.")
    inside = [(close_ns - open_ns) / 1e9 for close_ns in closings]
    return Run((rates[0], rates[1]), (0.0, 0.0), start_up, (inside[0], inside[1]))


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


def _hold_open(lead: Running, open_ns: int, length: float, windows: Windows) -> int:
    """Wait for the end of a window, and longer (up to a limit) for the lead's steps; return when it closed."""
    until, last = open_ns + int(length * 1e9), open_ns + int(max(windows.longest, length) * 1e9)
    while (now := time.monotonic_ns()) < until or (len(lead.records) <= windows.steps and now < last):
        time.sleep(min(LOOK, max(until - now, POLL * 1e9) / 1e9))
        lead.read_beats()
    close_ns = time.monotonic_ns()
    lead.read_beats()
    return close_ns


def _kill(running: Sequence[Running]) -> None:
    for one in running:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)  # everyone leads a session of its own
    for one in running:
        one.process.wait()
        one.reader.close()
