"""What the runner of a benchmark needs to know of it, whatever suite it is from."""

import hashlib
import os
from collections.abc import Iterable
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
