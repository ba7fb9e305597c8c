"""The small interface: counters of this process, from here to there, by either method."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from castmates.errors import CastmatesError
from castmates.inside.events import event_of
from castmates.inside.perf import PerfCounters
from castmates.inside.readings import Counters, Value, difference

METHODS = ("perf", "papi")


def open_counters(events: Sequence[str], method: str = "perf") -> Counters:
    """Open counters of this whole process; what is refused stands in `refused`.

    They go on until `close`. `read` gives totals as a tuple of whole numbers, cheap enough for the edges of phases.
    """
    wanted = list(dict.fromkeys(events))
    if method == "perf":
        return PerfCounters([event_of(event) for event in wanted])
    if method == "papi":
        from castmates.inside.papi import PapiCounters

        return PapiCounters(wanted)
    raise CastmatesError(f"'{method}' is no method of counting: expected one of {', '.join(METHODS)}.")


class Counting:
    """Counts from its making to each `read`, event by event."""

    def __init__(self, events: Sequence[str], counters: Counters) -> None:
        self.counters = counters
        self._events = tuple(dict.fromkeys(events))
        self._begin = counters.readings()

    def read(self) -> dict[str, Value]:
        """What each event came to so far; every event that was asked for is there, with its status."""
        now = self.counters.readings()
        found = {}
        for name, before, after in zip(self.counters.names, self._begin, now, strict=True):
            notes = filter(None, (self.counters.notes.get(name, ""), self.counters.misses))
            found[name] = difference(name, before, after, "; ".join(notes))
        for name, refusal in self.counters.refused.items():
            found[name] = Value(name, None, refusal.status, None, refusal.why)
        return {name: found[name] for name in self._events}


@contextmanager
def counting(events: Sequence[str], method: str = "perf") -> Iterator[Counting]:
    """Count these events of this whole process: all its threads, and those that they start."""
    counters = open_counters(events, method)
    try:
        yield Counting(events, counters)
    finally:
        counters.close()
