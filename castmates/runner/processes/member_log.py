"""The file that a member's output goes to: kept small, however much it writes.

The member writes to the file by itself, because a pipe would cost it time, and we cut the file while it goes on: the
first and the last words stay. It is opened for appending, so that what is written after a cut follows what was left.
"""

import os
from pathlib import Path

from castmates.english import printable

LIMIT = 16 << 20
KEPT = 256 << 10  # of each end


def create(log: Path) -> int:
    """Open an empty log for a member."""
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)


def cut(log: Path) -> bool:
    """Cut the middle out of a log that has become too long; True where that was so."""
    try:
        size = log.stat().st_size
        if size <= LIMIT:
            return False
        with log.open("r+b", buffering=0) as file:
            file.seek(size - KEPT)
            tail = file.read(KEPT)
            note = f"\n[castmates cut {size - 2 * KEPT} bytes out of this log here]\n".encode()
            file.seek(KEPT)
            file.write(note + tail)
            file.truncate(KEPT + len(note) + len(tail))
    except OSError:  # removed, or the file system is in trouble, which others will report
        return False
    return True


def last_lines(log: Path, count: int) -> list[str]:
    """Return the last lines in a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [printable(line).rstrip()[:300] for line in text.splitlines() if line.strip()][-count:]
