"""A workload started alone by the runner's own parts, and what can be seen of it while it runs, stands and ends."""

import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from castmates.counters.proc.cputime import cpu_ns_of
from castmates.errors import CastmatesError
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes.launch import Start
from castmates.runner.rounds.stage import LEAVE
from castmates.runner.staging import LiveStage, moved_aside, on_stage
from castmates.trials.workloads.usage import Usage
from castmates.workloads.heartbeat import HeartbeatError, State

LOOK_S = 0.05
STILL_S = 0.2
PATIENCE_S = 60.0  # for a step, of a workload whose steps take long
FIRST_BEATS = 2  # two make a rate


class NotTried(CastmatesError):
    """What the check itself needs cannot be had: that is no fault of the workload."""


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
    """A workload on its CPUs, with nothing beside it."""

    def __init__(self, stage: LiveStage) -> None:
        self._stage = stage
        (self._running,) = stage.cast.values()

    def become_ready(self) -> float:
        """Wait until it is ready, and frozen; how long that took."""
        self._stage.await_ready()
        return self._running.ready_seconds or 0.0

    def run(self, seconds: float) -> Seen:
        """Let it go on for so long, and longer until it has made a step or two; it is not frozen again."""
        usage = Usage()
        self._running.forget_beats()
        cpu_s, begun = self._cpu_s(), time.monotonic()
        self._let_run()
        while True:
            passed = time.monotonic() - begun
            self._look(usage)
            if passed >= seconds and (len(self._running.records) >= FIRST_BEATS or passed >= PATIENCE_S):
                break
            time.sleep(min(LOOK_S, max(0.001, seconds - passed)))
        records = self._running.records or [(0, 0)]
        units, units_ns = records[-1][1] - records[0][1], records[-1][0] - records[0][0]
        return Seen(passed, len(self._running.records), units, units_ns / 1e9, self._cpu_s() - cpu_s, usage)

    def record(self, warm_up: float, seconds: float) -> list[tuple[int, int]]:
        """Let it go on, and return its heartbeats (time, units so far) of so many seconds after the warm-up."""
        self._let_run()
        self._stage.sleep_until(self._stage.now_ns() + int(warm_up * 1e9))
        self._running.forget_beats()
        self._stage.sleep_until(self._stage.now_ns() + int(seconds * 1e9))
        self._stage.read_beats()
        return self._running.records

    def stand(self) -> Stood:
        """Freeze it in the middle of its work, look whether it stands still, and let it go on."""
        self._stage.switch([])
        head, cpu_s = self._running.reader.head, self._cpu_s()
        time.sleep(STILL_S)
        frozen = self._stage.freezer.is_frozen(self._running.name)
        beats, cpu_s = self._running.reader.head - head, self._cpu_s() - cpu_s
        self._let_run()
        return Stood(frozen, beats, cpu_s, self._makes_progress(head + beats))

    def works(self) -> bool:
        """Let it go on; whether it makes progress."""
        head = self._running.reader.head
        self._let_run()
        return self._makes_progress(head)

    def end(self) -> Ended:
        """Ask it to end, as a launch does."""
        running, begun = self._running, time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        while not (over := bool(running.ended()) or running.reader.state in (State.FINISHED, State.FAILED)):
            if time.monotonic() - begun > LEAVE:
                break
            time.sleep(0.01)
        wrong = running.reader.state is State.FAILED
        return Ended(time.monotonic() - begun if over else None, wrong, " ".join(running.last_lines(1)))

    def _makes_progress(self, head: int) -> bool:
        """Check whether it beats again or, where a run takes long, works at least."""
        deadline, cpu_s = time.monotonic() + PATIENCE_S, self._cpu_s()
        while self._running.reader.head <= head:
            self._look(Usage())
            if self._running.start.kept and self._cpu_s() - cpu_s > LOOK_S:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def _let_run(self) -> None:
        self._stage.switch([self._running.name])

    def _look(self, usage: Usage) -> None:
        self._stage.read_beats()
        usage.look(self._stage.freezer.stragglers(self._running.name))
        self._stage.look_after()

    def _cpu_s(self) -> float:
        return (cpu_ns_of(self._running.pid) or 0) / 1e9


@contextmanager
def launched(make: Callable[[Path], Start], cpus: Collection[int], warden: Warden) -> Iterator[Alone]:
    """Launch what `make` gives for a scratch folder, on its CPUs and this process off them; nothing is left."""
    with ExitStack() as exits:
        try:
            exits.enter_context(moved_aside(cpus, lead=cpus))
            stage = exits.enter_context(on_stage("check", warden))
            stage.launch(make(stage.scratch.files), logs=stage.scratch.files)
        except (CastmatesError, HeartbeatError) as problem:  # of a workload that cannot be started: WorkloadFailed
            raise NotTried(str(problem)) from None
        except OSError as problem:
            raise NotTried(refused(problem)) from None
        yield Alone(stage)


def refused(problem: OSError) -> str:
    """Return what the system refused to the check, in a sentence."""
    where = problem.filename or "the check"
    return f"{where}: {problem.strerror or problem}; make room or give access there, and run the same command again."
