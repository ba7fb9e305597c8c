"""Shows a sweep in place of Snakemake's own messages; Snakemake's logger plugin hands its records over.

Nothing is drawn while a launch is in its rounds, but right after each of them: drawing takes time that belongs to
what is measured.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from logging import WARNING, LogRecord
from types import ModuleType
from typing import Any

import castmates
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.pipeline.snakemake import closing_text
from castmates.project import Project
from castmates.results.looks import read_adaptive_looks
from castmates.study.curves import sentences
from castmates.study.spec import Launch, Plan
from castmates.terminal import words
from castmates.terminal.jobs import ANALYSIS, LAUNCHES, MORE_LAUNCHES, RECORDING, Apart, Failures, Job, Recording
from castmates.terminal.preview import duration
from castmates.terminal.preview.duration import seconds_of_launch, seconds_of_sweep, still_to_measure
from castmates.terminal.screens import TRACING, LogLines, Screen, Tracing, clock_time, screen
from castmates.terminal.sweep import Inbox, Sweep, recorded
from castmates.workloads import environments, inputs

ENDING = "castmates_ending"  # the attribute of the record that closes a sweep: whether it went well
SAFE = "     (Ctrl-C is safe: the same command goes on)"
TICK = 1.0  # seconds between two drawings, where nothing is measured
FASTEST = 0.1  # and where many launches run side by side
NOTHING = "Nothing to be done"  # Snakemake's words
AGAIN = "Trying to restart job"
INTERRUPTED = "Terminating processes on user request"
CHATTER = "Assuming unrestricted shared filesystem usage"  # that come before a workflow starts
# What comes with every failed job, which is shown otherwise.
EXPECTED = (
    "CalledProcessError",
    "Exiting because a job execution failed",
    "At least one job did not complete successfully",
    "--keep-incomplete mode is set",
    # Of Snakemake's plugin for Slurm: SBATCH_MEM_PER_NODE of profiles/slurm stands for the memory; where an account is
    # needed, sbatch reports it.
    "No job memory information",
    "No SLURM account given",
    "No account was given",
    "Unable to guess SLURM account",
)


class Display:
    """What is shown of one sweep; it takes records in one thread and draws in another."""

    def __init__(self, project: Project, plan: Plan, cores: Callable[[], int], progress: bool) -> None:
        self._project, self._plan, self._cores, self._progress = project, plan, cores, progress
        self._launches = {launch.path: launch for launch in plan.launches}
        self._lock = threading.RLock()
        self._jobs: dict[int, Job] = {}
        self._rules: Collection[str] | None = None  # of the jobs to come, until Snakemake has told
        self._screen: Screen | None = None  # until the workflow has started
        self._inbox: Inbox | None = None
        self._sweep: Sweep | None = None  # until its first job
        self._is_over = False
        self._drawn = 0.0
        self._failures = Failures(self._launches)
        self._apart: Mapping[str, Apart] = {
            TRACING: Tracing(plan, project.results),
            RECORDING: Recording(plan, project.results),
        }
        self._log_lines = LogLines()
        self._events: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "run_info": self._jobs_are_known,
            "job_started": self._begin,
            "job_info": self._job_begins,
            "job_finished": self._job_ends,
            "job_error": self._job_fails,
        }

    def emit(self, record: LogRecord) -> bool:
        """Show a record, if it is one of a running sweep; whether it needs no showing any more."""
        with self._lock:
            event = str(getattr(record, "event", None) or "")
            if event == "workflow_started":
                self._screen, self._inbox = screen(self._progress), Inbox()
            elif self._screen is None:
                return CHATTER in str(record.msg)
            elif hasattr(record, ENDING):
                self._end(self._screen, record.getMessage(), getattr(record, ENDING))
            elif event in self._events:
                self._events[event](vars(record))
            elif record.levelno >= WARNING:
                self._warn(record.getMessage())
            elif str(record.msg).startswith(AGAIN):
                self._line(f"     {words.AGAIN}", matters=self._failures.was_shown)
            elif str(record.msg).startswith(INTERRUPTED):
                self._failures.are_interruptions = True
            elif NOTHING in str(record.msg):
                self._nothing_to_do(self._screen)
            self._draw()
            if self._inbox is not None:
                self._inbox.wake()  # the other thread may have to draw by the clock now
            return True

    def close(self) -> None:
        """Leave the terminal as it was."""
        with self._lock:
            self._is_over = True
            if self._screen is not None:
                self._screen.close()
            if self._inbox is not None:
                self._inbox.wake()
                self._inbox.close()

    # What Snakemake's events come to.

    def _begin(self, _: dict[str, Any]) -> None:
        """Show what there is to do, before the first jobs."""
        if self._sweep is not None:
            return
        folder, at_once = self._project.results, self._cores() if self._project.modelled else 1
        at_least, at_most = self._to_measure()
        if at_most and not self._is_to_come(*LAUNCHES, MORE_LAUNCHES):
            at_least, at_most, launches = [], [], ""
        else:
            launches = self._launches_words(at_least, at_most, at_once)
        known: dict[str, float] = {}
        self._sweep = Sweep(at_least, lambda launch: seconds_of_launch(folder, launch, known=known), at_once)
        apart = [each.announcement for rule, each in self._apart.items() if self._is_to_come(rule)]
        first, *more = [*filter(None, [launches, *apart])] or [words.NO_LAUNCH]
        is_terminal = self._screen is not None and self._screen.changes
        safe = SAFE if is_terminal and (at_most or any(apart)) else ""
        self._line(f"castmates {castmates.__version__}   {self._project.study.name}   {first}{safe}")
        for line in more:
            self._line(f"     and {line}")
        self._line("")
        if machine := words.machine_line(folder.machine_file):
            self._line(machine)
        for note in self._plan.notes:
            self._line(words.tick(words.MIND, "the study", str(note)))
        threading.Thread(target=self._watch, name="castmates-display", daemon=True).start()

    def _jobs_are_known(self, facts: dict[str, Any]) -> None:
        self._rules = facts["stats"]

    def _is_to_come(self, *rules: str) -> bool:
        """Whether Snakemake has a job of one of these rules; it may be asked for some files alone."""
        return self._rules is None or any(rule in self._rules for rule in rules)

    def _launches_words(self, at_least: Sequence[Launch], at_most: Sequence[Launch], at_once: int) -> str:
        folder = self._project.results
        seconds = [seconds_of_sweep(folder, launches, at_once) for launches in (at_least, at_most)]
        return words.launches_words((len(at_least), len(at_most)), seconds, len(folder.measured(self._plan).launches))

    def _job_begins(self, facts: dict[str, Any]) -> None:
        job = Job(facts["rule_name"], dict(facts["wildcards"] or {}), time.monotonic())
        self._jobs[facts["jobid"]] = job
        if self._sweep is None:
            return
        if job.rule in LAUNCHES and job.path in self._launches:
            self._sweep.begin(self._launches[job.path], job.begun)
        elif job.rule in self._apart:
            self._apart[job.rule].begin(job)
        elif job.rule in ANALYSIS:
            self._sweep.analysis.begin(job.begun)
        elif job.rule == "build_environment" and self._screen is not None and not self._screen.changes:
            self._line(f"{clock_time()}  {job.name}; the first time takes a while")

    def _job_ends(self, facts: dict[str, Any]) -> None:
        job = self._jobs.pop(facts["job_id"], None)
        if job is None or self._sweep is None:
            return
        if job.rule in LAUNCHES:
            self._launch_ends(self._sweep, job)
        elif job.rule in ANALYSIS:
            self._sweep.analysis.end(time.monotonic())
        elif job.rule in self._apart:
            line = self._apart[job.rule].end(job)
            if self._screen is not None and not self._screen.changes:
                self._line(f"{clock_time()}  {line}")
        elif job.rule == "build_environment":
            self._show_built(job.wildcards["environment"], job.wildcards["key"], environments)
        elif job.rule == "build_inputs":
            self._show_built(job.wildcards["inputs"], job.wildcards["key"], inputs)
        elif job.rule == "describe_machine":
            self._line(words.machine_line(self._project.results.machine_file))
        elif job.rule == "take_look":
            self._sweep.add(self._to_measure()[0])
            for line in self._decided(int(job.wildcards["look"])):
                self._line(f"{clock_time()}  {line}")

    def _decided(self, number: int) -> list[str]:
        """What this look of an adaptive study decided."""
        looks = read_adaptive_looks(self._plan, self._project.results)
        return sentences(looks[number - 1]) if number <= len(looks) else []

    def _job_fails(self, facts: dict[str, Any]) -> None:
        began = self._jobs.pop(facts["jobid"], None)
        job = began or Job(facts["rule_name"], {}, 0.0)
        if self._sweep is not None and job.rule in LAUNCHES:
            self._sweep.end(job.path, time.monotonic(), failed=True)
        if self._sweep is not None and began is not None and job.rule in ANALYSIS:
            self._sweep.analysis.end(time.monotonic())
        if job.rule in self._apart:
            self._apart[job.rule].fail(job)
        for line in self._failures.add(job, facts["log"] or (), facts.get("rule_msg") or ""):
            self._line(line, matters=True)

    def _warn(self, message: str) -> None:
        if not any(expected in message for expected in EXPECTED):
            self._line(message, style="red", matters=True)

    def _launch_ends(self, sweep: Sweep, job: Job) -> None:
        self._take_notes()
        if sweep.lacks_result(job.path) and (note := recorded(self._project.results, self._launches[job.path])):
            sweep.note(note)
        progress = sweep.end(job.path, time.monotonic())
        if progress is None or self._screen is None:
            return
        wanted = not self._screen.changes and self._log_lines.wants(sweep.done, sweep.total)
        if self._log_lines.is_new_failure(progress) or wanted:
            of = self._launches_of(progress.launch)
            line = words.progress_line(progress, of, sweep.done, sweep.total, sweep.seconds_left(time.monotonic()))
            self._line(f" {words.WRONG} {line}" if self._screen.changes else f"{clock_time()}  {line}")

    def _show_built(self, name: str, key: str, where: ModuleType) -> None:
        self._line(words.environment_line(name, where.ready_file(where.place_of(name, key, cache_folder()))))

    # The end.

    def _end(self, shown: Screen, text: str, well: bool) -> None:
        """Show what came out, in place of what changes."""
        self._is_over = True
        shown.close()
        for line in self._failures.left():
            self._line(line, matters=True)
        sweep, at = self._sweep, time.monotonic()
        failed = sweep.failed if sweep is not None and not self._failures.are_interruptions else 0
        if sweep is not None and sweep.done - sweep.failed + failed:
            seconds = (sweep.analysis.begun or at) - (sweep.first_begun or at)
            what = words.measured_words(sweep.done - sweep.failed, sweep.windows, failed)
            mark = words.WRONG if failed else words.DONE
            self._line(words.tick(mark, "measured", what, words.clock(seconds)))
        for line in (line for each in self._apart.values() for line in each.summary()):
            self._line(line)
        if well and sweep is not None and sweep.analysis.begun is not None:
            report = words.report_words(self._project.results)
            self._line(words.tick(words.DONE, "report", report, words.clock(sweep.analysis.seconds(at))))
        lines = text.splitlines()
        if not well and self._failures.count == 1:
            lines = lines[-1:]  # the reason stands right above
        for line in ["", *lines]:
            self._line(line, matters=True)

    def _nothing_to_do(self, shown: Screen) -> None:
        self._line(f"castmates {castmates.__version__}   {self._project.study.name}   nothing is left to do")
        self._end(shown, closing_text(self._project, self._plan), well=True)

    # What both threads need.

    def _to_measure(self) -> tuple[list[Launch], list[Launch]]:
        try:
            return still_to_measure(self._project, duration.expected(self._project, self._plan))
        except CastmatesError:  # the job that needs what cannot be read gives the reason
            return [], []

    def _launches_of(self, launch: Launch) -> int:
        """How many launches there are of the same programs."""
        return self._wanted[launch.cohort.id]

    @cached_property
    def _wanted(self) -> Counter[str]:
        first = set(self._plan.looks[0]) if self._plan.looks else None
        paths = [path for path in self._launches if first is None or path in first]
        return Counter(self._launches[path].cohort.id for path in paths)

    def _line(self, text: str, style: str = "", matters: bool = False) -> None:
        if self._screen is not None and (matters or self._progress):
            self._screen.line(text, style)

    # Drawing.

    def _watch(self) -> None:
        """Draw when a launch sends a note, and each second where nothing is measured."""
        while True:
            with self._lock:
                inbox, sweep, shown = self._inbox, self._sweep, self._screen
                if self._is_over or inbox is None or sweep is None or shown is None:
                    return
                self._take_notes()
                self._draw(at_once=sweep.is_measuring)
                quiet = sweep.is_measuring or any(each.is_on for each in self._apart.values())
                by_clock, pause = shown.changes and not quiet, 0.0 if sweep.is_measuring else FASTEST
            time.sleep(pause)
            inbox.wait(TICK if by_clock else None)

    def _take_notes(self) -> None:
        if self._inbox is None or self._sweep is None:
            return
        for note in self._inbox.notes():
            if note.study == self._plan.study:
                self._sweep.note(note)
                if note.state == "waiting" and self._screen is not None and not self._screen.changes:
                    self._line(f"{clock_time()}  {note.reason}")

    def _draw(self, at_once: bool = False) -> None:
        """Draw what changes, unless that was done a moment ago."""
        sweep, shown, at = self._sweep, self._screen, time.monotonic()
        if self._is_over or sweep is None or shown is None or not shown.changes:
            return
        if at_once or at - self._drawn >= FASTEST:
            self._drawn = at
            jobs = [job.now(at) for job in self._jobs.values() if job.rule not in LAUNCHES]
            shown.update(sweep, self._wanted, jobs[-1] if jobs else "", at)
