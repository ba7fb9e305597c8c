"""Snakemake's jobs of a sweep, in words."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from castmates.english import duration
from castmates.pipeline.failures import last_words, was_ended
from castmates.results.folder import StudyFolder
from castmates.results.traces import missing_traces, read_record
from castmates.study.spec import Launch, Plan
from castmates.study.trace_launches import trace_name
from castmates.terminal.preview.profiles import recording_seconds
from castmates.terminal.words import DONE, WRONG, clock, launches, names_of, tick

LAUNCHES = ("measure_launch", "model_launch")
MORE_LAUNCHES = "take_look"  # the rule by which launches are added on the way
ANALYSIS = ("estimate_operations", "analyse")
WORDS = {
    "build_environment": "building {environment}",
    "build_inputs": "making the data set {inputs}",
    "describe_machine": "looking at this machine",
    "write_plan": "planning",
    "describe_mix": "planning",
    "decide_rounds": "deciding how many rounds follow",
    "take_look": "looking at what is known so far",
    "gather_launches": "gathering tables",
    "profile_launch": "tracing steps, launch {number}",
    "trace_launch": "recording {trace}",
    "estimate_operations": "adding up operations",
    "analyse": "writing the report",
}


@dataclass(frozen=True)
class Job:
    """A job that runs."""

    rule: str
    wildcards: Mapping[str, str]
    begun: float

    @property
    def path(self) -> str:
        """The launch that it measures."""
        return f"{self.wildcards.get('cohort')}/{self.wildcards.get('number')}"

    @property
    def name(self) -> str:
        """What it does."""
        return WORDS.get(self.rule, self.rule).format_map(self.wildcards)

    def now(self, at: float) -> str:
        """What it does, and for how long by now."""
        return f"{self.name}   {clock(at - self.begun)}" if at - self.begun >= 1 else self.name

    def about(self, launches: Mapping[str, Launch]) -> str:
        """What it does; of a launch, which one it is."""
        launch = launches.get(self.path) if self.rule in LAUNCHES else None  # profile launches have the same paths
        return f"{names_of(launch)}, launch {launch.number}" if launch is not None else self.name


# Launches of a sweep that are made apart from its measured launches: when one runs, and how long all of them took.


class Apart(ABC):
    """What is known of one kind of them."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, ...], float] = {}
        self._failed: list[str] = []
        self._seconds = 0.0

    @property
    def is_on(self) -> bool:
        """Whether one runs: nothing should run beside it."""
        return bool(self._begun)

    @property
    @abstractmethod
    def announcement(self) -> str:
        """How many are missing, in a line; "" where none is."""

    def begin(self, job: Job) -> None:
        """One begins."""
        self._begun[_key(job)] = job.begun

    @abstractmethod
    def end(self, job: Job) -> str:
        """One has ended; a line on it."""

    def fail(self, job: Job) -> None:
        """The job of one failed, and nothing was recorded."""
        self._begun.pop(_key(job), None)

    @abstractmethod
    def summary(self) -> list[str]:
        """What they came to, in lines; none where none was made."""

    def _ended(self, job: Job) -> float:
        """Seconds that it took, which are added to those of all."""
        seconds = time.monotonic() - self._begun.pop(_key(job), job.begun)
        self._seconds += seconds
        return seconds


def _key(job: Job) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in sorted(job.wildcards.items()))


# Jobs that failed in a sweep: each reason is shown once, and what Ctrl-C ended has not failed.

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


# The launches of a sweep in which everything that happens is recorded: when one runs, and what it came to.

RECORDING = "trace_launch"


class Recording(Apart):
    """What is known of them."""

    def __init__(self, plan: Plan, folder: StudyFolder) -> None:
        super().__init__()
        self._folder, self._missing = folder, missing_traces(plan, folder)
        self._made: list[str] = []

    @property
    def announcement(self) -> str:
        """How many are missing, in a line; "" where none is."""
        if not self._missing:
            return ""
        names = ", ".join(map(trace_name, self._missing))
        guess = duration(recording_seconds(self._missing, self._folder))
        return f"{launches(len(self._missing))} in which everything is recorded, about {guess}: {names}"

    def end(self, job: Job) -> str:
        """One has ended; a line on it."""
        name = job.wildcards["trace"]
        seconds = self._ended(job)
        record = read_record(self._folder, name)
        if record.get("status") != "measured":
            self._failed.append(f"{name}: {record.get('reason') or 'it left no record'}")
            return f"recorded {name}  failed: {record.get('reason')}  {clock(seconds)}"
        self._made.append(name)
        events = sum(count for source in record.get("sources", ()) for count in source["events"].values())
        return f"recorded {name}  {events:,} events  {clock(seconds)}"

    def summary(self) -> list[str]:
        """What they came to, in lines; none where none was made."""
        if not self._made and not self._failed:
            return []
        mark = WRONG if self._failed else DONE
        done = tick(mark, "recorded", ", ".join(self._made) or "nothing", duration(self._seconds))
        return [done, *(f"     {words}" for words in self._failed)]
