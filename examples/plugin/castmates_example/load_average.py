"""A collector: the load average of the last minute, at both edges of each watched slice."""

import os
import time
from collections.abc import Mapping, Sequence

from castmates.protocols import Sample


class LoadAverage:
    """The number of processes that are ready to run on the whole machine."""

    name = "load-average"

    def __init__(self, cpus: Sequence[int]) -> None:
        """`cpus` are those of the launch, of which only the number matters here."""
        self._cpus = len(cpus)
        self._before = 0.0

    def attach(self, members: Mapping[str, int]) -> None:
        """Members are not read."""

    def start(self, active: Sequence[str]) -> None:
        """Read it at the opening edge."""
        self._before = os.getloadavg()[0]

    def stop(self) -> list[Sample]:
        """Return the larger of both edges."""
        load = max(self._before, os.getloadavg()[0])
        return [Sample(time.monotonic_ns(), self.name, "host", "load_1min", load)]

    def close(self) -> None:
        """There is nothing to release."""

    def about(self) -> dict[str, str]:
        """For the launch's record."""
        return {"load average": f"of one minute, the larger of both edges; the launch has {self._cpus} CPUs"}
