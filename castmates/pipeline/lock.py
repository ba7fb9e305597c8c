"""One sweep at a time over the same results; the kernel lets go of the lock when the sweep dies, however it dies."""

import fcntl
import os
from dataclasses import dataclass
from datetime import datetime

from castmates.errors import CastmatesError
from castmates.linux.host import flock_holder
from castmates.results.folder import StudyFolder
from castmates.results.links import refuse_links

_held: list[int] = []


def hold_sweep_lock(results: StudyFolder) -> None:
    """Take the lock for as long as this process lives."""
    refuse_links(results)
    file = results.lock_file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        raise CastmatesError(
            f"{file} cannot be opened ({problem.strerror}): these results belong to somebody else or may not be "
            "written; give the study another 'name', or run as their owner."
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = flock_holder(os.fstat(descriptor)) or "unknown"
        os.close(descriptor)
        raise CastmatesError(
            f"another sweep (process {holder}) is writing to {results}; wait for it, or end it."
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    _held.append(descriptor)


@dataclass(frozen=True)
class Running:
    """A sweep that writes to some results now."""

    process: int
    since: datetime


def running_sweep(results: StudyFolder) -> Running | None:
    """The sweep that holds the lock; nothing is locked to find that out."""
    try:
        state = results.lock_file.stat()
    except OSError:
        return None
    process = flock_holder(state)
    return None if process is None else Running(process, datetime.fromtimestamp(state.st_mtime).astimezone())
