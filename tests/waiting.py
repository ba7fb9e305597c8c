"""The one way in which tests wait for an event: as long as it takes, up to one patience."""

import fcntl
import os
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

Answer = TypeVar("Answer")

PATIENCE = float(os.environ.get("CASTMATES_PATIENCE") or 120)
OF_LOCK = 10 * PATIENCE  # for the machine, on which others may measure in turns
PAUSE = 0.02  # seconds between two looks


def wait_for(
    condition: Callable[[], Answer], what: str, words: Callable[[], object] = str, patience: float = PATIENCE
) -> Answer:
    """Return the condition's answer as soon as it is true; otherwise fail with what was awaited.

    `words` returns what helps to find the cause, as the output of the processes that are involved.
    """
    last = time.monotonic() + patience
    while not (answer := condition()):
        if time.monotonic() > last:
            pytest.fail(f"{what}: not within {patience:g} s (CASTMATES_PATIENCE)\n{words()}".rstrip())
        time.sleep(PAUSE)
    return answer


def flock(fd: int, operation: int) -> None:
    """Lock as fcntl.flock does, but wait no longer than a test may: in place of what the machine's lock calls."""

    def taken() -> bool:
        try:
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if operation & fcntl.LOCK_NB:
                raise
            return False
        return True

    wait_for(taken, "the machine is free", lambda: os.pread(fd, 4096, 0).decode(), OF_LOCK)
