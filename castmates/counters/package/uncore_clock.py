"""The clock of the uncore, as Intel's driver shows it to root: a moment's, so that both edges are read."""

from collections.abc import Sequence
from pathlib import Path

from castmates.linux.kernel_files import read_int
from castmates.linux.uncore_frequency import CURRENT, domains

METRIC = "uncore_ghz"


class UncoreClock:
    """Reads the clock of each package's domains."""

    def __init__(self, packages: Sequence[int], root: Path = Path("/")) -> None:
        found = domains(root).items()
        self._domains = {folder: package for folder, package in found if package is not None and package in packages}

    def read(self) -> dict[int, list[float]]:
        """Return the clocks of each package's domains in GHz; of a package that lacks one, nothing."""
        clocks: dict[int, list[float]] = {}
        lacking = set()
        for folder, package in self._domains.items():
            khz = read_int(folder / CURRENT)
            if khz is None:
                lacking.add(package)
            else:
                clocks.setdefault(package, []).append(khz / 1e6)
        return {package: each for package, each in clocks.items() if package not in lacking}

    def why_not(self) -> str:
        """Explain why there is no clock; "" where there is one."""
        if not self._domains:
            return "this kernel shows no uncore clock (intel_uncore_frequency is Intel's)"
        return "" if self.read() else f"{CURRENT} is not shown: only root may read it, where the kernel has it"
