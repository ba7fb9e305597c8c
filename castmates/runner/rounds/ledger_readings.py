"""The samples of a window, as its ledger asks for them."""

from collections.abc import Iterable

from castmates.runner.rounds.window import Window


class Readings:
    """A window's samples by subject and metric."""

    def __init__(self, window: Window) -> None:
        self.seconds = (window.close_ns - window.open_ns) / 1e9
        self.samples = window.samples
        self._values = {(one.subject, one.metric): one for one in window.samples}

    def get(self, subject: str, metric: str) -> float | None:
        """The value, or None where there is none."""
        one = self._values.get((subject, metric))
        return None if one is None else one.value

    def note(self, subject: str, metric: str) -> str:
        """What stands beside the value."""
        one = self._values.get((subject, metric))
        return "" if one is None else one.note

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
        """The CPUs that some thread of the member ran on last, at either edge."""
        return {
            int(one.value)
            for one in self.samples
            if (one.subject, one.metric) == (member, "last_cpu") and one.value is not None
        }

    def takers(self, places: Iterable[str]) -> list[tuple[float, str]]:
        """Others who took time at these places: seconds and name, who took most first."""
        wanted = set(places)
        took: dict[str, float] = {}
        for one in self.samples:
            if one.metric == "foreign_s" and one.subject in wanted and one.value is not None:
                took[one.note] = took.get(one.note, 0.0) + one.value
        return sorted(((seconds, who) for who, seconds in took.items()), reverse=True)

    def _sum(self, keys: Iterable[tuple[str, str]]) -> float | None:
        parts = [self.get(*key) for key in keys]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None
