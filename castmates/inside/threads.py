"""Opens something for every thread of this process, and sees whether all were caught."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

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
