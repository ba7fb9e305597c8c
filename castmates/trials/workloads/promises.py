"""A workload started alone by the runner's own parts, and what can be seen of it while it runs, stands and ends."""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from castmates.counters.proc.cpu_time import spent_by
from castmates.errors import CastmatesError
from castmates.linux.processes import TICK_S, parse_stat, status_of, thread_stat_line, threads_of
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes.launch import Start
from castmates.runner.rounds.stage import LEAVE
from castmates.runner.staging import LiveStage, moved_aside, on_stage
from castmates.study.cpus import format_cpu_list
from castmates.study.model import Workload
from castmates.workloads.heartbeat import HeartbeatError, State

# What a workload's processes take of the machine: threads, the CPUs that these may run on, memory.

BUSY = 0.2  # share of the busiest thread's CPU time that a thread must have had to count as busy
BUSY_S = 2 * TICK_S  # and at least so much, because the kernel counts in ticks


@dataclass
class Usage:
    """The most that was seen over several looks."""

    threads: int = 0
    memory: int = 0  # bytes: the sum over the processes of what each held at most
    cpus: set[int] = field(default_factory=set)  # that some thread may run on
    _first: dict[int, float] = field(default_factory=dict)  # CPU seconds of each thread when it was first seen
    _last: dict[int, float] = field(default_factory=dict)
    _alive: list[frozenset[int]] = field(default_factory=list)  # the threads of each look

    def look(self, pids: Iterable[int]) -> None:
        """Look at these processes once more."""
        threads = [(pid, tid) for pid in pids for tid in threads_of(pid)]
        self.threads = max(self.threads, len(threads))
        self._alive.append(frozenset(tid for _, tid in threads))
        self.memory = max(self.memory, sum(_peak_memory(pid) for pid in {pid for pid, _ in threads}))
        for pid, tid in threads:
            try:
                self.cpus |= os.sched_getaffinity(tid)
                self._last[tid] = seconds = _cpu_seconds(pid, tid)
            except OSError:  # it has ended
                continue
            self._first.setdefault(tid, seconds)

    def busy(self) -> int:
        """Return how many threads that lived at the same time did a good part of what the busiest one did."""
        spent = {tid: last - self._first[tid] for tid, last in self._last.items()}
        least = max(BUSY_S, BUSY * max(spent.values(), default=0.0))
        return max((sum(spent.get(tid, 0.0) >= least for tid in alive) for alive in self._alive), default=0)


def _cpu_seconds(pid: int, tid: int) -> float:
    fields = parse_stat(thread_stat_line(pid, tid))[1]
    return (int(fields[11]) + int(fields[12])) * TICK_S


def _peak_memory(pid: int) -> int:
    """Return the most that a process had in memory at a time; 0 where it has ended."""
    words = status_of(pid).get("VmHWM", "").split()
    return int(words[0]) * 1024 if words else 0


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
            if self._running.start.kept and not self._running.start.reports and self._cpu_s() - cpu_s > LOOK_S:
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
        spent = spent_by(self._running.pid)
        return spent.cpu_ns / 1e9 if spent else 0.0


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


# What a workload promises to the runner, and the judgement of what was seen: each promise is one function.

STILL_CPU_S = 0.001  # CPU time of a frozen workload that is none
WORKING = 0.5  # share of the time in which a run that is not over has used a CPU
MOST_CALLS = 2000  # a second on each CPU; one that is counted was seen to cost 45 µs, so they are a tenth of its time
MEMORY_ROOM = 1.1  # times what the catalogue has
MEMORY_FLOOR = 16 << 20  # of any process; it is not worth a word in the catalogue
NAMES = ("ready", "progress", "freezes", "pinned", "threads", "memory", "ends", "restarts")


@dataclass(frozen=True)
class Finding:
    """What was seen of one promise, in a few words for a table, and in a sentence how it was broken, if it was."""

    promise: str
    seen: str
    broken: str = ""

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return not self.broken


def ready(seconds: float) -> Finding:
    """It reports in time that it is ready: that it did is known when this is called."""
    return Finding("ready", f"{seconds:.2f} s")


