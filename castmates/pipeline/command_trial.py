"""Tries a command that is to be measured: how long it takes, what memory and how many CPUs it uses."""

import math
import os
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import IO

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.linux.marks import in_child
from castmates.linux.processes import cpu_seconds_of_tree, ran_and_waited_ns_of, resident_bytes, tree_of
from castmates.machine.lock import machine_lock
from castmates.pipeline.own_study import FirstRun, last_line
from castmates.protocols import Say
from castmates.runner.cleanup.warden import guarded
from castmates.runner.others import busy_now
from castmates.runner.processes.launch import clean_environment
from castmates.runner.processes.starts import counter
from castmates.study.progress_keys import Way
from castmates.study.written import posix
from castmates.workloads import environments, heartbeat, inputs
from castmates.workloads.identity import no_such_program

INSTRUCTIONS = "instructions"
LONGEST_RUN = 120.0  # seconds of a command that is run again and again
AT_ONCE = 10.0  # a run that takes less is tried twice: the first one reads its files from the disk
NEWS = 10.0  # seconds after which a run that goes on is told of
LOOK = 0.02
MEASURED, LONGEST_MEASURED = 20, 10.0  # steps after the first that show how long one takes; seconds of them at most
LEAST_COUNTED = 2.0  # seconds: instructions and many calls are soon counted, which does not show CPUs and memory
LONGEST_START = 600.0  # seconds until the first steps
IDLE = 0.1  # of what the busiest thread ran: one that ran less, such as a shell, would use no CPU of its own
HELPERS = 0.15  # of a CPU that threads beside the main one may take, as those of a garbage collector


@dataclass(frozen=True)
class Command:
    """What a user wants to measure, and how."""

    words: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    step_line: str = ""
    ready_line: str = ""
    cpus: int = 0  # 0: as many as it is seen to use
    counted: str = ""  # INSTRUCTIONS, or PROGRAM:FUNCTION, whose calls are steps

    @property
    def way(self) -> Way:
        """What shows how far it is."""
        if self.counted:
            return "instructions" if self.counted == INSTRUCTIONS else "calls"
        return "output" if self.step_line else "runs"

    @property
    def calls(self) -> str:
        """What is called in each step, where that is counted."""
        return self.counted if self.way == "calls" else ""


@dataclass(frozen=True)
class Trial(FirstRun):
    """What one run takes, or one step."""

    busy: float  # CPUs that it kept busy, on average
    wanted: float = 0.0  # the same with what its threads waited for a CPU, which others or they themselves had
    start: float = 0.0  # seconds until it was ready, where its steps are counted

    @property
    def cpus(self) -> int:
        """How many CPUs it can use: one more than whole ones only where that one is worth it."""
        return max(1, math.ceil(self.wanted - HELPERS))

    def on(self, cpus: int) -> float:
        """Seconds that a run or step takes on so many idle CPUs, as far as one can tell."""
        return self.seconds * self.busy / min(self.wanted, cpus) if self.busy else self.seconds


def program_of(command: Command) -> str:
    """The file of its program; a sentence where there is none."""
    path = command.variables.get("PATH", os.environ.get("PATH", os.defpath))
    if lack := inputs.uncounted(command.way, command.calls, path):
        raise CastmatesError(f"--count {command.counted}: {lack.what}; {lack.remedy}.")
    if found := shutil.which(command.words[0], path=path):
        return found
    raise CastmatesError(no_such_program(command.words[0], path))


def try_command(command: Command, say: Say) -> Trial:
    """Run a command as a launch would: nothing to read, its output dropped, few variables; but on all CPUs."""
    with machine_lock(f"a first run of {command.words[0]}", say=say):
        if others := busy_now():
            say(f"this machine is busy: {others}; what is measured beside that is rejected for the most part.")
        if command.way != "runs":
            return _tried(command, say, _steps)
        trial = _tried(command, say, _run)
        return _tried(command, say, _run) if trial.seconds < AT_ONCE else trial


Watch = Callable[["_Running"], Trial]


