"""The samples of a slice or of a window, as its ledger asks for them."""

from collections.abc import Iterable, Sequence

from castmates.protocols import Sample


class Readings:
    """Samples by subject and metric."""

    def __init__(self, samples: Sequence[Sample], seconds: float) -> None:
        self.seconds = seconds
        self.samples = samples
        self._values = {(sample.subject, sample.metric): sample for sample in samples}

    def get(self, subject: str, metric: str) -> float | None:
        """Return the value, or None where there is none."""
        sample = self._values.get((subject, metric))
        return None if sample is None else sample.value

    def note(self, subject: str, metric: str) -> str:
        """Return what stands beside the value."""
        sample = self._values.get((subject, metric))
        return "" if sample is None else sample.note

    def busy(self, cpus: Iterable[int]) -> float | None:
        """Seconds that programs and interrupts took on these CPUs."""
        return self._sum((f"cpu{cpu}", metric) for cpu in cpus for metric in ("user_s", "system_s", "irq_s"))

    def interrupts(self, cpus: Iterable[int]) -> float:
        """Seconds that interrupts took on these CPUs."""
        return self._sum((f"cpu{cpu}", "irq_s") for cpu in cpus) or 0.0

    def strays(self, places: Iterable[str]) -> float:
        """Seconds that members' processes took that had left their family."""
        return sum(self.get(place, "strays_s") or 0.0 for place in places)

    def last_cpus(self, member: str) -> set[int]:
        """Return the CPUs that some thread of the member ran on last, at either edge."""
        return {
            int(sample.value)
            for sample in self.samples
            if (sample.subject, sample.metric) == (member, "last_cpu") and sample.value is not None
        }

    def takers(self, places: Iterable[str]) -> list[tuple[float, str]]:
        """Others who took time at these places: seconds and name, who took most first."""
        wanted = set(places)
        took: dict[str, float] = {}
        for sample in self.samples:
            if sample.metric == "foreign_s" and sample.subject in wanted and sample.value is not None:
                took[sample.note] = took.get(sample.note, 0.0) + sample.value
        return sorted(((seconds, who) for who, seconds in took.items()), reverse=True)

    def _sum(self, keys: Iterable[tuple[str, str]]) -> float | None:
        parts = [self.get(*key) for key in keys]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None
