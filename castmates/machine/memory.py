"""How much memory this process and its children may use, and how much of it nobody uses now."""

from pathlib import Path

from castmates.linux import cgroup_memory
from castmates.linux.host import memory_bytes


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return the machine's memory in bytes, or what our control groups (a container's, a cluster job's) leave of it."""
    total, limit = memory_bytes("MemTotal", root), limited_memory(root)
    return total if limit is None else limit


def limited_memory(root: Path = Path("/")) -> int | None:
    """Return what our control groups allow, in bytes; None where they allow all that there is."""
    total = memory_bytes("MemTotal", root)
    least = min((limit.bytes for limit in cgroup_memory.limits(root)), default=None)
    return None if least is None or (total is not None and least >= total) else least


def free_memory(root: Path = Path("/")) -> int | None:
    """Return how much could be had now before the kernel would have to kill somebody; None where it is not known."""
    free = memory_bytes("MemAvailable", root)
    within = [limit.bytes - limit.taken for limit in cgroup_memory.limits(root) if limit.taken is not None]
    return max(0, min([*within, *([] if free is None else [free])])) if within or free is not None else None
