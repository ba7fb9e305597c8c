"""A small process that outlives a command which sweeps: where that is killed, it ends the sweep in good order.

At the command's death Snakemake itself gets SIGTERM, at which it would wait for the launches that run: for minutes.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

from castmates.linux.processes import read_process, read_table

# Ends a running sweep in good order: Snakemake and its jobs, which are one process group.

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


LOOK = 0.1  # seconds


def main(leader: int) -> None:
    """Read until the command writes that the sweep is over, or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    snakemake = read_process(leader)
    if sys.stdin.buffer.read() or snakemake is None:
        return

    def is_there() -> bool:
        now = read_process(leader)
        return now is not None and now.alive and now.born == snakemake.born

    def has_ended(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while is_there() and time.monotonic() < deadline:
            time.sleep(LOOK)
        return not is_there()

    end(leader, has_ended)


if __name__ == "__main__":
    main(int(sys.argv[1]))
