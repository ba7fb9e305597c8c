"""Binds the memory of a process that is about to be started to some nodes."""

import ctypes
import errno
import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from castmates.errors import CastmatesError
from castmates.linux.cgroups import memberships
from castmates.linux.kernel_files import read_int, read_text
from castmates.study.cpus import format_cpu_list

MPOL_BIND = 2
NODES = 1024  # as many as Linux can have
# (set_mempolicy, get_mempolicy): the C library wraps neither.
SYSCALLS = {
    "x86_64": (238, 239),
    "aarch64": (237, 236),
    "riscv64": (237, 236),
    "ppc64le": (261, 260),
    "s390x": (270, 269),
}
WHY = {
    errno.ENOSYS: "this kernel knows no memory nodes; measure with one built with CONFIG_NUMA",
    errno.EPERM: "a container forbids it; start it with the capability SYS_NICE",
    errno.EINVAL: "this process may not use them; plan the study anew, within the cpuset it has now",
}

_libc = ctypes.CDLL(None, use_errno=True)
_Mask = ctypes.c_ulong * (NODES // (8 * ctypes.sizeof(ctypes.c_ulong)))


@contextmanager
def memory_bound_to(nodes: Sequence[int]) -> Iterator[None]:
    """Let everything that is started inside have its memory on these nodes alone; no nodes, no change.

    The policy is this process's own for the while: children inherit it, over exec too, and what fails is an error here.
    """
    if not nodes:
        yield
        return
    mode, mask = ctypes.c_int(), _Mask()
    _call(1, nodes, ctypes.byref(mode), mask, NODES, None, 0)
    wanted = _Mask()
    width = 8 * ctypes.sizeof(ctypes.c_ulong)
    for node in nodes:
        wanted[node // width] |= 1 << node % width
    _call(0, nodes, MPOL_BIND, wanted, NODES)
    try:
        yield
    finally:
        _call(0, nodes, mode.value, mask, NODES)


def _call(which: int, nodes: Sequence[int], *arguments: object) -> None:
    numbers = SYSCALLS.get(platform.machine())
    problem = errno.ENOSYS
    if numbers is not None:
        if _libc.syscall(numbers[which], *map(_wide, arguments)) == 0:
            return
        problem = ctypes.get_errno()
    raise CastmatesError(
        f"memory cannot be bound to node {format_cpu_list(nodes)}: {WHY.get(problem, os.strerror(problem))}."
    )


def _wide(value: object) -> object:
    """Return a number as the kernel takes it: in a whole register."""
    return ctypes.c_long(value) if isinstance(value, int) else value


# How much memory control groups allow, and how much of it is taken; a container sees its own group as the topmost.

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


# How much memory a process has, how much of it lies on huge pages, and on which nodes.

_LINE = re.compile(r"^(Rss|AnonHugePages):\s+(\d+) kB$", re.MULTILINE)


def page_counts(pid: int, root: Path = Path("/")) -> tuple[int, int] | None:
    """Return the bytes that a process has, and those of them on huge pages; None where the kernel does not show it."""
    counts = {name: int(kib) << 10 for name, kib in _LINE.findall(read_text(root / f"proc/{pid}/smaps_rollup") or "")}
    return (counts.get("Rss", 0), counts.get("AnonHugePages", 0)) if counts else None


def numa_maps(pid: int, root: Path = Path("/")) -> str:
    """The kernel's list of a process's memory by node; "" where it has ended, or the kernel knows no nodes."""
    return read_text(root / f"proc/{pid}/numa_maps") or ""
