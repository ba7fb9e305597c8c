"""Ends a running sweep in good order: Snakemake and its jobs, which are one process group."""

import os
import signal
import time
from collections.abc import Callable

from castmates.linux.processes import read_table

# What its whole group gets, and how long it may take. The first is what Ctrl-C sends: a launch then puts the machine
# right, and Snakemake waits for it; at SIGTERM it would wait for launches to be finished, and shells would not wait.
ESCALATION = ((signal.SIGINT, 60.0), (signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))
# Where no job runs: Snakemake, still reading its files, then ends at once, and at Ctrl-C it would end in a traceback.
AT_ONCE = (signal.SIGTERM, 10.0)
LAST_S = 5.0  # that the others of the group may take after Snakemake; where orphans are not reaped they never are gone


def end(leader: int, has_ended: Callable[[float], bool]) -> None:
    """Ask its whole group to end, and insist; `has_ended` tells whether the leader does within so many seconds."""
    for number, patience in ESCALATION if _has_jobs(leader) else (AT_ONCE, *ESCALATION):
        _signal(leader, number)
        if has_ended(patience):
            break
    deadline = time.monotonic() + LAST_S
    while _signal(leader, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal(leader, signal.SIGKILL)


def _has_jobs(leader: int) -> bool:
    """Whether another process is in its group."""
    return any(each.group == leader and each.pid != leader and each.alive for each in read_table().values())


def _signal(leader: int, number: int) -> bool:
    """Send its group a signal; whether there was anybody. The dead leader still names its group."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
