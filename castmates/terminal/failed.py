"""Jobs that failed in a sweep: each reason is shown once, and what Ctrl-C ended has not failed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.pipeline.failures import last_words, was_ended
from castmates.study.spec import Launch
from castmates.terminal.jobs import Job
from castmates.terminal.words import WRONG, tick

LOG_LINES = 20  # of the first job that failed; of others the last one
MOST_REASONS = 5  # that are shown: the end names the others
SILENT = "It printed nothing; something may have killed it."


@dataclass(frozen=True)
class Failure:
    """A job that failed."""

    job: Job
    last: list[str]  # lines that it printed
    logs: list[Path]


class Failures:
    """The failures of one sweep."""

    def __init__(self, launches: Mapping[str, Launch]) -> None:
        self.are_interruptions = False  # the user pressed Ctrl-C: the jobs themselves did not fail
        self.count = 0
        self.was_shown = False  # the last one
        self._launches = launches
        self._reasons: set[str] = set()
        self._silent: list[Failure] = []

    def add(self, job: Job, logs: Iterable[str], why: str = "") -> list[str]:
        """Note a job that failed; the lines that show it, if it is to be shown now.

        `why` is what the executor reports of it: what a cluster refused has no log.
        """
        files = [Path(file) for file in logs]
        failure = Failure(job, last_words(files, LOG_LINES) or why.strip().splitlines(), files)
        if was_ended(failure.last):
            self.are_interruptions = True
        elif not failure.last:
            self._silent.append(failure)  # interrupted while it started, or killed: the end shows which
        lines = self._lines(failure) if failure.last and not was_ended(failure.last) else []
        self.was_shown = bool(lines)
        return lines

    def left(self) -> list[str]:
        """The lines of those that the end must show."""
        return [line for failure in self._silent if not self.are_interruptions for line in self._lines(failure)]

    def _lines(self, failure: Failure) -> list[str]:
        """Those of a reason that is new; the same again stands in the end's count."""
        self.count += 1
        last = failure.last or [SILENT]
        if last[-1] in self._reasons or len(self._reasons) >= MOST_REASONS:
            return []
        shown = last[-1:] if self._reasons else last
        self._reasons.add(last[-1])
        below = [*shown, *map(str, failure.logs[:1])]
        return [tick(WRONG, "failed", failure.job.about(self._launches)), *(f"     {line}" for line in below)]
