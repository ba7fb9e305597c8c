"""The clock of the uncore (mesh, last-level cache, memory controllers) as Intel's driver shows and sets it."""

import re
from pathlib import Path

from castmates.linux.kernel_files import CPU_DIR, read_int

FOLDER = f"{CPU_DIR}/intel_uncore_frequency"
CURRENT, LOWEST, HIGHEST = "current_freq_khz", "min_freq_khz", "max_freq_khz"  # the first is root's to read
INITIAL = {LOWEST: "initial_min_freq_khz", HIGHEST: "initial_max_freq_khz"}  # as the firmware left them
STEP_KHZ = 100_000
_WHOLE = re.compile(r"package_(\d+)_die_\d+")


def domains(root: Path = Path("/")) -> dict[Path, int | None]:
    """Return the folder of every clock domain and its package, which newer kernels show to root alone.

    Newer processors have a folder for each domain (uncore00 …) besides those that set all domains of a die at once.
    """
    folders = sorted((root / FOLDER).glob("*"))
    if fine := {folder: read_int(folder / "package_id") for folder in folders if folder.name.startswith("uncore")}:
        return fine
    return {folder: int(match[1]) for folder in folders if (match := _WHOLE.fullmatch(folder.name))}
