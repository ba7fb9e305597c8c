"""The signals that ask a process to end, and how it is deaf to them, or hears them as any program does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deaf() -> Iterator[None]:
    """Ignore all requests to end."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hear() -> None:
    """Be ended by them, whatever the parent ignores: for a child, before its program begins."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
