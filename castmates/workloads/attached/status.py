"""What is known of the program that is followed, in a file that `castmates profile` reads while it tries it."""

import json
import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

VARIABLE = "CASTMATES_ATTACHED"  # names the file; without it, nothing is written


class Status:
    """Facts of this process; the file appears whole each time."""

    def __init__(self) -> None:
        self._file = os.environ.get(VARIABLE) or None
        self._facts: dict[str, object] = {}
        self._calls: Counter[str] = Counter()

    @property
    def wanted(self) -> bool:
        """Whether anybody reads it."""
        return self._file is not None

    def note(self, **facts: object) -> None:
        """Add facts, or change them."""
        self._facts |= facts
        if self._file is not None:
            content = self._facts | {"pid": os.getpid(), "python": sys.version.split()[0], "calls": dict(self._calls)}
            unfinished = Path(f"{self._file}.{os.getpid()}")
            with suppress(OSError):  # who reads it is gone
                unfinished.write_text(json.dumps(content), encoding="utf-8")
                unfinished.replace(self._file)

    def called(self, function: str) -> None:
        """Count a call of a function that may be the program's step."""
        self._calls[function] += 1
        if self._calls[function] in (3, 30) or self._calls[function] % 300 == 0:
            self.note()


def say(sentence: str) -> None:
    """One line for the log."""
    with suppress(OSError, ValueError):  # stderr may be closed
        print(f"castmates: {sentence}", file=sys.stderr, flush=True)
