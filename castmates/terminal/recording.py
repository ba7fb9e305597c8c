"""The launches of a sweep in which everything that happens is recorded: when one runs, and what it came to."""

from castmates.english import duration
from castmates.results.folder import StudyFolder
from castmates.results.traces import missing_traces, read_record
from castmates.study.spec import Plan
from castmates.study.trace_launches import trace_name
from castmates.terminal.apart import Apart
from castmates.terminal.jobs import Job
from castmates.terminal.preview.traces import recording_seconds
from castmates.terminal.words import DONE, WRONG, clock, launches, tick

RULE = "trace_launch"


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
