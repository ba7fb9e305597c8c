"""SIGTERM ends the run of tests in good order, also one that comes while the code under test has a handler of its own.

The interpreter writes the number of each signal that comes to a pipe, whoever handles it.
"""

import os
import signal
from collections.abc import Generator
from types import FrameType

import pytest

ENDED = 128 + signal.SIGTERM


def pytest_configure(config: pytest.Config) -> None:
    ending = Ending()
    config.pluginmanager.register(ending, "castmates-sigterm")
    os.register_at_fork(after_in_child=ending.leave)


class Ending:
    """Hears of SIGTERM."""

    def __init__(self) -> None:
        self._came, into = os.pipe()
        for end in (self._came, into):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(into, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, _end)

    def leave(self) -> None:
        """A child of a test has its own signals, as if there was no pytest."""
        signal.set_wakeup_fd(-1)
        if signal.getsignal(signal.SIGTERM) is _end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """End after the test in which it came, whatever the test makes of it, unless it sends itself one."""
        result = yield
        try:
            numbers = os.read(self._came, 1 << 16)
        except BlockingIOError:
            return result
        if signal.SIGTERM in numbers and not item.get_closest_marker("own_sigterm"):
            pytest.exit("SIGTERM came", ENDED)
        return result


def _end(_number: int, _frame: FrameType | None) -> None:
    pytest.exit("SIGTERM came", ENDED)
