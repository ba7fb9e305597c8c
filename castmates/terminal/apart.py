"""Launches of a sweep that are made apart from its measured launches: when one runs, and how long all of them took."""

import time
from abc import ABC, abstractmethod

from castmates.terminal.jobs import Job


class Apart(ABC):
    """What is known of one kind of them."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, ...], float] = {}
        self._failed: list[str] = []
        self._seconds = 0.0

    @property
    def is_on(self) -> bool:
        """Whether one runs: nothing should run beside it."""
        return bool(self._begun)

    @property
    @abstractmethod
    def announcement(self) -> str:
        """How many are missing, in a line; "" where none is."""

    def begin(self, job: Job) -> None:
        """One begins."""
        self._begun[_key(job)] = job.begun

    @abstractmethod
    def end(self, job: Job) -> str:
        """One has ended; a line on it."""

    def fail(self, job: Job) -> None:
        """The job of one failed, and nothing was recorded."""
        self._begun.pop(_key(job), None)

    @abstractmethod
    def summary(self) -> list[str]:
        """What they came to, in lines; none where none was made."""

    def _ended(self, job: Job) -> float:
        """Seconds that it took, which are added to those of all."""
        seconds = time.monotonic() - self._begun.pop(_key(job), job.begun)
        self._seconds += seconds
        return seconds


def _key(job: Job) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in sorted(job.wildcards.items()))
