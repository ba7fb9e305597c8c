"""A workload launched alone by the runner's own parts, and what can be seen of it while it runs, stands and ends."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from castmates.counters.proc.procstat import read_tree
from castmates.errors import CastmatesError
from castmates.linux.owned_names import folder_prefix
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes.barrier import await_ready
from castmates.runner.processes.freezer import Freezer, choose_freezer
from castmates.runner.processes.launch import Running, Start, WorkloadFailed, launch
from castmates.runner.rounds.stage import LEAVE
from castmates.trials.workloads.usage import Usage
from castmates.workloads.heartbeat import HeartbeatError, State

LOOK_S = 0.05
STILL_S = 0.2
PATIENCE_S = 60.0  # for a step, of a workload whose steps take long
FIRST_BEATS = 2  # two make a rate


class NotTried(CastmatesError):
    """What the check itself needs cannot be had: that says nothing of the workload."""


@dataclass(frozen=True)
class Seen:
    """What a workload did while it ran."""

    seconds: float
    beats: int
    units: int  # between the first beat and the last
    units_s: float  # that these took
    cpu_s: float
    usage: Usage


@dataclass(frozen=True)
class Stood:
    """What a workload did while it was frozen, and whether it went on afterwards."""

    frozen: bool
    beats: int
    cpu_s: float
    goes_on: bool


@dataclass(frozen=True)
class Ended:
    """How a workload took SIGTERM."""

    seconds: float | None  # None where it had not ended in time
    wrong: bool  # it found its own result to be wrong
    last_words: str


class Alone:
    """A workload on its CPUs, with nobody beside it."""

    def __init__(self, one: Running, freezer: Freezer, check: Callable[[], None]) -> None:
        self._one, self._freezer, self._check = one, freezer, check

    def become_ready(self) -> float:
        """Wait until it is ready, and frozen; how long that took."""
        await_ready([self._one], self._freezer, self._check)
        return self._one.ready_seconds or 0.0

    def run(self, seconds: float) -> Seen:
        """Let it go on for so long, and longer until it has made a step or two; it is not frozen again."""
        one, usage = self._one, Usage()
        one.forget_beats()
        cpu_s, begun = self._cpu_s(), time.monotonic()
        self._freezer.thaw(one.name)
        while True:
            passed = time.monotonic() - begun
            self._look(usage)
            if passed >= seconds and (len(one.records) >= FIRST_BEATS or passed >= PATIENCE_S):
                break
            time.sleep(min(LOOK_S, max(0.001, seconds - passed)))
        records = one.records or [(0, 0)]
        units, units_ns = records[-1][1] - records[0][1], records[-1][0] - records[0][0]
        return Seen(passed, len(one.records), units, units_ns / 1e9, self._cpu_s() - cpu_s, usage)

    def stand(self) -> Stood:
        """Freeze it in the middle of its work, look whether it stands still, and let it go on."""
        one = self._one
        self._freezer.freeze(one.name)
        head, cpu_s = one.reader.head, self._cpu_s()
        time.sleep(STILL_S)
        frozen = self._freezer.is_frozen(one.name)
        beats, cpu_s = one.reader.head - head, self._cpu_s() - cpu_s
        self._freezer.thaw(one.name)
        return Stood(frozen, beats, cpu_s, self._makes_progress(head + beats))

    def works(self) -> bool:
        """Let it go on, and say whether it makes progress."""
        head = self._one.reader.head
        self._freezer.thaw(self._one.name)
        return self._makes_progress(head)

    def end(self) -> Ended:
        """Ask it to end, as a block does."""
        one, begun = self._one, time.monotonic()
        one.process.send_signal(signal.SIGTERM)
        while not (over := bool(one.ended()) or one.reader.state in (State.FINISHED, State.FAILED)):
            if time.monotonic() - begun > LEAVE:
                break
            time.sleep(0.01)
        wrong = one.reader.state is State.FAILED
        return Ended(time.monotonic() - begun if over else None, wrong, " ".join(one.last_lines(1)))

    def _makes_progress(self, head: int) -> bool:
        """Whether it beats again or, where a run takes long, works at least."""
        deadline, cpu_s = time.monotonic() + PATIENCE_S, self._cpu_s()
        while self._one.reader.head <= head:
            self._look(Usage())
            if self._one.start.kept and self._cpu_s() - cpu_s > LOOK_S:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _look(self, usage: Usage) -> None:
        self._check()
        self._one.read_beats()
        usage.look(self._freezer.stragglers(self._one.name))
        if ended := self._one.ended():
            raise WorkloadFailed.of(self._one, ended)

    def _cpu_s(self) -> float:
        return read_tree(self._one.pid).cpu_s


@contextmanager
def guarded() -> Iterator[Warden]:
    """Have a warden, which sees to it that nothing is left even if this process is killed."""
    warden = Warden.start()
    try:
        yield warden
    finally:
        warden.release()


@contextmanager
def launched(make: Callable[[Path], Start], warden: Warden) -> Iterator[Alone]:
    """Launch what `make` gives for a scratch folder, on its CPUs and this process off them; nothing is left."""
    with ExitStack() as exits:
        try:
            alone = _launched(make, warden, exits)
        except (CastmatesError, HeartbeatError) as problem:  # of a workload that cannot be started: WorkloadFailed
            raise NotTried(str(problem)) from None
        except OSError as problem:
            raise NotTried(told(problem)) from None
        yield alone


def told(problem: OSError) -> str:
    """What the system refused to the check, in a sentence."""
    where = problem.filename or "the check"
    return f"{where}: {problem.strerror or problem}; make room or give access there, and run the same command again."


def _launched(make: Callable[[Path], Start], warden: Warden, exits: ExitStack) -> Alone:
    scratch = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix=folder_prefix())))
    warden.guard_path(scratch)
    start = make(scratch)
    freezer = choose_freezer("check")
    exits.callback(freezer.close)
    for group in freezer.groups():
        warden.guard_cgroup(group)
    allowed = os.sched_getaffinity(0)
    exits.callback(os.sched_setaffinity, 0, allowed)
    os.sched_setaffinity(0, allowed - set(start.cpus) or allowed)

    def adopt(name: str, pid: int) -> None:
        warden.guard_process(pid)
        freezer.adopt(name, pid)

    return Alone(launch(start, scratch, scratch, adopt), freezer, warden.check)
