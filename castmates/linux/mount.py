"""Mounts and unmounts a file system: mount(2) and umount2(2), which the standard library lacks."""

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, point: Path, options: str = "") -> None:
    """Mount a file system that has no device; OSError explains why not."""
    _check(_libc.mount(kind.encode(), bytes(point), kind.encode(), 0, options.encode() or None))


def unmount(point: Path) -> None:
    """Unmount what is mounted here; OSError explains why not."""
    _check(_libc.umount2(bytes(point), 0))


def _check(status: int) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
