"""One event of one member in one cache, look by look: bytes that are there, or bytes per second since the last look.

A rate is formed of two counts in a row with nothing between them: wherever the hardware may have lost count, the
series begins anew at the next number, and what passed meanwhile is missing with its reason.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from castmates.rdt.resctrl.event_file import EventFile

OCCUPANCY = "llc_occupancy"
# Bytes per second through one last-level cache that no reading can mean. The fastest memory of a processor's package
# delivers 1.6 TB/s (Xeon Max, HBM2e), the fastest memory modules 0.84 TB/s (12 channels of 8800 MT/s); a false
# overflow of AMD's counters, 2^44 units of 64 bytes within some tenths of a second, comes to more than 1000 TB/s.
MOST = 4e12

RESUMED = "the hardware had lost count before this reading (Unavailable), and counts anew"
WENT_BACK = "the counter went back: it was reset, or ran over"
NO_RATE = (None, "no rate yet: there is only one count since the last one was missing")
Look = tuple[float | None, str]


@dataclass
class Series:
    """The looks at one event of one member in one cache."""

    member: str
    event: str
    domain: int
    file: EventFile
    clock: Callable[[], int] = time.monotonic_ns
    _last: tuple[int, int] | None = field(default=None, init=False)  # time and count

    def restart(self) -> None:
        """Forget the last count: what passed between two windows belongs to none."""
        self._last = None

    def look(self) -> Look | None:
        """Return the value, or None and the reason; nothing at all where a rate has only its first count."""
        before = self.clock()
        count, why, resumed = self.file.read()
        now = (before + self.clock()) // 2
        if self.event == OCCUPANCY:
            return (None if count is None else float(count)), why
        last, self._last = self._last, None if count is None else (now, count)
        if count is None:
            return None, why
        if last is None or now <= last[0]:
            return None
        if resumed:
            return None, RESUMED
        if count < last[1]:
            return None, WENT_BACK
        rate = (count - last[1]) / (now - last[0]) * 1e9
        if rate > MOST:
            return None, f"impossible: {rate / 1e12:.3g} TB/s, and no memory delivers {MOST / 1e12:g} TB/s to a cache"
        return rate, ""
