"""Energy counters as the power capping framework shows them, where perf's `power` unit cannot be had."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.counters.package.sources import ENERGY, MEMORY_ENERGY, energy_is_the_package_s
from castmates.linux.kernel_files import read_int, read_text

ZONES = "sys/class/powercap"
_PACKAGE = re.compile(r"package-(\d+)(?:-die-\d+)?")


@dataclass(frozen=True, slots=True)
class Zone:
    """One counter of microjoules, which starts again at 0 above its range."""

    metric: str
    package: int
    file: Path
    range: int

    def joules(self, before: int, after: int) -> float:
        """Return what passed between two readings, less than a whole range apart."""
        return ((after - before) % (self.range + 1)) / 1e6


def zones(packages: Sequence[int], root: Path = Path("/")) -> list[Zone]:
    """List the counters of these packages, and of their memory, that this user may read."""
    found: list[Zone] = []
    once = energy_is_the_package_s(root)
    for folder in sorted((root / ZONES).glob("intel-rapl:*")):
        top = folder.name.split(":")[:2]
        match = _PACKAGE.fullmatch(read_text(folder.with_name(":".join(top)) / "name") or "")
        is_top, name = len(folder.name.split(":")) == 2, read_text(folder / "name")
        metric = ENERGY if is_top else MEMORY_ENERGY if name == "dram" else None
        most = read_int(folder / "max_energy_range_uj")
        if match is None or metric is None or most is None or int(match[1]) not in packages:
            continue
        if once and any((zone.package, zone.metric) == (int(match[1]), metric) for zone in found):
            continue  # of another die, and the same counter
        if read_int(folder / "energy_uj") is not None:
            found.append(Zone(metric, int(match[1]), folder / "energy_uj", most))
    return found
