"""What /proc shows of the machine as a whole; `root` may be a recorded tree, where anything may be missing."""

import ctypes
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from castmates.linux.kernel_files import read_int, read_kernel, read_pairs, read_text
from castmates.linux.processes import TICK_S, parse_stat

HERE = Path("/")
SYSCTL = "proc/sys"  # below a root
DEFAULT_AFFINITY = "proc/irq/default_smp_affinity"  # of interrupts that are still to come, as a mask
_PROCESSOR = re.compile(r"^processor\s*:\s*(\d+)|^cpu MHz\s*:\s*([\d.]+)", re.MULTILINE)
_SWAP = (b"pswpin ", b"pswpout ")


def cpuinfo(root: Path = HERE) -> dict[str, str]:
    """Return what the kernel prints of the first processor, by its own keys."""
    return read_pairs(root / "proc/cpuinfo")


def cpu_flags(root: Path = HERE) -> list[str] | None:
    """Return the processor's flags; None where there are no x86 flags."""
    flags = cpuinfo(root).get("flags")
    return None if flags is None else flags.split()


def processor(root: Path = HERE) -> dict[str, Any]:
    """Return by which numbers errata name the processor; what is not shown is left out."""
    shown = cpuinfo(root)
    numbers = {"family": "cpu family", "model": "model", "stepping": "stepping"}
    words = {"vendor": "vendor_id", "implementer": "CPU implementer", "part": "CPU part"}
    return {name: shown[key] for name, key in words.items() if key in shown} | {
        name: int(shown[key]) for name, key in numbers.items() if shown.get(key, "").isdecimal()
    }


def nominal_mhz(cpus: Collection[int], root: Path = HERE) -> dict[int, float]:
    """Return the frequency that is printed of each of these CPUs; on a large machine this reads a long file."""
    mhz: dict[int, float] = {}
    cpu = -1
    for match in _PROCESSOR.finditer(read_text(root / "proc/cpuinfo") or ""):
        if match[1] is not None:
            cpu = int(match[1])
        elif cpu in cpus:
            mhz[cpu] = float(match[2])
    return mhz


def memory_bytes(key: str, root: Path = HERE) -> int | None:
    """Return a size that is kept of the machine's memory: MemTotal, MemAvailable, SwapFree …"""
    match = re.match(r"(\d+) kB", read_pairs(root / "proc/meminfo").get(key, ""))
    return int(match[1]) * 1024 if match else None


def sysctl(name: str, root: Path = HERE) -> str | None:
    """Return a setting of the kernel by its path, such as kernel/hostname."""
    return read_text(root / SYSCTL / name)


def release(root: Path = HERE) -> str | None:
    """Return the kernel's version as it gives it."""
    return sysctl("kernel/osrelease", root)


def command_line(root: Path = HERE) -> str | None:
    """Return the words with which the kernel was started."""
    return read_text(root / "proc/cmdline")


def file_systems(root: Path = HERE) -> list[str] | None:
    """Name the file systems that the kernel has; None where that cannot be read."""
    names = read_text(root / "proc/filesystems")
    return None if names is None else names.split()


def load_average(root: Path = HERE) -> list[float] | None:
    """Return the load averages over one, five and fifteen minutes."""
    words = (read_text(root / "proc/loadavg") or "").split()
    return [float(word) for word in words[:3]] if len(words) >= 3 else None


def total_ticks(root: Path = HERE) -> list[int]:
    """Return the time of all CPUs since boot by what it was spent on, in ticks; empty where it cannot be read."""
    match = re.match(r"cpu +([\d ]+)", read_text(root / "proc/stat") or "")
    return [int(word) for word in match[1].split()] if match else []


def damon_threads(root: Path = HERE) -> dict[str, float]:
    """Return the kernel threads that sample accesses to memory (DAMON), each with its share of a CPU since boot."""
    uptime = float((read_text(root / "proc/uptime") or "0").split()[0])
    found = {}
    for file in (root / "proc").glob("[0-9]*/comm"):
        if (name := read_text(file) or "").startswith("kdamond.") and uptime > 0:
            fields = parse_stat((read_text(file.parent / "stat") or "0 ()").encode())[1]
            found[name] = sum(map(int, fields[11:13])) * TICK_S / uptime
    return found


def cpu_ticks(cpus: Iterable[int]) -> dict[int, list[bytes]]:
    """Read the columns of time, in ticks, of these CPUs, the name first; a CPU that is offline is left out."""
    wanted = {b"cpu%d" % cpu: cpu for cpu in cpus}
    ticks = {}
    for line in read_kernel("/proc/stat").splitlines():
        if not line.startswith(b"cpu"):
            break
        columns = line.split()
        if columns[0] in wanted:
            ticks[wanted[columns[0]]] = columns
    return ticks


def newest_number() -> int | None:
    """Return the number that was given to a process or thread last; they rise, and begin again at the highest.

    None on kernels without CONFIG_CHECKPOINT_RESTORE. A container may have a loadavg that is made up (lxcfs).
    """
    return read_int(HERE / SYSCTL / "kernel/ns_last_pid")


def swapped_pages() -> dict[str, int]:
    """Read how many pages the host has swapped in and out since it started."""
    lines = [line for line in read_kernel("/proc/vmstat").splitlines() if line.startswith(_SWAP)]
    return {line.split()[0].decode(): int(line.split()[1]) for line in lines}


def interrupts(root: Path = HERE) -> list[Path]:
    """List the files that hold where each interrupt goes, in the order of their numbers."""
    files = (root / "proc/irq").glob("[0-9]*/smp_affinity_list")
    return sorted(files, key=lambda file: int(file.parent.name))


def running(programs: Collection[str], root: Path = HERE) -> list[str]:
    """Return which programs of these names run."""
    there = {read_text(file) for file in (root / "proc").glob("[0-9]*/comm")}
    return [program for program in sorted(programs) if program in there]


def lockdown(root: Path = HERE) -> str | None:
    """Return what the kernel is locked down for: none, integrity or confidentiality; None where it does not show it."""
    match = re.search(r"\[(\w+)\]", read_text(root / "sys/kernel/security/lockdown") or "")
    return match[1] if match else None


def flock_holder(file: os.stat_result) -> int | None:
    """Find the process that took the flock on a file; None where it cannot be seen from here."""
    lines = [line.split() for line in (read_text(Path("/proc/locks")) or "").splitlines()]
    found = {words[5]: int(words[4]) for words in lines if len(words) >= 6 and words[1] == "FLOCK"}
    exact = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    alike = (pid for place, pid in found.items() if place.endswith(f":{file.st_ino}"))  # btrfs shows another device
    return found.get(exact) or next(alike, None)


def has_capability(number: int, root: Path = HERE) -> bool:
    """Check whether this kernel knows a capability."""
    last = sysctl("kernel/cap_last_cap", root)
    return last is not None and last.isdecimal() and int(last) >= number


# Mounts and unmounts a file system: mount(2) and umount2(2), which the standard library lacks.

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
