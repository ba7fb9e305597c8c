"""Reads a model-specific register of an x86 processor; nothing here could write one."""

import os
from pathlib import Path

DEVICES = Path("/dev/cpu")  # where the kernel's module msr is loaded
WIDTH = 8


def read_register(cpu: int, address: int, devices: Path = DEVICES) -> int | None:
    """Return what a register of this CPU holds; None where there is none, or this user may not look."""
    try:
        fd = os.open(devices / str(cpu) / "msr", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.pread(fd, WIDTH, address)
    except OSError:  # this processor has no such register
        return None
    finally:
        os.close(fd)
    return int.from_bytes(content, "little") if len(content) == WIDTH else None
