"""Reads and sets who may do what with a file or folder, as octal digits."""

import stat
from pathlib import Path


def read_mode(path: Path) -> str:
    """Return the permissions, such as 755."""
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


def write_mode(path: Path, mode: str) -> None:
    """Set them."""
    path.chmod(int(mode, 8))
