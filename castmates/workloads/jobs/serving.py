"""Requests to a job that arrive whether or not it keeps up: an open loop, one server, first come first served.

Arrivals are Poisson's, from a seed. A latency begins when the request was due, so what is due in a stall has waited.
docs/services.md describes what a schedule does at changes of scene. Standard library only.
"""

import random
import time
from collections.abc import Callable

from castmates.workloads.request_file import Writer

LOOK_S = 0.02  # after which SIGTERM and the runner are looked for, where nothing is due
SECOND = 1_000_000_000


class Arrivals:
    """The schedule of the requests to a job, and the record of what became of them."""

    def __init__(
        self,
        load: float,
        seed: int,
        record: Writer | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """So many requests a second on average; the schedule begins with the first wait."""
        self._load, self._draw = load, random.Random(seed)
        self._record, self._clock, self._sleep = record, clock, sleep
        self._scene: int | None = None
        self._due, self._sent = 0.0, 0

    @classmethod
    def of(cls, load: float | None, seed: int | None) -> "Arrivals | None":
        """Those that a command line asks for, recorded where the runner named a file; None without a load."""
        return cls(load, seed, Writer.from_environment()) if load and seed else None

    def wait(self, leaving: Callable[[], bool]) -> bool:
        """Come back when a request is due, or was while another one was served; False where the job is to end."""
        while not leaving():
            # What is sent below was due by this moment, in the scene that still ran then.
            now, scene = self._clock(), self._record.scene if self._record else 0
            if scene != self._scene:
                self._begin(scene)
            elif self._due <= now:
                self._sent = now
                return True
            else:
                self._sleep(min((self._due - now) / SECOND, LOOK_S))
        return False

    def answered(self) -> None:
        """Record that the request that was due is answered."""
        if self._record:
            self._record.done(int(self._due), self._sent, self._clock())
        self._next()

    def _begin(self, scene: int) -> None:
        """Give up what was due by the end of the last scene, and draw from now on: a Poisson process has no memory."""
        while self._scene is not None and self._record and self._due <= self._record.ended:
            self._record.done(int(self._due))
            self._next()
        self._scene, self._due = scene, float(self._clock())
        self._next()

    def _next(self) -> None:
        self._due += self._draw.expovariate(self._load) * SECOND
