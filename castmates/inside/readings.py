"""What both methods give: readings, and values with what they are worth."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

Status = Literal["counted", "scaled", "not supported", "not counted"]
WHOLE = 0.999  # share of the time from which on a count is that of all of it
NO_COUNT = "the kernel gave no count"
LEAST = 0.95  # below it a scaled count is no measurement


class Reading(NamedTuple):
    """A count since the counters were opened and, in ns, how long it was wanted and how long it really counted."""

    total: int | None  # None where the kernel gave none
    enabled: int
    running: int


class Refusal(NamedTuple):
    """Why an event has no counter here."""

    status: Status
    why: str


class Value(NamedTuple):
    """What an event came to; None unless it was counted or scaled, and a zero that was counted is 0."""

    name: str
    value: float | None
    status: Status
    running: float | None  # the share of its time for which it was counted; None where that is not reported
    note: str = ""


class Counters(Protocol):
    """Counters of this whole process that are open."""

    source: str  # "perf_event_open" or "PAPI"
    names: tuple[str, ...]  # of the events that are counted, in the order of what `read` returns; not that of the wish
    refused: dict[str, Refusal]  # the others
    notes: dict[str, str]  # what a counted event lacks
    misses: str  # which threads are not counted; "" where all are

    def read(self) -> tuple[int | None, ...]:
        """Read the totals so far, as quickly as can be; None for what gave no count, and never an exception."""

    def readings(self) -> tuple[Reading, ...]:
        """Read the totals so far, each with its times; both 0 where they are not reported."""

    def close(self) -> None:
        """Close them; safe to call twice."""


def difference(name: str, before: Reading, after: Reading, note: str = "") -> Value:
    """Subtract two readings; a counter that had to be shared is scaled, or marked as not counted."""
    if before.total is None or after.total is None:
        return Value(name, None, "not counted", None, _joined(NO_COUNT, note))
    count, enabled, running = after.total - before.total, after.enabled - before.enabled, after.running - before.running
    if not after.enabled:
        return Value(name, count, "counted", None, note)
    if enabled <= 0:
        why = "the process was on no processor in between"
        return Value(name, None, "not counted", None, _joined(why, note))
    share = running / enabled
    if share < LEAST:
        why = f"other events held the counters: it was counted for {share:.1%} of the time"
        return Value(name, None, "not counted", share, _joined(why, note))
    if share < WHOLE:
        return Value(name, count / share, "scaled", share, _joined(f"counted for {share:.1%} of the time", note))
    return Value(name, count, "counted", share, note)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


# Opens something for every thread of this process, and sees whether all were caught.

TRIES = 5
One = TypeVar("One")
MISSED = "threads were started while the counters were opened: they may be missing"


def own_threads() -> list[int]:
    """List the threads that this process has now."""
    return sorted(int(thread.name) for thread in Path("/proc/self/task").iterdir())


def for_every_thread(
    open_one: Callable[[int], One],
    close: Callable[[Iterable[One]], None],
    threads: Callable[[], list[int]] = own_threads,
) -> tuple[list[One], str]:
    """Open one for each thread; again if a thread came meanwhile, which may or may not have inherited a counter.

    The second value names what may be missing.
    """
    for attempt in range(1, TRIES + 1):
        before, opened = threads(), []
        try:
            for tid in before:
                try:
                    opened.append(open_one(tid))
                except ProcessLookupError:
                    continue  # it has ended
        except BaseException:
            close(opened)
            raise
        if set(threads()) <= set(before):
            return opened, ""
        if attempt < TRIES:
            close(opened)
    return opened, MISSED
