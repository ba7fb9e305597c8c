"""How often the block's CPUs, and their packages, were throttled for heat or power: an effect, never a reason.

Whether the members made the heat or a fan failed does not show in a counter. So it was decided beforehand: throttle
events are recorded as an effect, and no window is rejected for them.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from castmates.linux.kernel_files import CPU_DIR, read_int
from castmates.protocols import Sample

COUNTS = {"core_throttles": "core_throttle_count", "package_throttles": "package_throttle_count"}
NONE_HERE = "this kernel or processor counts no throttling (thermal_throttle is Intel's)"


class Throttling:
    """Counts throttle events between two edges."""

    name = "throttling"

    def __init__(self, cpus: Sequence[int], root: Path = Path("/")) -> None:
        files = {
            (f"cpu{cpu}", metric): root / CPU_DIR / f"cpu{cpu}/thermal_throttle" / count
            for cpu in cpus
            for metric, count in COUNTS.items()
        }
        self._files = {key: file for key, file in files.items() if read_int(file) is not None}
        self._opening: dict[tuple[str, str], int | None] = {}

    def attach(self, members: Mapping[str, int]) -> None:
        """Watch nothing: throttling is a CPU's."""

    def start(self, active: Sequence[str]) -> None:  # noqa: ARG002
        """Read the opening edge."""
        self._opening = self._look()

    def stop(self) -> list[Sample]:
        """Read the closing edge and return the differences."""
        opening, self._opening = self._opening, {}
        closing = self._look() if opening else {}
        now = time.monotonic_ns()
        samples = []
        for (subject, metric), after in closing.items():
            before = opening[subject, metric]
            value = None if before is None or after is None else float(after - before)
            note = "" if value is not None else "this CPU is offline"
            samples.append(Sample(now, self.name, subject, metric, value, note))
        return samples

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Describe what is counted."""
        return {"throttles": "thermal_throttle/*_throttle_count of each CPU; recorded, never a reason"}

    def available(self) -> str | None:
        """Explain why there is nothing to count; None where there is something."""
        return None if self._files else NONE_HERE

    def _look(self) -> dict[tuple[str, str], int | None]:
        return {key: read_int(file) for key, file in self._files.items()}