def progress(seen: Seen, workload: Workload) -> Finding:
    """It reports steps, and at least two, which make a rate."""
    if seen.beats < 2 and workload.way == "runs" and seen.cpu_s > WORKING * seen.seconds:
        return Finding("progress", f"works; no whole run in {seen.seconds:.0f} s")  # enough for an antagonist
    if seen.beats < 2 or seen.units == 0:
        why = f"it reported {seen.beats} steps in {seen.seconds:.0f} s, which makes no rate: its steps must be shorter"
        return Finding("progress", f"{seen.beats} beats", why)
    if seen.units_s <= 0:
        return Finding("progress", "no time", "all its beats bear the same time, which is not CLOCK_MONOTONIC's")
    rate, pace = seen.units / seen.units_s, (seen.beats - 1) / seen.units_s
    broken = ""
    if workload.way == "calls" and rate > MOST_CALLS * workload.cores:
        broken = (
            f"{workload.calls} is called {_short(rate)} times a second, and each call that is counted costs the "
            "program tens of microseconds, which hide what it loses: name a function that is called less often"
        )
    return Finding("progress", f"{_short(rate)} {workload.unit}/s, {_short(pace)} beats/s", broken)


def freezes(stood: Stood) -> Finding:
    """Frozen it stands still, and thawed it goes on."""
    broken = ""
    if not stood.frozen:
        broken = "some thread of it could run while it was frozen"
    elif stood.beats:
        broken = f"it reported {stood.beats} steps while it was frozen"
    elif stood.cpu_s > STILL_CPU_S:
        broken = f"it used {stood.cpu_s:.3f} s of CPU time while it was frozen"
    elif not stood.goes_on:
        broken = "it made no progress any more after it was frozen and thawed"
    return Finding("freezes", "no" if broken else "yes", broken)


def pinned(seen: Seen, cpus: tuple[int, ...]) -> Finding:
    """No thread of it may run elsewhere than on its CPUs."""
    outside = sorted(seen.usage.cpus - set(cpus))
    broken = f"a thread of it may run on CPU {format_cpu_list(outside)}, which it was not given" if outside else ""
    return Finding("pinned", format_cpu_list(sorted(seen.usage.cpus)), broken)


def threads(seen: Seen, workload: Workload) -> Finding:
    """It does not compete with itself: no more busy threads than fit its CPUs, but for a few that feed the others."""
    busy, broken = seen.usage.busy(), ""
    if busy > 2 * workload.cores + 2:
        broken = f"{busy} threads are busy on {workload.cores} CPUs: make its pools smaller, or raise 'cores'"
    return Finding("threads", f"{seen.usage.threads} ({seen.cpu_s / seen.seconds:.1f} CPUs)", broken)


def memory(seen: Seen, workload: Workload) -> Finding:
    """It takes no more memory than the catalogue has, which decides how many share a launch."""
    gigabytes, broken = seen.usage.memory / 1e9, ""
    if seen.usage.memory > max(MEMORY_ROOM * workload.memory_bytes, MEMORY_FLOOR):
        broken = f"it took {gigabytes:.2f} GB, and the catalogue states {workload.memory}: correct 'memory'"
    return Finding("memory", f"{gigabytes:.2f} GB", broken)


def ends(ended: Ended) -> Finding:
    """It ends soon after SIGTERM, and does not find its own result to be wrong."""
    if ended.wrong:
        words = f': "{ended.last_words}"' if ended.last_words else ""
        return Finding("ends", "wrong", f"it found its own result to be wrong{words}")
    if ended.seconds is None:
        return Finding("ends", "too late", f"it had not ended {LEAVE:g} s after SIGTERM")
    return Finding("ends", f"{ended.seconds:.2f} s")


def restarts(seconds: float) -> Finding:
    """It can be started a second time, and works then: that it did is known when this is called."""
    return Finding("restarts", f"{seconds:.2f} s")


def _short(number: float) -> str:
    """Three digits, with the letter of thousands where there are many."""
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"
