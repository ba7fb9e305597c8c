"""Keeps oneDNN's log of its primitives, of traced steps alone; standard library only.

oneDNN logs to file descriptor 1 from its first primitive on, or never: the variables that switch it on are read once,
and TensorFlow exports nothing to switch it later. So what that descriptor leads to is changed between steps: while
steps are traced it is a file beside the trace, else nothing. The warm-up is logged where the job's output goes, with
the lines that name oneDNN's version; what Python prints always goes there.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

LOG_VARIABLE = "CASTMATES_PRIMITIVES"  # set: traces have the log beside them
LOG_SETTINGS = {"ONEDNN_VERBOSE": "profile_exec", "ONEDNN_VERBOSE_TIMESTAMP": "1"}  # what switches oneDNN's log on
LOG = "onednn.log"  # in the folder of a trace
STDOUT = 1


class PrimitiveLog:
    """Where oneDNN's log goes."""

    def __init__(self) -> None:
        self._nowhere = os.open(os.devnull, os.O_WRONLY)

    @classmethod
    def wanted(cls) -> "PrimitiveLog | None":
        """One where the runner wants it, else None."""
        return cls() if os.environ.get(LOG_VARIABLE) else None

    def warmed_up(self) -> None:
        """Let it go nowhere from now on, and what Python prints where it went; after the first step that counts."""
        sys.stdout.flush()
        sys.stdout = os.fdopen(os.dup(STDOUT), "w", buffering=1)
        os.dup2(self._nowhere, STDOUT)

    def begin(self, folder: str) -> None:
        """Let it go into the folder of a trace; an OSError if it cannot."""
        with (Path(folder) / LOG).open("wb") as file:
            os.dup2(file.fileno(), STDOUT)

    def end(self) -> None:
        """Let it go nowhere."""
        with suppress(OSError):
            os.dup2(self._nowhere, STDOUT)
