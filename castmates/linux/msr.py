"""Model-specific registers of a CPU, where the kernel's msr driver lets root read and write them; as text.

A register is named by a path below the CPU's device: /dev/cpu/3/msr/0x1a4.
"""

import errno
import os
import struct
from pathlib import Path

KIND = "msr"


def path_of(cpu: int, register: int, root: Path = Path("/")) -> Path:
    """Return the name of a register of a CPU."""
    return root / f"dev/cpu/{cpu}/msr" / f"{register:#x}"


def read(path: Path) -> str:
    """Return a register in hexadecimal."""
    fd = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        raw = os.pread(fd, 8, int(path.name, 16))
    finally:
        os.close(fd)
    if len(raw) < 8:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return f"{struct.unpack('<Q', raw)[0]:#x}"


def write(path: Path, value: str) -> None:
    """Set a register."""
    fd = os.open(path.parent, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, struct.pack("<Q", int(value, 16)), int(path.name, 16))
    finally:
        os.close(fd)
