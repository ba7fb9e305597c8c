"""The one way in which tests wait for an event: as long as it takes, up to one patience."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

Answer = TypeVar("Answer")

PATIENCE = float(os.environ.get("CASTMATES_PATIENCE") or 120)
PAUSE = 0.02  # seconds between two looks


def wait_for(condition: Callable[[], Answer], what: str, words: Callable[[], object] = str) -> Answer:
    """Return the condition's answer as soon as it is true; otherwise fail with what was awaited.

    `words` returns what helps to find the cause, as the output of the processes that are involved.
    """
    last = time.monotonic() + PATIENCE
    while not (answer := condition()):
        if time.monotonic() > last:
            pytest.fail(f"{what}: not within {PATIENCE:g} s (CASTMATES_PATIENCE)\n{words()}".rstrip())
        time.sleep(PAUSE)
    return answer
