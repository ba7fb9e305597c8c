"""Where a sweep is shown: a terminal whose last lines change, or a log that only grows."""

import math
import os
import sys
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from castmates.english import counted, duration, printable
from castmates.results.folder import StudyFolder
from castmates.results.profiles import missing_profiles, read_record
from castmates.study.spec import Plan
from castmates.terminal.jobs import Apart, Job
from castmates.terminal.preview.profiles import tracing_time
from castmates.terminal.sweep import LaunchProgress, Sweep
from castmates.terminal.words import DONE, WRONG, clock, launches, tick


class Screen(Protocol):
    """Takes lines that stay, and shows a sweep in lines that change."""

    changes: bool  # whether it has lines that change

    def line(self, text: str, style: str = "") -> None:
        """Print a line that stays."""

    def update(self, sweep: Sweep, launches_of: Counter[str], job: str, now: float) -> None:
        """Show how far a sweep is, and which job runs besides launches."""

    def close(self) -> None:
        """Take away the lines that change."""


def screen(progress: bool) -> Screen:
    """The one that standard error is; nothing changes where progress is not wanted."""
    if not progress or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Log()
    from castmates.terminal.live import Terminal  # loads rich, which is not needed to read the workflow

    return Terminal()


class Log:
    """A file, or whatever else is no terminal."""

    changes = False

    def line(self, text: str, style: str = "") -> None:  # noqa: ARG002 (a log has no colours)
        """Print a line."""
        with suppress(OSError):  # the listener may be gone
            print(printable(text), file=sys.stderr, flush=True)

    def update(self, sweep: Sweep, launches_of: Counter[str], job: str, now: float) -> None:
        """Show nothing: a log would be full of it."""

    def close(self) -> None:
        """Nothing is to be taken away."""


def clock_time() -> str:
    """The time, as lines of a log begin."""
    return f"{datetime.now():%H:%M:%S}"


# Which launches get a line in a log: all of a short sweep, some of a long one, whatever is added to it on the way.

MOST = 40  # lines of launches
FEWEST = 1  # of those that are added when there have been as many
MOST_REASONS = 6  # of launches whose programs failed


class LogLines:
    """Those of one sweep."""

    def __init__(self) -> None:
        self._shown = 0
        self._total = 0  # launches that the pace was made for
        self._every, self._next = 1, 1
        self._reasons: set[tuple[str, str]] = set()

    def wants(self, done: int, total: int) -> bool:
        """Whether the launch that has just ended, so many being done, gets a line."""
        if total != self._total:
            self._total = total
            self._every = math.ceil((total - done + 1) / max(MOST - self._shown, FEWEST))
            self._next = done - 1 + self._every
        if done < self._next and done < total:
            return False
        self._next = done + self._every
        self._shown += 1
        return True

    def is_new_failure(self, progress: LaunchProgress) -> bool:
        """Whether its program failed for a reason that has not been shown yet."""
        if progress.note is None or progress.note.status != "failed":
            return False
        reason = (progress.launch.cohort.id, progress.note.reason)
        if reason in self._reasons or len(self._reasons) >= MOST_REASONS:
            return False
        self._reasons.add(reason)
        return True


# The launches of a sweep in which steps are traced: when one runs, and what they came to.

TRACING = "profile_launch"


class Tracing(Apart):
    """What is known of them."""

    def __init__(self, plan: Plan, folder: StudyFolder) -> None:
        super().__init__()
        self._folder, self._launches = folder, {launch.path: launch for launch in plan.profiles}
        self._missing = missing_profiles(plan, folder)
        self._done = self._traces = 0

    @property
    def announcement(self) -> str:
        """How many are missing, in a line; "" where none is."""
        if not self._missing:
            return ""
        time = tracing_time([self._launches[path] for path in self._missing], self._folder)
        return f"{launches(len(self._missing))} in which steps are traced, {time}"

    def end(self, job: Job) -> str:
        """One has ended; a line on it."""
        seconds = self._ended(job)
        record = read_record(self._folder, job.path)
        taken = [trace for trace in record.get("traces", ()) if not trace.get("reason")]
        lacking = [trace["reason"] for trace in record.get("traces", ()) if trace.get("reason")]
        reason = str(record.get("reason") or next(iter(lacking), ""))
        self._done += 1
        self._traces += len(taken)
        launch = self._launches.get(job.path)
        name = launch.cohort.lead.workload if launch else job.path
        if reason:
            self._failed.append(f"{name}, launch {job.wildcards.get('number')}: {reason}")
        what = counted(len(taken), "trace") + (f", then {reason}" if reason else "")
        ended = f"traced {name} {job.wildcards.get('number')}  {what}  {clock(seconds)}"
        missing = len(self._missing) - self._done
        return f"{ended}  about {duration(missing * self._seconds / self._done)} left" if missing > 0 else ended

    def summary(self) -> list[str]:
        """What they came to, in lines; none where none was made."""
        if not self._done:
            return []
        mark = WRONG if self._failed else DONE
        what = f"{launches(self._done)}, {counted(self._traces, 'trace')}"
        return [tick(mark, "traced", what, duration(self._seconds)), *(f"     {words}" for words in self._failed)]
