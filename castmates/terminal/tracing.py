"""The launches of a sweep in which steps are traced: when one runs, and what they came to."""

from castmates.english import counted, duration
from castmates.results.folder import StudyFolder
from castmates.results.profiles import missing_profiles, read_record
from castmates.study.spec import Plan
from castmates.terminal.apart import Apart
from castmates.terminal.jobs import Job
from castmates.terminal.preview.profiles import tracing_time
from castmates.terminal.words import DONE, WRONG, clock, launches, tick

RULE = "profile_launch"


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
