"""What the runner of a benchmark needs to know of it, whatever suite it is from."""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from castmates.workloads import child
from castmates.workloads.heartbeat import VARIABLE

# What the suite recorded of the user's shell is taken over, but not these: they are the runner's.
OURS = ("TMPDIR", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
NOT_FOR_IT = (VARIABLE, "PYTHONPATH")


class SuiteError(Exception):
    """Something is missing or wrong in an installation; one sentence for the user."""


@dataclass(frozen=True)
class Step:
    """One command of a run; what it writes to its standard output, and does not redirect itself, goes to `output`."""

    shown: str  # in a sentence
    command: list[str]
    folder: Path
    output: Path
    environment: dict[str, str] = field(default_factory=dict)
    may_fail: bool = False  # the commands after it are run whatever its status is


class Job(Protocol):
    """A benchmark that can be run again and again in its own folder."""

    def digest(self) -> str:
        """Digest the programs and commands, so that others are another measurement."""

    def prepare(self, place: Path) -> None:
        """Fill an empty folder with what a run needs."""

    def renew(self) -> None:
        """Make the folder what it was before the first run."""

    def steps(self) -> list[Step]:
        """The commands of one run, in order."""

    def wrong(self) -> str:
        """Compare what the last run wrote with what the suite expects; "" or what differs."""


def variables(step: Step) -> dict[str, str]:
    """What a step finds in its environment: the suite's variables over ours, except those that are the runner's."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_FOR_IT}
    return kept | {name: value for name, value in step.environment.items() if name not in (*OURS, *NOT_FOR_IT)}


def run(step: Step) -> int:
    """Run it to its end and return its status."""
    with step.output.open("wb") as output:
        return child.run(step.command, output, folder=step.folder, environment=variables(step))


def digest_of(files: Iterable[Path]) -> str:
    """Digest files with their names."""
    digest = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as problem:
            raise SuiteError(f"{file} cannot be read: {problem.strerror}") from None
        digest.update(f"{file.name}\0{content}\n".encode())
    return digest.hexdigest()[:12]


def last_words(file: Path) -> str:
    """Quote the end of what a program wrote, for a sentence; "" where it wrote nothing."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f'; it last wrote "{line[:200]}"' if line else ""


# A folder that a benchmark runs in: filled once, and put back to what it was before every further run.

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
