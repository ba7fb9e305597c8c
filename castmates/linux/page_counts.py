"""How much memory a process has, how much of it lies on huge pages, and on which nodes."""

import re
from pathlib import Path

from castmates.linux.kernel_files import read_text

_LINE = re.compile(r"^(Rss|AnonHugePages):\s+(\d+) kB$", re.MULTILINE)


def page_counts(pid: int, root: Path = Path("/")) -> tuple[int, int] | None:
    """Return the bytes that a process has, and those of them on huge pages; None where the kernel does not show it."""
    counts = {name: int(kib) << 10 for name, kib in _LINE.findall(read_text(root / f"proc/{pid}/smaps_rollup") or "")}
    return (counts.get("Rss", 0), counts.get("AnonHugePages", 0)) if counts else None


def numa_maps(pid: int, root: Path = Path("/")) -> str:
    """The kernel's list of a process's memory by node; "" where it has ended, or the kernel knows no nodes."""
    return read_text(root / f"proc/{pid}/numa_maps") or ""
