"""A file that the runner has mapped, and that a member could remove, replace or cut."""

from pathlib import Path


def identity_of(path: Path) -> tuple[int, int] | None:
    """What changes where a file is removed, replaced or cut; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size


class MappedFile:
    """Watches whether it is still the file that was mapped, in its whole length."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self._what = path, what
        self._identity = identity_of(path)
        self.trouble = ""  # why nothing more is read

    def is_sound(self) -> bool:
        """Look at the file before touching the mapping: to read behind the end of a cut file would kill the runner."""
        if not self.trouble and identity_of(self.path) != self._identity:
            self.trouble = f"the {self._what} file was removed, replaced or cut"
        return not self.trouble

    def spoilt(self, why: str) -> None:
        """Read no more of it."""
        self.trouble = f"the {self._what} file was spoilt: {why}"
