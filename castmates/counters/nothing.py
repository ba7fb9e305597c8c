"""Counters on a machine that lets us count nothing."""

from collections.abc import Mapping, Sequence

from castmates.protocols import Sample


class NoCollector:
    """Counts nothing and explains why."""

    reads = False

    def __init__(self, reason: str = "this machine gives no counters", name: str = "none") -> None:
        self.name = name  # of what would be collected
        self._reason = reason

    def attach(self, members: Mapping[str, int]) -> None:
        """Watch nothing."""

    def start(self, active: Sequence[str]) -> None:
        """Mark no edge."""

    def stop(self) -> list[Sample]:
        """Return no samples."""
        return []

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Report that nothing is counted, and why."""
        return {"counters": f"none: {self._reason}"}
