"""Looks at something at a steady rate while a window is open, in a thread on the CPUs of whoever starts it."""

import threading
import time
from collections.abc import Callable

from castmates.protocols import Sample


class Series(threading.Thread):
    """Looks until it is told to end; a look that comes late is not made up for."""

    def __init__(self, look: Callable[[], list[Sample]], period: float) -> None:
        super().__init__(name="castmates-counters", daemon=True)
        self.cpu_ns = 0
        self._look, self._period = look, period
        self._samples: list[Sample] = []
        self._error: BaseException | None = None
        self._end = threading.Event()

    def finish(self) -> list[Sample]:
        """End it and return everything."""
        self._end.set()
        self.join()
        if self._error:
            raise self._error
        return self._samples

    def run(self) -> None:
        """Look; the edges of the window are read by others."""
        begin, due = time.thread_time_ns(), time.monotonic()
        try:
            while True:
                due = max(due + self._period, time.monotonic() + self._period / 2)
                if self._end.wait(max(0.0, due - time.monotonic())):
                    break
                self._samples += self._look()
        except BaseException as error:  # told to whoever ends the series
            self._error = error
        self.cpu_ns = time.thread_time_ns() - begin
