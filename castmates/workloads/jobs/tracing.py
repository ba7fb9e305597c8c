"""Traces the next steps of a running job when the runner asks for it, between two steps (standard library).

The page and the answer are those of TensorFlow's jobs (tfmodels/profile_page.py); whole traces are left in a folder,
which the runner reads.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from castmates.workloads.tfmodels.profile_page import FOLDER, Page, PrimitiveLog

# Reads two clocks at one moment (standard library).

TRIES = 5


def clock_pair() -> tuple[int, int, int]:
    """The steady and the real clock at one moment, and how far apart they may have been read: all in nanoseconds.

    Of a few tries the closest one; the first may have been interrupted.
    """
    tries = []
    for _ in range(TRIES):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        tries.append((after - before, (before + after) // 2, real))
    bracket, steady, real = min(tries)
    return steady, real, bracket


STEP = "castmates_step"  # the mark around each step, as in TensorFlow's traces
INPUT = "castmates_input"  # the mark around the wait for a batch
Item = TypeVar("Item")
Mark = AbstractContextManager[object]


class Tracer(Protocol):
    """The profiler of a framework."""

    failures: tuple[type[Exception], ...]  # what it raises where it cannot trace

    def start(self, folder: Path) -> None:
        """Begin a trace, which is to be left in this folder."""

    def step(self, number: int) -> Mark:
        """Mark what happens inside as a step."""

    def stop(self) -> None:
        """End the trace and write it."""

    def threads(self) -> tuple[int, int]:
        """How many threads work for one operation, and how many operations may run side by side."""


class Profiler:
    """Looks after each step whether a trace is wanted; it costs the job two comparisons while none is."""

    def __init__(self, page: Page, tracer: Tracer, traces: Path) -> None:
        self._page, self._tracer, self._traces = page, tracer, traces
        self._failures: tuple[type[Exception], ...] = (OSError, *tracer.failures)
        self._done = page.asked
        self._steps = 0  # heartbeats so far
        self._first_step = 0  # of the trace that is being made
        self._left = 0  # steps of the trace that is being made
        self._mark: Mark | None = None
        self._clocks: list[tuple[int, int, int]] = []
        self._log = PrimitiveLog.wanted()  # of oneDNN
        page.offer()

    @classmethod
    def wanted(cls, tracer: Callable[[], Tracer]) -> "Profiler | None":
        """One where the runner has named a page and a folder for whole traces, else None."""
        traces = os.environ.get(FOLDER)
        page = Page.from_environment() if traces else None
        return cls(page, tracer(), Path(traces)) if page and traces else None

    def step_is_over(self) -> None:
        """Begin, go on with, or end a trace where one is asked for."""
        self._steps += 1
        if self._steps == 1 and self._log is not None:
            self._log.warmed_up()
        if self._left:
            self._next()
        elif self._page.asked != self._done:
            self._begin()

    @property
    def _folder(self) -> Path:
        return self._traces / str(self._done)

    def _begin(self) -> None:
        self._done = self._page.asked
        try:
            self._folder.mkdir(parents=True)
            self._clocks = [clock_pair()]
            if self._log is not None:
                self._log.begin(str(self._folder))
            self._tracer.start(self._folder)
        except self._failures as error:
            self._failed(error)
            return
        self._left = max(self._page.steps, 1)  # and one before, which pays for the profiler's start

    def _next(self) -> None:
        if self._mark is None:
            self._first_step = self._steps
        else:
            self._mark.__exit__(None, None, None)
            self._mark = None
            self._left -= 1
        if self._left:
            self._open()
        else:
            self._end()

    def _open(self) -> None:
        self._mark = self._tracer.step(self._left)
        self._mark.__enter__()

    def _end(self) -> None:
        self._clocks.append(clock_pair())
        if self._log is not None:
            self._log.end()
        begin = time.monotonic()
        try:
            self._tracer.stop()
        except self._failures as error:
            self._failed(error)
            return
        self._answer(
            {
                "trace": self._done,
                "first_step": self._first_step,
                "clocks": self._clocks,
                "threads": self._tracer.threads(),
                "write_seconds": time.monotonic() - begin,
            }
        )

    def _failed(self, error: Exception) -> None:
        if self._log is not None:
            self._log.end()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._answer({"error": next(iter(str(error).splitlines()), type(error).__name__)})

    def _answer(self, content: dict[str, object]) -> None:
        with suppress(OSError):  # the job goes on without its trace; the runner reports that nothing came
            self._page.answer(self._done, content)


class Marked(Iterator[Item]):
    """The same batches, each wait for one inside a mark."""

    def __init__(self, batches: Iterator[Item], mark: Callable[[], Mark]) -> None:
        self.batches, self._mark = batches, mark

    def __next__(self) -> Item:
        with self._mark():
            return next(self.batches)
