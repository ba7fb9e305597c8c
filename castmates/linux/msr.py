"""The processor's own registers (MSRs), through the kernel's msr devices.

Root is needed (CAP_SYS_RAWIO), and the module `msr`. A read interrupts the CPU whose register it is. The journal names
a register by a path below the CPU's device, and keeps it as text: /dev/cpu/3/msr/0x1a4.
"""

import errno
import os
from pathlib import Path

KIND = "msr"
BYTES = 8  # of a register


def read_msr(cpu: int, register: int, root: Path = Path("/")) -> int:
    """Return what a register of a CPU holds; OSError where it cannot be read here, or where there is none."""
    return _read(root / f"dev/cpu/{cpu}/msr", register)


def path_of(cpu: int, register: int, root: Path = Path("/")) -> Path:
    """Return the name of a register of a CPU."""
    return root / f"dev/cpu/{cpu}/msr" / f"{register:#x}"


def read(path: Path) -> str:
    """Return a register in hexadecimal."""
    return f"{_read(path.parent, int(path.name, 16)):#x}"


def write(path: Path, value: str) -> None:
    """Set a register."""
    fd = os.open(path.parent, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, int(value, 16).to_bytes(BYTES, "little"), int(path.name, 16))
    finally:
        os.close(fd)


def _read(device: Path, register: int) -> int:
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        value = os.pread(fd, BYTES, register)
    finally:
        os.close(fd)
    if len(value) != BYTES:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return int.from_bytes(value, "little")
