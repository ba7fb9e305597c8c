"""How many files a perf that follows threads has open, and how many it may have."""

import os
import resource
from pathlib import Path

SPARE = 64  # for anything else
NR_OPEN = Path("/proc/sys/fs/nr_open")


def needed(events: int, threads: int, cpus: int) -> int:
    """How many perf needs: one for each event, thread and CPU, and an event of its own for switches."""
    return (events + 1) * threads * cpus + SPARE


def most() -> int:
    """How many a child of ours may have once `raise_limit` ran in it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    by_kernel = int(NR_OPEN.read_text())
    return by_kernel if os.geteuid() == 0 or hard == resource.RLIM_INFINITY else hard


def raise_limit() -> None:
    """Let this process open as many as it may; perf goes a thousand beyond its limit by itself."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for limit in (most(), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, hard)))
        except (OSError, ValueError):  # root of a container without CAP_SYS_RESOURCE
            continue
        return
