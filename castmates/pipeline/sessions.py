"""Spreads the launches of a study over hours or days: each session measures its share of every cohort.

The first sessions ask Snakemake for records of launches alone, the last one for everything. What is due follows from
when the first began, from the clock, and from what is measured: nothing has to run in between.
"""

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from castmates.analysis.core import APART_S
from castmates.english import duration
from castmates.errors import CastmatesError
from castmates.files import replace_text, understanding
from castmates.pipeline.snakemake import running_sweep
from castmates.project import Project, load
from castmates.protocols import Say
from castmates.results.bundle_names import RecordReader
from castmates.results.folder import StudyFolder
from castmates.results.named import study_argument
from castmates.results.records import read_json, refuse_links
from castmates.study.spec import Launch, Plan

LEAST = timedelta(seconds=APART_S + 60)  # between the begins of two sessions: closer ones are one
STEP_S = 60.0  # a computer that slept in between wakes up late by at most so much
UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
Measure = Callable[[Sequence[str], bool], None]  # these files, or everything where there are none; whether it is last


@dataclass(frozen=True)
class Clock:
    """The time, and how to let it pass."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep

    def wait(self, until: datetime) -> None:
        """Sleep until then."""
        while (left := (until - self.now()).total_seconds()) > 0:
            self.sleep(min(left, STEP_S))


@dataclass(frozen=True)
class Wish:
    """How the launches are to be spread."""

    sessions: int
    over: timedelta  # from the begin of the first session to that of the last one
    due: bool = False  # measure what is due now, and end
    dry: bool = False  # show what the next session would measure, without waiting for it, and end

    @classmethod
    def of(cls, sessions: int, over: str, due: bool) -> "Wish":
        """As it was written: 90m, 6h, 2d."""
        written = re.fullmatch(r"(\d{1,4}(?:\.\d+)?) ?([mhd])", over.strip())
        if not written:
            raise CastmatesError(f"--over is '{over}', expected the time from first to last session: 90m, 6h or 2d.")
        wish = cls(sessions, timedelta(seconds=float(written[1]) * UNITS[written[2]]), due)
        if wish.gap < LEAST:
            least = duration(LEAST.total_seconds())
            raise CastmatesError(
                f"{sessions} sessions over {over} begin {duration(wish.gap.total_seconds())} after each other: closer "
                f"than {least} they would be one session."
            )
        return wish

    @property
    def gap(self) -> timedelta:
        """From the begin of one session to that of the next."""
        return self.over / (self.sessions - 1)

    def __str__(self) -> str:
        return f"{self.sessions} sessions over {duration(self.over.total_seconds())}"


@dataclass(frozen=True)
class Begun:
    """What is kept of a schedule: when its first session began, and whether its last one is over."""

    wish: Wish
    begin: datetime
    over: bool = False

    @classmethod
    def read(cls, folder: StudyFolder) -> "Begun | None":
        """The one of these results; None where none has begun."""
        if not (kept := read_json(folder.sessions_file)):
            return None
        with understanding(folder.sessions_file, "a schedule of sessions", "remove it to begin again"):
            wish = Wish(int(kept["sessions"]), timedelta(seconds=float(kept["over_s"])))
            return cls(wish, datetime.fromisoformat(kept["begin"]).astimezone(UTC), bool(kept["over"]))

    def write(self, folder: StudyFolder) -> None:
        """Keep it."""
        refuse_links(folder)
        kept = {
            "sessions": self.wish.sessions,
            "over_s": self.wish.over.total_seconds(),
            "begin": self.begin.isoformat(timespec="seconds"),
            "over": self.over,
        }
        folder.path.mkdir(parents=True, exist_ok=True)
        replace_text(folder.sessions_file, json.dumps(kept) + "\n")

    def begin_of(self, session: int) -> datetime:
        """When a session is to begin; they count from 1."""
        return self.begin + (session - 1) * self.wish.gap


def spread(study_file: Path, wish: Wish, launches: int | None, measure: Measure, say: Say, clock: Clock) -> None:
    """Measure session after session, each when it is due; the same call goes on where an earlier one stopped."""
    while True:
        project = load(study_file, launches)
        plan, folder = project.plan(), project.results
        _refuse(project, plan, wish)
        begun, name = Begun.read(folder), project.study.name
        measured = frozenset(folder.measured_paths())
        missing = any(launch.path not in measured for launch in plan.launches)
        if (begun and begun.over) or (begun is None and not missing):
            say(_all_measured(project, begun, missing))
            return
        if begun and (begun.wish.sessions, begun.wish.over) != (wish.sessions, wish.over):
            raise CastmatesError(
                f"{name} has begun as {begun.wish}: go on with these, or remove {folder.sessions_file} to begin again "
                "with what is missing."
            )
        session = _next(plan, wish, measured)
        now = clock.now().replace(microsecond=0)
        apart = _apart(project, plan, wish, session, measured)
        # What was measured before is as good as the sessions that would have measured it.
        begun = begun or Begun(wish, max(now, apart) - (session - 1) * wish.gap)
        begin = max(begun.begin_of(session), apart) if missing else now
        if begin > now:
            words = f"session {session} of {wish.sessions} begins at {_clock_time(begin, now)}"
            say(f"{words}." if wish.due or wish.dry else f"{words}; Ctrl-C is safe")
            if wish.due:
                return
            if not wish.dry:
                clock.wait(begin)
        if wish.due and (running := running_sweep(folder)):
            say(f"a sweep of {name} is running (process {running.process}): nothing is begun beside it.")
            return
        if not wish.dry:
            begun.write(folder)
        say(f"session {session} of {wish.sessions}")
        is_last = session == wish.sessions
        wanted = [] if is_last else [str(folder.record_file(launch)) for launch in _until(plan, wish, session)]
        measure(wanted, is_last)
        if wish.dry:
            return
        if not is_last and frozenset(folder.measured_paths()) == measured:
            raise CastmatesError(f"session {session} of {name} measured nothing; the messages above may say why.")
        if is_last:
            Begun(wish, begun.begin, over=True).write(folder)


def _refuse(project: Project, plan: Plan, wish: Wish) -> None:
    if plan.looks or project.study.budget.adaptive:
        raise CastmatesError(
            f"looks decide how many launches {project.study_file} has ('precision' or 'adaptive' under 'budget'): "
            "--sessions takes a fixed number."
        )
    asked = {mix.identity for mix in plan.mixes}
    ours = [launch for launch in plan.launches if any(mix.identity in asked for mix in launch.cohort.mixes)]
    fewest = min(_numbers(ours).values())
    if wish.sessions > fewest:
        raise CastmatesError(f"--sessions is {wish.sessions}, but there are only {fewest} launches of each program.")


def _numbers(launches: Iterable[Launch]) -> dict[str, int]:
    """How many launches each cohort has."""
    found: dict[str, int] = {}
    for launch in launches:
        found[launch.cohort.id] = max(launch.number, found.get(launch.cohort.id, 0))
    return found


def _until(plan: Plan, wish: Wish, session: int) -> list[Launch]:
    """The launches that are measured when this session is over."""
    last = {cohort: math.ceil(count * session / wish.sessions) for cohort, count in _numbers(plan.launches).items()}
    return [launch for launch in plan.launches if launch.number <= last[launch.cohort.id]]


def _next(plan: Plan, wish: Wish, measured: frozenset[str]) -> int:
    """The first session that lacks a launch; the last one where none does, since that makes tables too."""
    lacking = (
        session
        for session in range(1, wish.sessions)
        if any(launch.path not in measured for launch in _until(plan, wish, session))
    )
    return next(lacking, wish.sessions)


def _apart(project: Project, plan: Plan, wish: Wish, session: int, measured: frozenset[str]) -> datetime:
    """Before that, its launches would be of the session before; long ago where it has launches, or there are none."""
    before = {launch.path for launch in _until(plan, wish, session - 1)}
    own = {launch.path for launch in _until(plan, wish, session)} - before
    long_ago = datetime.min.replace(tzinfo=UTC)
    if own & measured:
        return long_ago
    read = RecordReader(project.results).read
    files = [project.results.record_file(launch) for launch in plan.launches if launch.path in measured]
    begins = filter(None, (read(file).get("started") for file in files))
    return max((datetime.fromisoformat(begin) + LEAST for begin in begins), default=long_ago)


def _clock_time(begin: datetime, now: datetime) -> str:
    """14:05 (in 1 h 20 min); with the day where it is another one."""
    here = begin.astimezone()
    form = "%H:%M" if here.date() == now.astimezone().date() else "%H:%M on %Y-%m-%d"
    return f"{here:{form}} (in {duration((begin - now).total_seconds())})"


def _all_measured(project: Project, begun: Begun | None, missing: bool) -> str:
    name, command = project.study.name, f"castmates sweep{study_argument(project.study_file)}"
    if begun is None:
        return f"no launch of {name} is missing; `{command} --launches N` adds some, as one more session."
    more = f"; `{command}` measures what it lacks, as one more session" if missing else ""
    return f"all {begun.wish.sessions} sessions of {name} are over{more}."
