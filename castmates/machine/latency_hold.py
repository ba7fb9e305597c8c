"""Holds the latency that CPUs may take to wake up: the kernel obeys as long as the device is open, and no longer."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.machine.knobs import LEAVE_OUT

KNOB, DEVICE = "cpu_dma_latency", "dev/cpu_dma_latency"
_NUMBER = struct.Struct("=i")


@contextmanager
def held(root: Path, microseconds: int) -> Iterator[dict[str, dict[str, str]]]:
    """Ask for this latency until the end; what was in force and what is asked for go into the record.

    It needs no journal: however this process ends, the kernel takes it back by itself.
    """
    file = root / DEVICE
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise _refusal(file, error) from None
    try:
        was = _ask(fd, file, microseconds)
        yield {"before": {str(file): was}, "set": {str(file): str(microseconds)}}
    finally:
        os.close(fd)


def _ask(fd: int, file: Path, microseconds: int) -> str:
    try:
        before = os.pread(fd, _NUMBER.size, 0)
        os.pwrite(fd, _NUMBER.pack(microseconds), 0)
    except OSError as error:
        raise _refusal(file, error) from None
    return str(_NUMBER.unpack(before)[0]) if len(before) == _NUMBER.size else "not shown"


def _refusal(file: Path, error: OSError) -> CastmatesError:
    return CastmatesError(f"{KNOB} cannot be set: {file}: {error.strerror}; run the study as root, {LEAVE_OUT}.")
