"""Allocation and monitoring on a machine that has neither: the study goes on with what is left, and reports so."""

from collections.abc import Mapping, Sequence

from castmates.errors import CastmatesError
from castmates.protocols import Held, Sample
from castmates.study.spec import Share


class NoAllocator:
    """Partitions nothing: gives everything to everybody, and nothing else."""

    name = "none"

    def __init__(self, why: str = "none: this machine gives no cache allocation") -> None:
        self.why = why

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Make no groups."""

    def apply(self, shares: Sequence[Share]) -> bool:
        """Refuse all shares."""
        if shares:
            raise CastmatesError(
                f"no partition can be applied ({self.why}); run the study on a machine with resctrl (see castmates"
                " doctor), or take its partitions out."
            )
        return False

    def read_back(self) -> dict[str, str]:
        """Read no schemata."""
        return {}

    def misplaced(self) -> list[str]:
        """Look for nothing."""
        return []

    def restore(self) -> None:
        """Put nothing back, because nothing was changed."""

    def about(self) -> dict[str, str]:
        """Report that nothing is driven, and why."""
        return {"allocation": self.why}


class NoMonitor:
    """Reads neither cache occupancy nor bandwidth."""

    name = "none"
    rate = 0.0

    def __init__(self, why: str = "none: this machine gives no cache or bandwidth monitoring") -> None:
        self.why = why

    def attach(self, members: Mapping[str, Held]) -> None:
        """Watch nothing."""

    def start(self) -> None:
        """Begin no series."""

    def stop(self) -> list[Sample]:
        """Return no samples."""
        return []

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Report that nothing is read, and why."""
        return {"monitoring": self.why}
