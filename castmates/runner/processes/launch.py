"""Starts a member: on its CPUs before exec, in an environment made for it, its output in a log."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.inside.counting import METHODS
from castmates.linux.marks import in_child
from castmates.linux.memory_binding import memory_bound_to
from castmates.linux.signals import hear
from castmates.runner.processes import member_log
from castmates.runner.processes.freezer import BetweenSteps
from castmates.runner.processes.member_log import GuardedReader, PhaseLog, RangeLog, RequestLog
from castmates.runner.processes.restarts import Restarts, bounding_group, refusal
from castmates.study.cpus import format_cpu_list
from castmates.workloads import heartbeat, identity, phase_file


class WorkloadFailed(Exception):
    """A workload died, or never got ready: a result, not an error of the harness."""

    @classmethod
    def of(cls, process: "Running", what: str) -> "WorkloadFailed":
        """Name the member, what happened to it, and its last words."""
        words = process.last_lines(1)
        last_words = f'it last wrote "{words[-1]}"' if words else "it wrote nothing"
        return cls(f"{process.name} {what}; {last_words} (logs/{process.log.name})")


@dataclass(frozen=True)
class Start:
    """Everything needed to start one process of a launch."""

    name: str
    cpus: tuple[int, ...]
    nodes: tuple[int, ...]  # that its memory is bound to; none where it is not
    command: list[str]
    environment: dict[str, str]
    ready_within: float
    kept: bool = False  # run again and again: its restarts are recorded
    reports: bool = False  # and its steps are: what lies between two runs is no part of them
    silent: bool = False  # of its output the errors alone are kept
    kept_command: tuple[str, ...] = ()  # that its keeper runs, where it has one
    channel: str = heartbeat.VARIABLE  # which variable names the file of its heartbeat
    package: str | None = None  # that has this program
    awaited: str = ""  # why it is not ready yet, where that is known
    phases: bool = False  # it reports the phases of its steps
    ranges: int = 0  # how many of them are kept one by one, with their like
    requests: bool = False  # it is an open-loop service, which records its requests
    frozen_between_steps: bool = False  # it queues work on a device


@dataclass
class Running:
    """A started process and its heartbeat."""

    start: Start
    process: subprocess.Popen[bytes]
    reader: heartbeat.Reader
    log: Path
    restarts: Restarts | None = None  # of a command that is run again and again
    phases: PhaseLog | None = None  # of one that reports them
    requests: RequestLog | None = None  # of an open-loop service
    bound: Path | None = None  # the control group that bounds how many processes it may have
    started: float = field(default_factory=time.monotonic)
    ready_seconds: float | None = None
    seen: int = 0  # heartbeats already read
    records: list[tuple[int, int]] = field(default_factory=list)  # those of the window, as they were read
    spoilt: int = 0  # slices that were measured again because one of its runs ended in them
    lost: int = 0  # heartbeats of the window that were overwritten before they were read
    between_steps: BetweenSteps | None = None  # of one that queues work on a device
    pages: dict[str, int | str] | None = None  # that its memory was on when it was ready; None where that is not known

    @property
    def name(self) -> str:
        """The member's name."""
        return self.start.name

    @property
    def pid(self) -> int:
        """The leader of its session and process group."""
        return self.process.pid

    @property
    def between_runs(self) -> bool:
        """Whether its last run has ended, and the next one makes no steps yet."""
        return self.start.reports and self.reader.state in (heartbeat.State.STARTING, heartbeat.State.FINISHED)

    def was_restarted(self, begin_ns: int, end_ns: int) -> bool:
        """Whether one of its runs ended in this time, as far as that was read; or it has no run now."""
        ended = self.start.reports and self.restarts is not None and bool(self.restarts.inside(begin_ns, end_ns))
        return ended or self.between_runs

    @property
    def at_its_end(self) -> bool:
        """Whether it has reported that it makes no more steps."""
        return self.reader.state is not heartbeat.State.READY

    @property
    def gone(self) -> bool:
        """Whether it makes no more steps, or has ended."""
        over = (heartbeat.State.FINISHED, heartbeat.State.FAILED)
        return self.reader.state in over or self.process.poll() is not None

    def ended(self) -> str:
        """Return how it ended, or must end; "" while it lives within its bounds."""
        status = self.process.poll()
        member_log.cut(self.log)
        if (refused := refusal(self.bound)) or status is None:
            return refused
        if status < 0:
            return f"was killed by {_name_of(-status)}"
        return f"ended by itself with status {status}"

    def forget_beats(self) -> None:
        """Begin anew: what was reported so far belongs to no window."""
        self.seen, self.records, self.lost = self.reader.head, [], 0
        if self.restarts is not None:
            self.restarts.forget()
        if self.phases is not None:
            self.phases.forget()
        if self.requests is not None:
            self.requests.read()  # what is given up at the end of a scene is recorded after it

    def read_beats(self) -> None:
        """Take what was reported since; the file holds only the latest."""
        beats = self.reader.beats(self.seen)
        self.records += beats.records
        self.lost += beats.lost
        self.seen = beats.head
        if self.restarts is not None:
            self.restarts.read()
        if self.phases is not None:
            self.phases.read()
        if self.requests is not None:
            self.requests.read()

    def read_requests(self) -> None:
        """Take what a service recorded at its end."""
        if self.requests is not None:
            self.requests.read()

    def last_lines(self, count: int = 5) -> list[str]:
        """Return the last lines it wrote."""
        member_log.cut(self.log)
        return member_log.last_lines(self.log, count)


