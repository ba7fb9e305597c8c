"""How much memory control groups allow, and how much of it is taken; a container sees its own group as the topmost."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from castmates.linux.cgroups import memberships
from castmates.linux.kernel_files import read_int, read_text

FILE_CACHE = ("inactive_file", "active_file")  # of memory.stat: what the kernel gives back before it kills


class Files(NamedTuple):
    """Where a version of the control groups has what."""

    top: str
    limit: str
    used: str
    in_stat: str  # begins the keys of memory.stat that count the groups inside too


UNIFIED = Files("sys/fs/cgroup", "memory.max", "memory.current", "")
VERSION_1 = Files("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")


class Limit(NamedTuple):
    """A limit in bytes, and how much of it is taken by more than file cache; None where that is not shown."""

    bytes: int
    taken: int | None


def limits(root: Path = Path("/")) -> Iterator[Limit]:
    """Yield the limits of our groups and of all above them."""
    for controller, path in memberships(root=root).items():
        files = {"": UNIFIED, "memory": VERSION_1}.get(controller)
        if files is None:
            continue
        top = root / files.top
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            most = read_int(folder / files.limit)  # "max" is no number
            if most is not None:
                yield Limit(most, _taken(folder, files))
            if folder == top:
                break


def _taken(folder: Path, files: Files) -> int | None:
    used = read_int(folder / files.used)
    lines = [line.split() for line in (read_text(folder / "memory.stat") or "").splitlines()]
    stat = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
    cache = sum(stat.get(f"{files.in_stat}{name}", 0) for name in FILE_CACHE)
    return None if used is None else max(0, used - cache)
