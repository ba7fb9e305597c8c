"""Binds the memory of a process that is about to be started to some nodes."""

import ctypes
import errno
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from castmates.errors import CastmatesError
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
