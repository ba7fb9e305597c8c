"""Proves that a window's prefetchers were on or off as its scene asked."""

from collections.abc import Mapping, Sequence
from time import monotonic_ns

from castmates.protocols import Sample
from castmates.runner.processes.prefetchers import Prefetchers

SOURCE = "prefetchers"
OFF, CHANGED = "prefetchers_off", "prefetchers_changed"  # metrics; a register stands in the note


class PrefetchWitness:
    """A collector; it reads the register of every member's core at both edges."""

    name = SOURCE

    def __init__(self, prefetchers: Prefetchers) -> None:
        self._prefetchers = prefetchers
        self._opened: dict[str, str] = {}

    def attach(self, members: Mapping[str, int]) -> None:
        """Watch their cores, which are known."""

    def start(self, active: Sequence[str]) -> None:  # noqa: ARG002
        """Read at the opening edge."""
        self._opened = self._prefetchers.read_back()

    def stop(self) -> list[Sample]:
        """Read at the closing edge: whether they were off, and which register held something else."""
        closed, now = self._prefetchers.read_back(), monotonic_ns()
        samples = [Sample(now, SOURCE, "host", OFF, float(self._prefetchers.off))]
        for target, wanted in self._prefetchers.asked().items():
            strange = [seen[target] for seen in (self._opened, closed) if seen.get(target) != wanted]
            if strange:
                note = f"{target} was '{strange[-1] or 'not readable'}' and not '{wanted}'"
                samples.append(Sample(now, SOURCE, "host", CHANGED, 1.0, note))
        return samples

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Describe how prefetchers are proved."""
        return {"prefetchers": "the register of each member's cores, at both edges of every watched slice"}