@dataclass
class _Running:
    """A command that was started."""

    command: Command
    process: "subprocess.Popen[bytes]"
    beats: heartbeat.Reader
    say: Say
    begun: float
    used: resource.struct_rusage | None = None  # once it has ended
    times: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # ns, by process and thread
    threads: int = 1  # at once, at most
    memory: int = 0  # bytes of all its processes at once, as far as that was seen; shared pages count for each
    was_ended: bool = False  # by us, so that its status means nothing

    @property
    def passed(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.begun

    @property
    def waited(self) -> float:
        """Seconds that its threads that work were ready to run and had no CPU, as far as that was seen."""
        least = IDLE * max((ran for ran, _ in self.times.values()), default=0)
        return sum(waited for ran, waited in self.times.values() if ran >= least) / 1e9

    def has_ended(self) -> bool:
        """Whether it has; what it used is known then."""
        if self.used is None:
            keeper = self.process.pid if self.command.way != "runs" else 0  # of the program whose steps it counts
            tree = [each for each in tree_of(self.process.pid) if each[0] != keeper]
            self.threads = max(self.threads, sum(len(threads) for _, threads in tree))
            self.memory = max(self.memory, sum(resident_bytes(pid) or 0 for pid, _ in tree))
            for pid, tid in ((pid, tid) for pid, threads in tree for tid in threads):
                with suppress(OSError, ValueError):
                    self.times[pid, tid] = ran_and_waited_ns_of(pid, tid)
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.used, self.process.returncode = used, os.waitstatus_to_exitcode(status)
                self.memory = max(self.memory, used.ru_maxrss * 1024)  # of one process, and none that was killed
        return self.used is not None


def _tried(command: Command, say: Say, watch: Watch) -> Trial:
    name = command.words[0]
    keeper = []
    if command.way != "runs":
        native = environments.build(environments.NATIVE, shipped.environments(), cache_folder()) / "bin"
        ready = ["--ready", posix(command.ready_line)] if command.ready_line else []
        keeper = [str(native / "lines"), "--step", posix(command.step_line), *ready, "--"]
        if command.counted:
            keeper = counter(command.calls, native, command.variables.get("PATH", os.environ.get("PATH", os.defpath)))
    with (
        guarded() as warden,
        tempfile.TemporaryDirectory() as scratch,
        tempfile.TemporaryFile() as errors,
    ):
        warden.guard_path(Path(scratch))
        beats = Path(scratch) / "beats"
        heartbeat.create(beats)
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        variables = clean_environment(command.variables, cpus, Path(scratch), {}) | {heartbeat.VARIABLE: str(beats)}
        begun = time.monotonic()  # not before: another sweep may have had the machine for minutes
        try:
            process = subprocess.Popen(
                [*keeper, program_of(command), *command.words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=errors, env=variables, process_group=0, preexec_fn=in_child(),
            )  # fmt: skip
        except OSError as problem:
            raise CastmatesError(f"{name} cannot be started: {problem.strerror}.") from None
        running = _Running(command, process, heartbeat.Reader(beats), say, begun)
        try:
            warden.guard_process(process.pid)
            trial = watch(running)
        finally:
            _kill(running)
            running.beats.close()
        if process.returncode and not running.was_ended:
            raise CastmatesError(_why(command, process.returncode, errors))
        return trial


def _run(running: _Running) -> Trial:
    """Until it has ended."""
    is_told = False
    while not running.has_ended():
        if running.passed > LONGEST_RUN:
            raise CastmatesError(_too_long(running))
        if running.passed > NEWS and not is_told:
            is_told = True
            running.say(_still_running(running))
        time.sleep(min(LOOK, running.passed / 10))
    seconds, used = running.passed, running.used
    if running.process.returncode or used is None:
        return Trial(seconds, 0, 0.0)  # which is not used: the caller says why
    return _trial(running, seconds, used.ru_utime + used.ru_stime, running.waited, seconds)


def _trial(running: _Running, seconds: float, spent: float, waited: float, passed: float, start: float = 0.0) -> Trial:
    """Of one run or step of so many seconds, where so many of CPUs were spent in those that passed."""
    busy, passed = spent / max(passed, 1e-3), max(passed, 1e-3)
    wanted = max(busy, min(busy + waited / passed, running.threads))
    return Trial(max(seconds, 1e-5), running.memory, busy, wanted, start)


def _steps(running: _Running) -> Trial:
    """Until it has made some steps after its first, or all of them."""
    name, news, ready, used, waited = running.command.words[0], NEWS, 0.0, 0.0, 0.0
    while not running.has_ended():
        now, head = running.passed, running.beats.head
        if ready == 0.0 and head and running.beats.state is heartbeat.State.READY:
            ready, used, waited = now, cpu_seconds_of_tree(running.process.pid), running.waited
        enough = head > MEASURED and (not running.command.counted or now - ready > LEAST_COUNTED)
        if ready and (enough or (head > 1 and now - ready > LONGEST_MEASURED)):
            break
        if now > news:
            running.say(f"trying {name}: {head} steps after {now:.0f} s")
            news += NEWS
        if now > LONGEST_START:
            raise CastmatesError(f"{name}: after {now:.0f} s {_no_steps(running)}")
        time.sleep(LOOK)
    passed, spent = running.passed - ready, cpu_seconds_of_tree(running.process.pid) - used
    times = [at_ns for at_ns, _ in running.beats.beats().records]
    if len(times) < 2 and not (running.used and running.process.returncode):
        raise CastmatesError(f"{name} {_no_steps(running)}")
    if running.used:  # it ended before we looked: all of its time counts
        passed, spent, waited = running.passed, running.used.ru_utime + running.used.ru_stime, 0.0
    else:
        running.was_ended = True
        _kill(running)
    seconds = median(after - before for before, after in pairwise(times)) / 1e9 if len(times) > 1 else 0.0
    return _trial(running, seconds, spent, running.waited - waited, passed, ready)


def _no_steps(running: _Running) -> str:
    command, count = running.command, running.beats.head
    if command.counted:
        return f"made {count or 'no'} {'step' if count == 1 else 'steps'} that --count {command.counted} sees."
    lines = f"'{command.step_line}'" + (
        f" (after one that matches '{command.ready_line}')" if command.ready_line else ""
    )
    how = "ended with" if running.used else "has written"
    return (
        f"{how} {count or 'no'} line{'' if count == 1 else 's'} that match{'es' if count == 1 else ''} {lines}; "
        "--step-line needs a regular expression that several of its lines match (standard output and errors count)."
    )


def _still_running(running: _Running) -> str:
    words, used = shlex.join(running.command.words), cpu_seconds_of_tree(running.process.pid) / running.passed
    return (
        f"{running.command.words[0]} still runs after {running.passed:.0f} s ({used:.1f} CPUs busy); a command that is "
        f"measured runs to its end again and again, and this one is waited for {LONGEST_RUN:.0f} s. If it prints its "
        f"steps, end this (Ctrl-C) and have some steps of one run measured: castmates measure --step-line REGEX -- "
        f"{words}"
    )


def _too_long(running: _Running) -> str:
    """What is said of a run that takes too long to be measured as a whole; its progress would have to be seen."""
    name = running.command.words[0]
    instructions = "" if inputs.uncounted(INSTRUCTIONS, "", "") else ", or --count instructions"
    return (
        f"{name} has not ended after {LONGEST_RUN:.0f} s: a command that is measured is run again and again. If it "
        "prints its steps, --step-line REGEX names these lines, and a run may take as long as it likes. If it trains "
        "by TensorFlow, PyTorch or JAX, take `castmates profile`. Else have something counted: as root, --count "
        f"PROGRAM:FUNCTION for a function that it calls in each step{instructions} (castmates help add-a-workload)."
    )


def _why(command: Command, status: int, errors: IO[bytes]) -> str:
    errors.seek(0)
    words, name = last_line(errors.read()), command.words[0]
    said = f': it wrote "{words}"' if words else ""
    asked = "ends with status 0" if command.way == "runs" else "goes well"
    return f"{name} ended with status {status}{said}; only a command that {asked} can be measured."


def _kill(running: _Running) -> None:
    """End whatever is left of a run."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.process.pid, signal.SIGKILL)
    while not running.has_ended():
        time.sleep(LOOK)
