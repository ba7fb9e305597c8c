"""The clock of the uncore (mesh, last-level cache, memory controllers), as Intel's driver shows it to root."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from castmates.linux.kernel_files import CPU_DIR, read_int

FOLDER = f"{CPU_DIR}/intel_uncore_frequency"
CURRENT, LOWEST, HIGHEST = "current_freq_khz", "min_freq_khz", "max_freq_khz"
METRIC = "uncore_ghz"
_WHOLE = re.compile(r"package_(\d+)_die_\d+")


def domains(root: Path = Path("/")) -> dict[Path, int]:
    """Return the folder of every clock domain and its package.

    Newer processors have a folder for each domain (uncore00 …) besides those that set all domains of a die at once.
    """
    folders = sorted((root / FOLDER).glob("*"))
    fine = {folder: read_int(folder / "package_id") for folder in folders if folder.name.startswith("uncore")}
    named = {folder: int(match[1]) for folder in folders if (match := _WHOLE.fullmatch(folder.name))}
    return {folder: package for folder, package in fine.items() if package is not None} or named


class UncoreClock:
    """Reads the clock of each package's domains."""

    def __init__(self, packages: Sequence[int], root: Path = Path("/")) -> None:
        self._domains = {folder: package for folder, package in domains(root).items() if package in packages}

    def read(self) -> dict[int, list[float]]:
        """Return the clocks of each package's domains in GHz; of a package that lacks one, nothing."""
        clocks: dict[int, list[float]] = {}
        for folder, package in self._domains.items():
            khz = read_int(folder / CURRENT)
            clocks.setdefault(package, []).append(float("nan") if khz is None else khz / 1e6)
        return {package: each for package, each in clocks.items() if not any(map(math.isnan, each))}

    def why_not(self) -> str:
        """Explain why there is no clock; "" where there is one."""
        if not self._domains:
            return "this kernel shows no uncore clock (intel_uncore_frequency is Intel's)"
        return (
            "" if self.read() else f"{CURRENT} is not shown: only root may read it, and only Linux 5.18 or later has it"
        )
