"""Ends a child process with the process that started it, also when that one is killed: nothing else would end it.

And lets this process adopt what its descendants leave behind, which otherwise becomes a child of process 1.
"""

import ctypes
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
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


def adopt_orphans(wanted: bool) -> bool:
    """Adopt descendants whose parents end, or no longer; return whether this process did before."""
    before = ctypes.c_int()
    _libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(wanted))
    return bool(before.value)
