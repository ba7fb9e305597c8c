"""Runs Snakemake as a child that never outlives us: a request to end us ends its jobs and it, in good order."""

import contextlib
import fcntl
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import castmates
from castmates import shipped
from castmates.errors import CastmatesError
from castmates.extras import SWEEP, refuse_lacking
from castmates.linux.end_with_parent import end_with_parent
from castmates.linux.host import flock_holder
from castmates.linux.signals import ENDING
from castmates.pipeline import outliving_command
from castmates.pipeline.followed_study import ONLY, ONLY_TRACES
from castmates.pipeline.planned_sweep import PlannedSweep
from castmates.project import Project
from castmates.protocols import Say
from castmates.results.asked import remember_launches
from castmates.results.bundle_names import RecordReader
from castmates.results.folder import StudyFolder
from castmates.results.looks import precision_words, read_adaptive_looks
from castmates.results.named import retry_command
from castmates.results.records import record_or_why, refuse_links, useless
from castmates.study.curves import saved, summary
from castmates.study.spec import Plan

OWN_WORKFLOWS = ("Snakefile", "workflow/Snakefile")  # where Snakemake looks
OVER = b"over"  # the last word to the process that outlives us


def sweep(
    study_file: Path,
    cores: str,
    say: Say,
    launches: int | None = None,
    options: Sequence[str] = (),
    shows_result: bool = True,
    targets: Sequence[str] = (),
    only_traces: bool = False,
) -> None:
    """Let Snakemake measure what is missing of a study and write its page; it ends with the result, if wanted.

    With `targets` it makes these files alone; with `only_traces` it measures no losses.
    """
    refuse_lacking(SWEEP)
    chosen = [f"study={study_file}", *([] if launches is None else [f"launches={launches}"])]
    chosen += [f"{ONLY}={ONLY_TRACES}"] if only_traces else []
    words = [*targets, *workflow_words(), "--cores", cores, *options, "--config", *chosen]
    say(shlex.join(["snakemake", *words]))
    # No Python of a sweep takes a module from the folder in which it runs.
    environment = os.environ | {"PYTHONSAFEPATH": "1"} | ({} if shows_result else {SHOWN_ELSEWHERE: "1"})
    if code := run([sys.executable, "-P", "-m", "snakemake", *words], say, environment):
        raise CastmatesError(f"the sweep of {study_file} ended with status {code}; the messages above show why.")


def workflow_words() -> list[str]:
    """Which workflow and which profile Snakemake takes: a folder's own, or else those that come with us."""
    snakefile = next((Path(name) for name in OWN_WORKFLOWS if Path(name).is_file()), shipped.snakefile())
    beside = (folder / "profiles" / "default" for folder in (Path(), snakefile.parent))
    profile = next((str(each) for each in beside if each.is_dir()), "none")
    return ["--snakefile", str(snakefile), "--workflow-profile", profile]


def run(words: list[str], say: Say, environment: Mapping[str, str] | None = None) -> int:
    """Run it to its end and return its status; when a signal comes, end it, and exit with 128 and its number."""
    with _Signals() as signals:
        # Where the process that outlives us is killed too, Snakemake finishes the launch that runs, and ends.
        running = subprocess.Popen(
            words, start_new_session=True, preexec_fn=end_with_parent(signal.SIGTERM), env=environment
        )
        with _outlived(running):
            number = signals.wait(running)
            if number is None:
                return running.returncode
            _try_to(say, f"{number.name} came; ending the sweep in good order, which may take a minute.")
            outliving_command.end(running.pid, lambda seconds: signals.ended(running, seconds))
    sys.exit(128 + number)


