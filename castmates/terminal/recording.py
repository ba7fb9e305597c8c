"""The launches of a sweep in which everything that happens is recorded: when one runs, and what it came to."""

import time

from castmates.english import duration
from castmates.preview.traces import recording_seconds
from castmates.results.folder import StudyFolder
from castmates.results.traces import missing_traces, read_record
from castmates.study.spec import Plan
from castmates.study.trace_launches import trace_name
from castmates.terminal.jobs import Job
from castmates.terminal.words import DONE, WRONG, clock, launches, tick

RULE = "trace_launch"


class Recording:
    """What is known of them, as `Tracing` knows it of launches in which steps are traced."""

    def __init__(self, plan: Plan, folder: StudyFolder) -> None:
        self._folder, self._missing = folder, missing_traces(plan, folder)
        self._begun: dict[str, float] = {}
        self._made: list[str] = []
        self._failed: list[str] = []
        self._seconds = 0.0

    @property
    def is_on(self) -> bool:
        """Whether something is being recorded: nothing should run beside it."""
        return bool(self._begun)

    @property
    def announcement(self) -> str:
        """How many are missing, in a line; "" where none is."""
        if not self._missing:
            return ""
        names = ", ".join(map(trace_name, self._missing))
        guess = duration(recording_seconds(self._missing, self._folder))
        return f"{launches(len(self._missing))} in which everything is recorded, about {guess}: {names}"

    def begin(self, job: Job) -> None:
        """One begins."""
        self._begun[job.wildcards["trace"]] = job.begun

    def end(self, job: Job) -> str:
        """One has ended; a line on it."""
        name = job.wildcards["trace"]
        seconds = time.monotonic() - self._begun.pop(name, job.begun)
        self._seconds += seconds
        record = read_record(self._folder, name)
        if record.get("status") != "measured":
            self._failed.append(f"{name}: {record.get('reason') or 'it left no record'}")
            return f"recorded {name}  failed: {record.get('reason')}  {clock(seconds)}"
        self._made.append(name)
        events = sum(count for source in record.get("sources", ()) for count in source["events"].values())
        return f"recorded {name}  {events:,} events  {clock(seconds)}"

    def fail(self, job: Job) -> None:
        """The job of one failed, and nothing was recorded."""
        self._begun.pop(job.wildcards.get("trace", ""), None)

    def summary(self) -> list[str]:
        """What they came to, in lines; none where none was made."""
        if not self._made and not self._failed:
            return []
        mark = WRONG if self._failed else DONE
        done = tick(mark, "recorded", ", ".join(self._made) or "nothing", duration(self._seconds))
        return [done, *(f"     {words}" for words in self._failed)]
