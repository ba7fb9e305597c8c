"""What a thread waits in when it blocks within a system call."""

FUTEX, POLL, SLEEP, IO, CHILD, UNKNOWN = "futex", "poll", "sleep", "io", "child", "unknown"
_POLL = {"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_getevents"}
_SLEEP = {"nanosleep", "clock_nanosleep", "pause", "rt_sigtimedwait", "rt_sigsuspend"}
_IO = {"fsync", "fdatasync", "sync", "syncfs", "sendfile", "splice", "io_uring_enter", "accept", "accept4", "connect"}
_IO_PARTS = ("read", "write", "recv", "send", "pread", "pwrite")


def wait_of(call: str) -> str:
    """The kind of wait; the call's own name where it is of no kind, and `unknown` outside of calls."""
    if not call:
        return UNKNOWN
    if call.startswith("futex"):
        return FUTEX
    if call in _POLL:
        return POLL
    if call in _SLEEP:
        return SLEEP
    if call in {"wait4", "waitid"}:
        return CHILD
    return IO if call in _IO or call.startswith(_IO_PARTS) else call