def launch(start: Start, scratch: Path, logs: Path, adopt: Callable[[str, int], None]) -> Running:
    """Start a process and hand it to the freezer (`adopt`) at once."""
    program = _program(start)
    beats = scratch / f"{start.name}.beats"
    heartbeat.create(beats)
    restarts = Restarts.create(scratch / f"{start.name}.restarts", not start.reports) if start.kept else None
    phases = _phase_log(start, scratch) if start.phases else None
    channels = {start.channel: str(beats)} | (restarts.variables if restarts else {})
    requests = RequestLog.create(scratch / f"{start.name}.requests") if start.requests else None
    channels |= phases.variables if phases else {}
    channels |= requests.variables if requests else {}
    between = BetweenSteps.create(scratch / f"{start.name}.standing") if start.frozen_between_steps else None
    channels |= between.variables if between else {}
    log = logs / f"{start.name}.log"
    with _opened(log) as output, memory_bound_to(start.nodes):
        try:
            process = subprocess.Popen(
                [program, *start.command[1:]],
                env=start.environment | channels,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if start.silent else output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_before_exec(start.cpus),  # safe: the runner has no threads
            )
        except OSError as problem:
            raise WorkloadFailed(f"{start.name}: {program} cannot be started: {problem.strerror}") from None
        except subprocess.SubprocessError:  # what is done before exec was refused; the reason is lost on the way
            raise WorkloadFailed(
                f"{start.name}: {program} cannot be put on CPU {format_cpu_list(start.cpus)}: the kernel refuses it; "
                "see that they are online and may be used here"
            ) from None
    running = Running(start, process, GuardedReader(beats, start.name), log, restarts, phases, requests)
    running.between_steps = between
    try:
        adopt(start.name, process.pid)
    except CastmatesError:
        if ended := running.ended():
            raise WorkloadFailed.of(running, f"{ended} right after its start") from None
        raise
    running.bound = bounding_group(process.pid)
    return running


def _phase_log(start: Start, scratch: Path) -> PhaseLog:
    try:
        counters = phase_file.wanted_counters(start.environment.get(phase_file.COUNTERS_VARIABLE))
        method = start.environment.get(phase_file.METHOD_VARIABLE) or METHODS[0]
        if method not in METHODS:
            known = f"{phase_file.METHOD_VARIABLE} is {' or '.join(METHODS)}, and not '{method}'"
            raise WorkloadFailed(f"{start.name}: its variable {known}")
        path = scratch / f"{start.name}.phases"
        return RangeLog.of(path, counters, start.ranges) if start.ranges else PhaseLog.create(path, counters)
    except phase_file.PhasesError as problem:
        raise WorkloadFailed(f"{start.name}: {problem} (its variable {phase_file.COUNTERS_VARIABLE})") from None


def _program(start: Start) -> str:
    """Return the program to start; it must be there, and where it is a keeper, what that runs must be there too."""
    path = start.environment["PATH"]
    for command in filter(None, (start.kept_command, start.command)):
        if lack := identity.lack(command, start.package, path):
            how = f"install it (apt-get install {start.package})" if start.package else "install it"
            raise WorkloadFailed(f"{start.name}: {lack}; {how}, or correct 'command' or its PATH")
    return str(shutil.which(start.command[0], path=path))


@contextmanager
def _opened(log: Path) -> Iterator[int]:
    try:
        output = member_log.create(log)
    except OSError as problem:
        raise CastmatesError(
            f"{log} cannot be written ({problem.strerror}): make room or give write access there, and run the same "
            "command again."
        ) from None
    try:
        yield output
    finally:
        os.close(output)


def clean_environment(
    variables: Mapping[str, str], cpus: tuple[int, ...], scratch: Path, path_prefix: Mapping[str, str]
) -> dict[str, str]:
    """Build an environment from nothing: what a workflow engine exports (OMP_NUM_THREADS, TMPDIR) must not leak in."""
    inherited = {key: os.environ[key] for key in ("HOME", "USER", "LOGNAME", "LANG") if key in os.environ}
    threads = str(len(cpus))
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    whole = inherited | {"LC_ALL": "C.UTF-8", "TMPDIR": str(scratch)} | dict.fromkeys(pools, threads)
    whole |= {key: value for key, value in path_prefix.items() if key != "PATH"}
    usual = os.environ.get("PATH", os.defpath)
    whole["PATH"] = os.pathsep.join(filter(None, [path_prefix.get("PATH"), usual]))
    return whole | dict(variables)


def _name_of(number: int) -> str:
    """Name a signal; those for real time have numbers alone."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _before_exec(cpus: tuple[int, ...]) -> Callable[[], None]:
    bear_the_mark = in_child()

    def prepare() -> None:
        bear_the_mark()
        os.sched_setaffinity(0, cpus)
        hear()

    return prepare
