"""Ends a child process with the process that started it, also when that one is killed: nothing else would end it."""

import ctypes
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent(number: int = signal.SIGKILL) -> Callable[[], None]:
    """Prepare what a child of this process calls first, before exec: it gets this signal when its parent ends.

    A parent that ends between fork and prctl sends no signal any more; the child then ends by itself. The parent is
    the thread that forks. The child may have been forked beside other threads: it imports nothing and takes no lock.
    """
    parent = os.getpid()

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
