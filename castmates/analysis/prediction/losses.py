"""What is known of losses, measured or predicted: the contract between those who know and those who place jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Loss:
    """A loss of the rate when alone, in per cent, with its 95 % interval (NaN where there is none)."""

    pct: float
    low: float
    high: float
    source: Literal["measured", "predicted"]


class Losses(Protocol):
    """Something that knows losses."""

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What the job loses beside these, with so many ways of its own; None where nothing is known."""
