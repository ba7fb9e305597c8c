"""The kernel's names: of system calls and soft interrupts by number, and the kinds of waits within calls.

The numbers are those of Linux's asm/unistd_64.h of x86-64 and asm-generic/unistd.h (64-bit Arm, RISC-V), as of 6.1,
with those that came until 6.17. A number never gets another name.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def _names(machine: str) -> list[str]:
    """The names by number; none of other machines."""
    _, *tables = (files("castmates.timeline") / "syscalls.txt").read_text(encoding="utf-8").split("\n\n")
    by_machines = {where: names.split() for where, _, names in (each.partition(":") for each in tables)}
    return next((names for machines, names in by_machines.items() if machine in machines.split()), [])


def syscall_name(number: int, machine: str) -> str:
    """The name of a system call; its number where it has none here."""
    names = _names(machine)
    known = names[number] if 0 <= number < len(names) else "-"
    return known if known != "-" else f"syscall {number}"


def number_of(name: str, machine: str) -> int:
    """The number of a system call; -1 where it is not known."""
    names = _names(machine)
    return names.index(name) if name in names else -1


SOFT = ("hi", "timer", "net tx", "net rx", "block", "irq poll", "tasklet", "sched", "hrtimer", "rcu")  # soft interrupts
UNKNOWN, FAULT = "unknown", "fault"
_KINDS: Mapping[str, str] = {  # calls that are not here count by their own names
    "futex": "futex futex_waitv futex_wait",
    "poll": "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2",
    "sleep": "nanosleep clock_nanosleep",
    "io": (
        "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 fsync fdatasync sync syncfs "
        "sync_file_range openat open openat2 close sendfile splice tee copy_file_range io_getevents io_uring_enter "
        "fallocate ftruncate truncate getdents64 getdents statx newfstatat fstatat fstat stat lstat unlink unlinkat "
        "rename renameat renameat2 mkdir mkdirat"
    ),
    "socket": "recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg accept accept4 connect",
    "child": "wait4 waitid",
    "signal": "pause rt_sigtimedwait rt_sigsuspend",
    UNKNOWN: "restart_syscall",  # a futex, a poll or a sleep, that began before the recording
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def wait_of(call: str) -> str:
    """The kind of wait within a system call; the call's own name where it is of no kind."""
    return _KIND_OF.get(call, call)