@contextlib.contextmanager
def _outlived(running: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Have a process that ends the sweep in good order where this one is killed."""
    watching = subprocess.Popen(
        [sys.executable, "-P", "-m", "castmates.pipeline.outliving_command", str(running.pid)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
        env=os.environ | {"PYTHONPATH": str(Path(castmates.__file__).parents[1])},
    )  # fmt: skip
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # somebody killed it
            watching.communicate(OVER)


class _Signals:
    """Signals that came, as they come, through a pipe: nothing is lost, without polling."""

    def __enter__(self) -> "_Signals":
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._woken_before = signal.set_wakeup_fd(self._write)
        # What is ignored stays so, `nohup` means it; but the child must not ignore it too: that is how we end it.
        self._ours = {number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN}
        self._before = {number: signal.signal(number, _note) for number in (*ENDING, signal.SIGCHLD)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken_before)
        os.close(self._read)
        os.close(self._write)

    def wait(self, running: "subprocess.Popen[bytes]") -> signal.Signals | None:
        """Until it has ended (None), or we are asked to end."""
        while running.poll() is None:
            if asked := self._ours & self._next(None):
                return signal.Signals(min(asked))
        return None

    def ended(self, running: "subprocess.Popen[bytes]", seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        deadline = time.monotonic() + seconds
        while running.poll() is None and (left := deadline - time.monotonic()) > 0:
            self._next(left)
        return running.returncode is not None

    def _next(self, seconds: float | None) -> set[int]:
        """The signals that come next; none if none comes within so many seconds."""
        return {*os.read(self._read, 512)} if select.select([self._read], [], [], seconds)[0] else set()


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal's number is in the pipe."""


def _try_to(say: Say, words: str) -> None:
    with contextlib.suppress(OSError):  # the listener may be gone
        say(words)


# What the terminal shows at the end of a sweep.

SHOWN_ELSEWHERE = "CASTMATES_RESULT_SHOWN_ELSEWHERE"  # set by a command that prints the result itself after the sweep


def closing_text(project: Project, plan: Plan) -> str:
    """What came out, what to do next, and where the report is."""
    if os.environ.get(SHOWN_ELSEWHERE):
        return "".join(f" {line}\n" for line in closing_words(project, plan).splitlines())
    folder = project.results
    try:
        answer = folder.answer_file.read_text(encoding="utf-8")
    except OSError:  # only tables were asked for
        answer = ""
    paragraphs = ["".join(f" {line}\n" if line else "\n" for line in answer.splitlines())]
    paragraphs += ["".join(f" {line}\n" for line in closing_words(project, plan).splitlines())]
    if folder.page_file.is_file():
        paragraphs.append(f" Report {folder.page_file.resolve().as_uri()}\n")
    return "\n".join(filter(None, paragraphs))


def closing_words(project: Project, plan: Plan) -> str:
    """Whether the sweep is precise enough, and which launches gave little."""
    folder = project.results
    precision = precision_words(plan, folder, project.study.budget.precision)
    lines = [f"{sentence}\n" for sentence in (precision, *_of_looks(plan, folder)) if sentence]
    files = [folder.record_file(launch) for launch in folder.measured(plan).launches]
    read = RecordReader(folder).read
    reasons = Counter(reason for file in files if (reason := useless(read(file))))
    if reasons:
        few = " and ".join(f"{count} of {len(files)} launches: {reason}" for reason, count in reasons.items())
        lines.append(f"{few}. `{retry_command(project.study_file)}` measures them again.\n")
    return "".join(lines)


def refuse_nothing(project: Project) -> None:
    """End a command with an error where no launch of a study counts: its page has no number."""
    files = project.results.record_files()
    if files and all(useless(record_or_why(file)) for file in files):
        raise CastmatesError(
            f"nothing counts of the {len(files)} launches of {project.study.name}: {project.results.page_file} shows "
            f"why. `{retry_command(project.study_file)}` measures them again."
        )


def _of_looks(plan: Plan, folder: StudyFolder) -> Iterator[str]:
    """What the looks of an adaptive study decided, and saved."""
    if looks := read_adaptive_looks(plan, folder):
        yield summary(looks)
        records = (RecordReader(folder).read(folder.record_file(launch)) for launch in folder.measured(plan).launches)
        yield saved(looks[-1], sum(int(record.get("windows", 0)) for record in records))


# What is done once, before the first job of a sweep.


def begin(sweep: PlannedSweep, config: Mapping[str, Any], has_jobs_elsewhere: bool) -> None:
    """Keep other sweeps away from these results, and leave for jobs on other nodes what they need."""
    project = sweep.project
    hold_sweep_lock(project.results)
    if "launches" in config:
        remember_launches(project.results, project.study.budget.launches)
    if has_jobs_elsewhere:
        sweep.leave_for_jobs()


# One sweep at a time over the same results; the kernel lets go of the lock when the sweep dies, however it dies.

_held: list[int] = []


def hold_sweep_lock(results: StudyFolder) -> None:
    """Take the lock for as long as this process lives."""
    refuse_links(results)
    file = results.lock_file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        raise CastmatesError(
            f"{file} cannot be opened ({problem.strerror}): these results belong to somebody else or may not be "
            "written; give the study another 'name', or run as their owner."
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = flock_holder(os.fstat(descriptor)) or "unknown"
        os.close(descriptor)
        raise _another(holder, results) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    _held.append(descriptor)


def refuse_running_sweep(results: StudyFolder) -> None:
    """Refuse to change results to which a sweep writes now, before a sweep of ours takes the lock."""
    if running := running_sweep(results):
        raise _another(running.process, results)


def _another(holder: object, results: StudyFolder) -> CastmatesError:
    return CastmatesError(f"another sweep (process {holder}) is writing to {results}; wait for it, or end it.")


@dataclass(frozen=True)
class Running:
    """A sweep that writes to some results now."""

    process: int
    since: datetime


def running_sweep(results: StudyFolder) -> Running | None:
    """The sweep that holds the lock; nothing is locked to find that out."""
    try:
        state = results.lock_file.stat()
    except OSError:
        return None
    process = flock_holder(state)
    return None if process is None else Running(process, datetime.fromtimestamp(state.st_mtime).astimezone())


# Measured launches are kept: a sweep is refused where Snakemake may run jobs again for other than two reasons.

KEEPING = {"mtime", "params"}  # as profiles/default has it: a changed specification, a changed table


def refuse_to_forget(triggers: Iterable[object]) -> None:
    """Refuse Snakemake's own choice, by which a new version of the workflow's text would measure everything again."""
    more = sorted({str(trigger) for trigger in triggers} - KEEPING)
    if more:
        raise CastmatesError(
            f"Snakemake would measure launches again for other reasons than a changed study ({', '.join(more)}): add "
            f"--workflow-profile {shipped.profile()} to the command, or --rerun-triggers mtime params."
        )
