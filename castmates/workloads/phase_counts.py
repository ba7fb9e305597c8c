"""Counters that a process reads of itself at the edges of its phases (standard library only)."""

import os
import sys
from collections.abc import Callable, Sequence

from castmates.errors import CastmatesError
from castmates.inside import Counters, open_counters
from castmates.workloads.phase_file import (
    BY_PAPI,
    COUNTED,
    METHOD_VARIABLE,
    NOT_COUNTED,
    NOT_SUPPORTED,
    SOME_THREADS,
    USER_ONLY,
)

LOOK_EVERY = 512  # readings between two looks at whether others hold the counters too; the first looks come sooner
SHARED = 0.999  # a counter that counted for less of its time had to be shared
PAPI = "PAPI"


class PhaseCounts:
    """Reads counters, and reports how each fares: once when they are opened, again when one turns out to be shared."""

    def __init__(self, events: Sequence[str], tell: Callable[[int, int, int], None]) -> None:
        self._events, self._tell = list(events), tell
        self._counters: Counters | None = None
        self._reads = 0
        try:
            self._counters = open_counters(self._events, os.environ.get(METHOD_VARIABLE) or "perf")
        except CastmatesError as error:
            print(f"{error} No phase is counted.", file=sys.stderr)
        names = self._counters.names if self._counters else ()
        self._places = [names.index(event) if event in names else None for event in self._events]
        for number, event in enumerate(self._events):
            refusal = self._counters.refused.get(event) if self._counters else None
            unsupported = refusal is not None and refusal.status == "not supported"
            status = COUNTED if event in names else NOT_SUPPORTED if unsupported else NOT_COUNTED
            tell(number, status, self._flags(event))

    def read(self) -> Sequence[int | None]:
        """The totals so far, event by event; None for one that is not counted."""
        if self._counters is None:
            return ()
        self._reads += 1
        if self._reads % LOOK_EVERY == 0 or self._reads & (self._reads - 1) == 0:
            self._look(self._counters)
        totals = self._counters.read()
        return [None if place is None else totals[place] for place in self._places]

    def _look(self, counters: Counters) -> None:
        """Give up counters that count only now and then: what a short phase saw of them cannot be scaled."""
        readings = counters.readings()
        for number, place in enumerate(self._places):
            if place is not None and readings[place].running < SHARED * readings[place].enabled:
                self._places[number] = None
                self._tell(number, NOT_COUNTED, 0)

    def _flags(self, event: str) -> int:
        """What the numbers of an event lack, and who counted, as flags of the file."""
        if self._counters is None or event not in self._counters.names:
            return 0
        lacks = USER_ONLY * bool(self._counters.notes.get(event)) | SOME_THREADS * bool(self._counters.misses)
        return lacks | BY_PAPI * (self._counters.source == PAPI)
