"""Writes how long each phase of each step took; standard library only.

The file is CSV: a line per step, the step's begin in ns of CLOCK_MONOTONIC and its phases' lengths in ns.
"""

import os
import statistics
from pathlib import Path

from castmates.workloads.tfmodels.wish import PHASES_VARIABLE

NAMES = {"train": ("input", "forward", "backward", "optimizer"), "infer": ("input", "forward")}
KEPT = 10_000  # steps that the medians are taken over, at most


class PhasesError(ValueError):
    """A phases file that cannot be written; the message is one sentence for the user."""


class Writer:
    """Writes a line per step into the file that the runner named, and keeps what the medians need."""

    def __init__(self, mode: str, path: str | None) -> None:
        self._names = NAMES[mode]
        self._steps: list[tuple[float, ...]] = []
        try:
            self._file = Path(path).open("w", buffering=1, encoding="ascii") if path else None  # noqa: SIM115
        except OSError as error:
            raise PhasesError(f"Cannot write the phases to {path} ({PHASES_VARIABLE}): {error.strerror}.") from error
        if self._file:
            self._file.write(",".join(["begin_ns", *(f"{name}_ns" for name in self._names)]) + "\n")

    @classmethod
    def from_environment(cls, mode: str) -> "Writer":
        """Open the file that the environment names, or a writer that only keeps the medians."""
        return cls(mode, os.environ.get(PHASES_VARIABLE) or None)

    def step(self, begin_ns: int, seconds: tuple[float, ...]) -> None:
        """Write one step."""
        if self._file:
            numbers = (begin_ns, *(round(1e9 * one) for one in seconds))
            self._file.write(",".join(map(str, numbers)) + "\n")
        if len(self._steps) < KEPT:
            self._steps.append(seconds)

    def medians_ms(self) -> dict[str, float]:
        """Say in ms how long each phase takes in the middle."""
        columns = zip(*self._steps, strict=True)
        return {
            name: round(1e3 * statistics.median(column), 3)
            for name, column in zip(self._names, columns, strict=bool(self._steps))
        }

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
