"""A folder that a benchmark runs in: filled once, and put back to what it was before every further run."""

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

Mark = tuple[int, int] | None  # size and time of a file; None is a directory


class PrivateCopy:
    """Knows which files and directories there were, so that a run never finds what an earlier one left."""

    def __init__(self, place: Path, restore: Callable[[str], None]) -> None:
        self.place = place
        self._restore = restore  # writes the file of this relative name again
        self._before = self._marks()

    def renew(self) -> None:
        """Remove what is new, and restore what was changed or removed."""
        now = self._marks()
        for name, mark in sorted(now.items(), reverse=True):  # what is in a directory comes before the directory
            if name in self._before and (mark is None) == (self._before[name] is None):
                continue
            if mark is None:
                (self.place / name).rmdir()
            else:
                (self.place / name).unlink()
        for name, mark in self._before.items():
            if mark is None:
                (self.place / name).mkdir(parents=True, exist_ok=True)
            elif now.get(name) != mark:
                (self.place / name).unlink(missing_ok=True)
                (self.place / name).parent.mkdir(parents=True, exist_ok=True)
                self._restore(name)
                self._before[name] = _mark(self.place / name)

    def _marks(self) -> dict[str, Mark]:
        return {str(file.relative_to(self.place)): _mark(file) for file in self.place.rglob("*")}


def copy_tree(source: Path, place: Path, left_out: set[str]) -> PrivateCopy:
    """Copy a folder, without the files of these names at its top."""

    def skipped(folder: str, names: list[str]) -> set[str]:
        return left_out.intersection(names) if Path(folder) == source else set()

    def restore(name: str) -> None:
        shutil.copy2(source / name, place / name)

    shutil.copytree(source, place, ignore=skipped, dirs_exist_ok=True)
    return PrivateCopy(place, restore)


def _mark(file: Path) -> Mark:
    facts = file.lstat()
    if stat.S_ISDIR(facts.st_mode):
        return None
    return facts.st_size, facts.st_mtime_ns
