"""perf_event_open(2): what an event is to the kernel; opening it, alone or in a group, switching and reading it.

Standard library only: castmates/inside stands on it, in other interpreters.
"""

import ctypes
import errno
import fcntl
import functools
import os
import platform
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PERF_DEVICES = "sys/bus/event_source/devices"  # the counting units (PMUs) that perf knows
_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
HARDWARE, SOFTWARE, TRACEPOINT, HW_CACHE, RAW = 0, 1, 2, 3, 4  # types of events
CLOCKS = (0, 1)  # cpu-clock, task-clock
DISABLED, INHERIT = 1 << 0, 1 << 1  # bits of perf_event_attr's flags
EXCLUDE_USER, EXCLUDE_KERNEL, EXCLUDE_HV, EXCLUDE_IDLE = 1 << 4, 1 << 5, 1 << 6, 1 << 7
TIMES, GROUPED = 0b11, 1 << 3  # of read_format: time enabled and time running; all counts of the group
CLOEXEC, OF_CGROUP = 8, 4  # flags of the call
_ENABLE, _DISABLE = 0x2400, 0x2401
AGAIN, PAUSE_S = 100, 20e-6  # tries of a reading, and between them: who is being born may have to wait for a CPU
_ATTR_SIZE = 72  # as far as config2, which every kernel since 2.6.33 knows


class Attr(NamedTuple):
    """What is counted, in the kernel's words: the fields of perf_event_attr that decide it."""

    kind: int
    config: int
    config1: int = 0
    config2: int = 0
    exclude: int = 0  # EXCLUDE_… bits

    @property
    def in_software(self) -> bool:
        """Whether the kernel counts it itself: it takes none of the processor's counters and is never multiplexed."""
        return self.kind in (SOFTWARE, TRACEPOINT)

    @property
    def unit(self) -> int:
        """The unit (PMU) that counts it; events of one unit can be read as a group.

        The kernel's two clocks are separate units: what is grouped with one of them on a whole CPU is opened
        without an error and stays 0 (seen on Linux 6.18).
        """
        if self.kind == SOFTWARE and self.config in CLOCKS:
            return -1 - self.config
        if self.kind in (HARDWARE, HW_CACHE):
            return self.config >> 32 or RAW  # hybrid processors name the kind of core in the upper half
        return self.kind

    @property
    def encoding(self) -> str:
        """The raw encoding, as the provenance has it."""
        fields = {"config1": self.config1, "config2": self.config2, "exclude": self.exclude}
        more = "".join(f" {name}=0x{value:x}" for name, value in fields.items() if value)
        return f"type={self.kind} config=0x{self.config:x}{more}"


class Target(NamedTuple):
    """Whom an event counts: a thread, a control group on a CPU, or all of a CPU."""

    pid: int  # a thread, the descriptor of a control group's folder, or -1
    cpu: int = -1
    flags: int = CLOEXEC
    inherit: bool = False


Opener = Callable[[Attr, Target, int, int], int]  # attr, target, the group's leader or -1, further bits -> descriptor


def open_event(
    attr: Attr,
    target: Target,
    leader: int = -1,
    bits: int = 0,
    read_format: int = TIMES | GROUPED,
    sampled: int = 0,  # what each event is recorded with, in bits of sample_type; 0 counts only
) -> int:
    """Open an event and return its descriptor; OSError explains why not."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    bits |= attr.exclude | (INHERIT if target.inherit else 0)
    # type, size, config, period, sample_type, read_format, flags, wakeup, bp_type, config1, config2
    period = 1 if sampled else 0
    fields = (attr.kind, _ATTR_SIZE, attr.config, period, sampled, read_format, bits, 0, 0, attr.config1, attr.config2)
    block = ctypes.create_string_buffer(struct.pack("IIQQQQQIIQQ", *fields), _ATTR_SIZE)
    longs = [ctypes.c_long(n) for n in (target.pid, target.cpu, leader, target.flags)]
    fd = int(_syscall()(ctypes.c_long(number), block, *longs))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


def switch(fd: int, on: bool) -> None:
    """Let an event, and the group that it leads, count or rest; its inherited copies follow."""
    fcntl.ioctl(fd, _ENABLE if on else _DISABLE, 0)


def read_group(fd: int, events: int) -> list[int] | None:
    """Read time enabled, time running and the counts of a group; None where the kernel holds it for broken."""
    for _ in range(AGAIN):
        try:
            raw = os.read(fd, 8 * (3 + events))
        except ChildProcessError:  # a process that inherits it is starting or ending: a moment later it is whole
            time.sleep(PAUSE_S)
            continue
        return list(struct.unpack(f"{len(raw) // 8 - 1}Q", raw[8:])) if len(raw) == 8 * (3 + events) else None
    return None


def paranoid() -> str:
    """Return what the kernel refuses to users, in its own words."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    return "unknown"


@functools.cache
def _syscall() -> Callable[..., int]:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    return syscall
