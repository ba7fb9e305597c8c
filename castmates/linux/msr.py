"""The processor's own registers (MSRs), through the kernel's msr devices; they are read and never written.

Root is needed (CAP_SYS_RAWIO), and the module `msr`. A read interrupts the CPU whose register it is.
"""

import errno
import os
from pathlib import Path

BYTES = 8  # of a register


def read_msr(cpu: int, register: int, root: Path = Path("/")) -> int:
    """Return what a register of a CPU holds; OSError where it cannot be read here, or where there is none."""
    fd = os.open(root / f"dev/cpu/{cpu}/msr", os.O_RDONLY | os.O_CLOEXEC)
    try:
        value = os.pread(fd, BYTES, register)
    finally:
        os.close(fd)
    if len(value) != BYTES:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return int.from_bytes(value, "little")
