"""Looks at something at a steady rate while a window is open, in a thread on the CPUs of the thread that starts it."""

import threading
import time
from collections.abc import Callable

from castmates.protocols import Sample


class Sampler(threading.Thread):
    """Looks until it is ended; a late look is not made up for, and no two come at once."""

    def __init__(self, name: str, look: Callable[[], list[Sample]], period: float, edges: bool = False) -> None:
        """With `edges` it looks at its begin and at its end too; without, others read there."""
        super().__init__(name=f"castmates-{name}", daemon=True)
        self.cpu_ns = self.open_ns = 0
        self._look, self._period, self._edges = look, period, edges
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
        """Look until it is ended."""
        cpu, begin = time.thread_time_ns(), time.monotonic_ns()
        try:
            self._run()
        except BaseException as error:  # raised again where it is ended
            self._error = error
        self.cpu_ns, self.open_ns = time.thread_time_ns() - cpu, time.monotonic_ns() - begin

    def _run(self) -> None:
        last = due = time.monotonic()
        if self._edges:
            self._samples += self._look()
        while not self._end.wait(_until(due := max(due + self._period, last + self._period / 2))):
            last = time.monotonic()
            self._samples += self._look()
        if self._edges and time.monotonic() - last >= self._period / 2:
            self._samples += self._look()


def _until(due: float) -> float:
    return max(0.0, due - time.monotonic())
