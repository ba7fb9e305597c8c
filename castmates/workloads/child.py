"""Runs children so that none of them outlives this process when SIGTERM comes, whatever it comes upon.

Standard library only. Each child leads its own process group, because a shell that is killed alone leaves behind what
it started.
"""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from types import FrameType
from typing import IO

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LAST_S = 0.5  # that those of a killed group have to be gone; where orphans are not reaped they never are


class Stopped(Exception):
    """The runner wants us to end."""


class _Told:
    """Whether a signal came, and whether one may interrupt now."""

    came = False
    held = False

    def come(self, _number: int, _frame: FrameType | None) -> None:
        before, self.came = self.came, True
        if not (before or self.held):
            raise Stopped

    def let_go(self) -> None:
        self.held = False
        if self.came:
            raise Stopped


_told = _Told()


def listen() -> None:
    """From now on a signal raises Stopped: once, so that nothing interrupts the ending, and never amid a start."""
    _told.came = _told.held = False
    for number in SIGNALS:
        signal.signal(number, _told.come)


def ignore() -> None:
    """From now on a signal does nothing, because we are ending."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def run(
    command: list[str],
    output: IO[bytes],
    *,
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
    patience: float = 0.0,
) -> int:
    """Run it to its end and return its status; when Stopped, ask it to end, wait a given time, and kill its group."""
    process: subprocess.Popen[bytes] | None = None
    _told.held = True  # between fork and the assignment the child would not be known
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        _told.let_go()
        return process.wait()
    finally:
        _told.held = False
        if process is not None and process.poll() is None:
            _end(process, patience)


def _end(process: "subprocess.Popen[bytes]", patience: float) -> None:
    if patience:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    deadline = time.monotonic() + _LAST_S
    with contextlib.suppress(ProcessLookupError):  # none is left
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.005)
