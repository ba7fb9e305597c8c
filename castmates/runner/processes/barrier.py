"""Waits until every process of a block is ready, and freezes each one as soon as it is."""

import time
from collections.abc import Callable, Sequence

from castmates.runner.processes.freezer import Freezer
from castmates.runner.processes.launch import Running, WorkloadFailed
from castmates.workloads.heartbeat import State

POLL = 0.01


def await_ready(cast: Sequence[Running], freezer: Freezer, check: Callable[[], None]) -> None:
    """Return when all are ready and frozen; a process that dies or takes too long ends the block."""
    waiting = list(cast)
    while waiting:
        check()
        for one in list(waiting):
            if one.reader.state is State.READY:
                one.ready_seconds = time.monotonic() - one.started
                freezer.freeze(one.name)
                waiting.remove(one)
            elif one.ended():
                raise WorkloadFailed.of(one, f"{one.ended()} before it was ready{_awaited(one)}")
            elif time.monotonic() - one.started > one.start.ready_within:
                raise WorkloadFailed.of(
                    one,
                    f"was not ready within {one.start.ready_within:g} s{_awaited(one)} (raise 'ready_within' in the "
                    "catalogue)",
                )
        time.sleep(POLL)


def _awaited(one: Running) -> str:
    return f": {one.start.awaited}" if one.start.awaited else ""
