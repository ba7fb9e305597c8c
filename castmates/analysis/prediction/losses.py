"""What a job loses beside others, whoever knows it: measured, or predicted from what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Loss:
    """Of the rate when alone, in per cent, with its 95 % interval (NaN where none)."""

    pct: float
    low: float
    high: float
    source: Literal["measured", "predicted"]


class Losses(Protocol):
    """Knows losses of jobs."""

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What a job loses beside these others, with so many ways for itself alone; None where nothing is known."""
