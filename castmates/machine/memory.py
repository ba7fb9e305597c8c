"""How much memory this process and its children may use."""

from collections.abc import Iterator
from pathlib import Path

from castmates.linux.kernel_files import read_int, read_pairs, read_text


def usable_memory(root: Path = Path("/")) -> int | None:
    """The machine's memory in bytes, or what our control groups (a container's, a cluster job's) leave of it."""
    words = read_pairs(root / "proc/meminfo").get("MemTotal", "").split()
    total = int(words[0]) * 1024 if words and words[0].isdigit() else None
    limits = [*_limits(root), *([] if total is None else [total])]
    return min(limits, default=None)


def _limits(root: Path) -> Iterator[int]:
    """Limits of our groups and of all above them, in either hierarchy; a container sees its own as the topmost one."""
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            limit = read_int(folder / file)  # "max" is no number
            if limit is not None:
                yield limit
            if folder == top:
                break
