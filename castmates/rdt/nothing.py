"""Allocation and monitoring on a machine that has neither: the study goes on with what is left, and says so."""

from collections.abc import Mapping

from castmates.errors import CastmatesError
from castmates.protocols import Sample


class NoAllocator:
    """Partitions nothing: accepts only the partition "unmanaged"."""

    name = "none"

    def prepare(self, members: Mapping[str, int]) -> None:
        """Make no groups."""

    def apply(self, partition: str) -> None:
        """Accept "unmanaged" and refuse every other partition."""
        if partition != "unmanaged":
            raise CastmatesError(
                f'partition "{partition}" cannot be applied: this machine gives no cache allocation;'
                ' measure only "unmanaged" here, or run the study on a machine with resctrl (see castmates doctor)'
            )

    def read_back(self) -> dict[str, str]:
        """Read no schemata."""
        return {}

    def restore(self) -> None:
        """Put nothing back, for nothing was changed."""

    def about(self) -> dict[str, str]:
        """Say that nothing is driven."""
        return {"allocation": "none: this machine gives no cache allocation"}


class NoMonitor:
    """Reads neither cache occupancy nor bandwidth."""

    name = "none"

    def attach(self, members: Mapping[str, int]) -> None:
        """Watch nobody."""

    def start(self) -> None:
        """Begin no series."""

    def stop(self) -> list[Sample]:
        """Return no samples."""
        return []

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Say that nothing is read."""
        return {"monitoring": "none: this machine gives no cache or bandwidth monitoring"}
