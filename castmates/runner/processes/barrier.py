"""Waits until every process of a launch is ready, and freezes each one as soon as it is."""

import time
from collections.abc import Callable, Sequence

from castmates.runner.processes.freezer import Freezer, let_stand
from castmates.runner.processes.launch import Running, WorkloadFailed
from castmates.workloads.heartbeat import State

POLL = 0.01


def await_ready(cast: Sequence[Running], freezer: Freezer, check: Callable[[], None]) -> None:
    """Return when all are ready and frozen; a process that dies or takes too long is a failed workload."""
    check()
    while waiting := freeze_ready(cast, freezer):
        for process in waiting:
            if process.ended():
                raise WorkloadFailed.of(process, f"{process.ended()} before it was ready{_awaited(process)}")
            if time.monotonic() - process.started > process.start.ready_within:
                late = f"was not ready within {process.start.ready_within:g} s{_awaited(process)}"
                raise WorkloadFailed.of(process, f"{late} (raise 'ready_within' in the catalogue)")
        time.sleep(POLL)
        check()


def freeze_ready(cast: Sequence[Running], freezer: Freezer) -> list[Running]:
    """Freeze those that are ready by now, and return those that are not."""
    for process in cast:
        if process.ready_seconds is None and process.reader.state is State.READY:
            process.ready_seconds = time.monotonic() - process.started
            let_stand([process])
            freezer.freeze(process.name)
    return [process for process in cast if process.ready_seconds is None]


def _awaited(process: Running) -> str:
    return f": {process.start.awaited}" if process.start.awaited else ""
