"""Proves that a window's quotas of CPU time are those that were given, and counts how often members were held back."""

from collections.abc import Callable, Mapping
from time import monotonic_ns

from castmates.counters.edges import BetweenEdges
from castmates.linux.cpu_quota import Throttling
from castmates.protocols import Sample
from castmates.runner.processes.isolation import Prefetchers
from castmates.runner.processes.quotas import Quotas

QUOTAS = "quotas"
IN_FORCE, QUOTA_CHANGED = "cpu_quota", "cpu_quota_changed"  # metrics; the kernel's words stand in the note
PERIODS, THROTTLED, WAITED = "quota_periods", "quota_throttled", "quota_waited_s"
UNREAD = "cpu.stat cannot be read"
QuotasSeen = tuple[Mapping[str, str], Mapping[str, Throttling | None]]  # quotas in force, and what they held back


class QuotaWitness(BetweenEdges[QuotasSeen]):
    """A collector; it reads cpu.max and cpu.stat, or what version 1 has for them, at both edges."""

    name = QUOTAS

    def __init__(self, quotas: Callable[[], Quotas]) -> None:
        self._quotas = quotas  # they are made when everybody is ready, after whoever watches was chosen

    def _look(self) -> QuotasSeen:
        return self._quotas().read_back(), self._quotas().throttling()

    def _between(self, opening: QuotasSeen, closing: QuotasSeen) -> list[Sample]:
        """What is in force, what differs from what was given, and what was held back."""
        (opened, before), (closed, after), now = opening, closing, monotonic_ns()
        asked, samples = self._quotas().asked(), list[Sample]()
        for name in self._quotas().members:
            wanted = asked.get(name, "")
            if wanted:
                samples.append(Sample(now, QUOTAS, name, IN_FORCE, None, closed.get(name, "none")))
            strange = [seen.get(name, "") for seen in (opened, closed) if seen.get(name, "") != wanted]
            if strange:
                note = f"'{wanted or 'none'}' was '{strange[-1] or 'none'}'"
                samples.append(Sample(now, QUOTAS, name, QUOTA_CHANGED, 1.0, note))
            samples += _held_back(name, before.get(name), after.get(name), now)
        return samples

    def about(self) -> dict[str, str]:
        """Describe how quotas are proved."""
        return {"quotas": "cpu.max and cpu.stat of each member that some scene bounds, at both edges of every window"}


def _held_back(name: str, before: Throttling | None, after: Throttling | None, now: int) -> list[Sample]:
    """How many periods there were, in how many of them the member was throttled, and for how long it waited."""
    metrics = (PERIODS, THROTTLED, WAITED)
    if before is None or after is None:
        return [Sample(now, QUOTAS, name, metric, None, UNREAD) for metric in metrics]
    values = (after.periods - before.periods, after.throttled - before.throttled, after.seconds - before.seconds)
    return [Sample(now, QUOTAS, name, metric, float(value)) for metric, value in zip(metrics, values, strict=True)]


# Proves that a window's prefetchers were on or off as its scene asked.

PREFETCHERS = "prefetchers"
WERE_OFF, PREFETCHERS_CHANGED = (
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
        samples = [Sample(now, PREFETCHERS, "host", WERE_OFF, float(self._prefetchers.off))]
        for target, wanted in self._prefetchers.asked().items():
            strange = [seen[target] for seen in (opening, closing) if seen.get(target) != wanted]
            if strange:
                note = f"{target} was '{strange[-1] or 'not readable'}' and not '{wanted}'"
                samples.append(Sample(now, PREFETCHERS, "host", PREFETCHERS_CHANGED, 1.0, note))
        return samples

    def about(self) -> dict[str, str]:
        """Describe how prefetchers are proved."""
        return {"prefetchers": "the register of each member's cores, at both edges of every watched slice"}
