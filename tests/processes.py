"""What the kernel shows of a process, as tests ask it."""

from pathlib import Path


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or at least dead: whoever inherits it may be slow to bury it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def has_signal(field: str, pid: int, number: int) -> bool:
    """Return whether a signal is in this mask of the process: `ShdPnd` are those that it has not taken yet."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(lines[field], 16) >> number - 1 & 1)
