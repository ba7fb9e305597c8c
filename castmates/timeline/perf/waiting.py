"""What a blocked thread waits in: the system call that it is in, by kind; or a page fault, or something unknown."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.timeline.cells import categories
from castmates.timeline.perf.keys import Keys
from castmates.timeline.perf.syscall_names import syscall_name
from castmates.timeline.perf.syscalls import Calls

Array = npt.NDArray[Any]
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


def waits(group: Array, times: Array, is_deep: Array, calls: Calls, keys: Keys, machine: str) -> pd.Categorical:
    """In what threads of these groups were blocked at these times.

    A thread that is blocked outside of any call, so that no signal ends it, waits within a page fault; this shows
    only where calls were recorded.
    """
    if not len(calls.group):
        return pd.Categorical([UNKNOWN] * len(times), categories=pd.Index([UNKNOWN], dtype="str"))
    at = keys.last_before(keys.of(calls.group, calls.begins), group, times)
    within = (at >= 0) & (calls.ends[at] >= times)
    numbers = np.where(within, calls.number[at], np.where(is_deep & (at >= 0), -2, -1))
    codes, unique = pd.factorize(numbers)
    words = [_word(int(number), machine) for number in unique]
    return categories(codes, words)


def _word(number: int, machine: str) -> str:
    if number < 0:
        return FAULT if number == -2 else UNKNOWN
    name = syscall_name(number, machine)
    return wait_of(name)
