"""Traffic of an id that the hardware has stopped tracking, as AMD's does with ids that do not run, and tracks again."""

from dataclasses import dataclass
from typing import Literal

UNAVAILABLE: Literal["Unavailable"] = "Unavailable"
WIDTH = 44  # bits of AMD's counters


@dataclass
class LostCount:
    """The hardware's counter of one event in one domain, and the kernel's count of it, in the hardware's units."""

    count: int  # the kernel's
    previous: int  # of the hardware, that the kernel saw last
    forgets: bool  # the kernel forgets it where there is no count (15292f1b4c55); else it then sees an overflow
    begun_at: int | None = None  # what had been moved when tracking began anew; None while there is none
    is_new: bool = False  # nobody has read it since: the first read has no value

    def lose(self) -> None:
        """Stop tracking."""
        self.begun_at = None

    def track(self, moved: int) -> None:
        """Begin anew, at zero."""
        self.begun_at, self.is_new = moved, True

    def read(self, moved: int) -> int | None:
        """Return the kernel's count once so much has been moved in all; None for Unavailable."""
        if self.begun_at is None or self.is_new:
            self.is_new = False
            if self.forgets:
                self.previous = 0
            return None
        value = moved - self.begun_at
        self.count += (value - self.previous) % (1 << WIDTH)
        self.previous = value
        return self.count
