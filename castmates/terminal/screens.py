"""Where a sweep is shown: a terminal whose last lines change, or a log that only grows."""

import os
import sys
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from castmates.english import printable
from castmates.terminal.sweep import Sweep


class Screen(Protocol):
    """Takes lines that stay, and shows a sweep in lines that change."""

    changes: bool  # whether it has lines that change

    def line(self, text: str, style: str = "") -> None:
        """Print a line that stays."""

    def update(self, sweep: Sweep, launches_of: Counter[str], job: str, now: float) -> None:
        """Show how far a sweep is, and which job runs besides launches."""

    def close(self) -> None:
        """Take away the lines that change."""


def screen(progress: bool) -> Screen:
    """The one that standard error is; nothing changes where progress is not wanted."""
    if not progress or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Log()
    from castmates.terminal.live import Terminal  # loads rich, which is not needed to read the workflow

    return Terminal()


class Log:
    """A file, or whatever else is no terminal."""

    changes = False

    def line(self, text: str, style: str = "") -> None:  # noqa: ARG002 (a log has no colours)
        """Print a line."""
        with suppress(OSError):  # the listener may be gone
            print(printable(text), file=sys.stderr, flush=True)

    def update(self, sweep: Sweep, launches_of: Counter[str], job: str, now: float) -> None:
        """Show nothing: a log would be full of it."""

    def close(self) -> None:
        """Nothing is to be taken away."""


def clock_time() -> str:
    """The time, as lines of a log begin."""
    return f"{datetime.now():%H:%M:%S}"
