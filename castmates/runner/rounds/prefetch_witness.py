"""Proves that a window's prefetchers were on or off as its scene asked."""

from time import monotonic_ns

from castmates.counters.edges import BetweenEdges
from castmates.protocols import Sample
from castmates.runner.processes.isolation import Prefetchers

PREFETCHERS = "prefetchers"
PREFETCHERS_OFF, PREFETCHERS_CHANGED = (
    "prefetchers_off",
    "prefetchers_changed",
)  # metrics; a register stands in the note


class PrefetchWitness(BetweenEdges[dict[str, str]]):
    """A collector; it reads the register of every member's core at both edges."""

    name = PREFETCHERS

    def __init__(self, prefetchers: Prefetchers) -> None:
        self._prefetchers = prefetchers

    def _look(self) -> dict[str, str]:
        return self._prefetchers.read_back()

    def _between(self, opening: dict[str, str], closing: dict[str, str]) -> list[Sample]:
        """Whether they were off, and which register held something else."""
        now = monotonic_ns()
        samples = [Sample(now, PREFETCHERS, "host", PREFETCHERS_OFF, float(self._prefetchers.off))]
        for target, wanted in self._prefetchers.asked().items():
            strange = [seen[target] for seen in (opening, closing) if seen.get(target) != wanted]
            if strange:
                note = f"{target} was '{strange[-1] or 'not readable'}' and not '{wanted}'"
                samples.append(Sample(now, PREFETCHERS, "host", PREFETCHERS_CHANGED, 1.0, note))
        return samples

    def about(self) -> dict[str, str]:
        """Describe how prefetchers are proved."""
        return {"prefetchers": "the register of each member's cores, at both edges of every watched slice"}
