"""How much memory this process and its children may use."""

from pathlib import Path

from castmates.linux.cgroups import memory_limits
from castmates.linux.host import memory_bytes


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return the machine's memory in bytes, or what our control groups (a container's, a cluster job's) leave of it."""
    total = memory_bytes("MemTotal", root)
    limits = [*memory_limits(root), *([] if total is None else [total])]
    return min(limits, default=None)
