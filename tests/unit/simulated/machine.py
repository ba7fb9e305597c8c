"""A machine on which the runner's own code runs in virtual time: processes follow scripts, the kernel is in memory.

Only what the kernel does is scripted: how processes go on while they run, who stands still, what time it is. Stage,
rounds, slices, settling, ledger, driver of resctrl and record are the real ones, and scripts know what they must find.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from castmates.protocols import Collector, Sample
from castmates.rdt.choose import NoMonitor
from castmates.rdt.fake import FakeResctrl, Shape
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.mounting import Mounted
from castmates.runner.after_rounds.measure import measure_after_rounds
from castmates.runner.modelled.hardware import KernelsTasks
from castmates.runner.modelled.launch import Freezing
from castmates.runner.outcome import Measured
from castmates.runner.processes.launch import Running, Start, WorkloadFailed
from castmates.runner.processes.restarts import Restarts
from castmates.runner.processes.starts import placebo_member
from castmates.runner.rounds import stage as stages
from castmates.runner.rounds.hardware import Hardware, MaskWitness
from castmates.runner.rounds.ledger_load import Surroundings
from castmates.runner.rounds.round import measure_rounds
from castmates.runner.rounds.stage import Stage
from castmates.study.scenes import scenes_of
from castmates.study.spec import REST, Launch, Mix, Partition, Share
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import CAPACITY, Beats, State
from tests.unit.windows_maker import DESIGN, cohort, plan

MS, SECOND = 1_000_000, 1_000_000_000
LEAD, BESIDE = "lead@0", "beside@1"
WAYS = 0xFFF


@dataclass
class Script:
    """How a process goes on; times are nanoseconds."""

    step: int = 2 * MS  # that one takes alone
    beside: float = 1.0  # times its speed while another member runs
    cold: float = 1.0  # times its speed at first, after each change of scene
    cold_for: int = 0
    silent: Sequence[tuple[int, int]] = ()  # when it makes no progress
    jitter: float = 0.0  # of its steps, relative
    stalls: float = 0.0  # chance of a step that takes a hundred times as long
    dies: float = math.inf
    ends: float = math.inf  # when it reports that it is at its end
    escapes: bool = False  # runs on when it is frozen
    gap: int = 0  # after each run until its keeper lets the next one go
    steps: int = 1  # of a run; of several it reports each one


class Job:
    """A process that follows a script; its heartbeat is a list."""

    def __init__(self, machine: "Machine", name: str, number: int, script: Script, seed: int) -> None:
        self.machine, self.name, self.pid, self.script = machine, name, number, replace(script)
        self.log: list[tuple[int, int]] = []
        self.gaps: list[tuple[int, int]] = []  # the last one without its end, while it lasts
        self._resting = 0.0  # still to come of a gap
        self._dice = random.Random(f"{seed}/{name}")
        self._left = self._step()

    def _step(self) -> float:
        script, dice = self.script, self._dice
        longer = 100 if dice.random() < script.stalls else 1
        return script.step * longer * math.exp(dice.gauss(0, script.jitter))

    def speed(self, now: float, company: bool) -> tuple[float, float]:
        """How fast it is now, in its own steps alone, and until when."""
        script, until = self.script, [self.script.dies, self.script.ends]
        if now >= min(until):
            return 0.0, math.inf
        for begin, end in script.silent:
            if begin <= now < end:
                return 0.0, end
            until += [begin] * (now < begin)
        usual = script.beside if company else 1.0
        if now < self.machine.changed + script.cold_for:
            return usual * script.cold, min(*until, self.machine.changed + script.cold_for)
        return usual, min(until)

    def run(self, begin: float, end: float, company: bool) -> None:
        """Let it run from one moment to another."""
        while begin < end:
            if self._resting:
                begin = self._rest(begin, end)
                continue
            speed, until = self.speed(begin, company)
            stop = min(end, until)
            if speed and begin + self._left / speed <= stop:
                begin += self._left / speed
                self._left = self._step()
                self.log.append((round(begin), len(self.log) + 1))
                if self.script.gap and not len(self.log) % self.script.steps:
                    self._resting = float(self.script.gap)
                    self.gaps.append((round(begin), 0))
            else:
                self._left -= (stop - begin) * speed
                begin = stop

    def _rest(self, begin: float, end: float) -> float:
        """Let a gap between two runs go on; until when it did."""
        stop = min(end, begin + self._resting)
        self._resting = max(0.0, self._resting - (stop - begin))
        if self._resting < 1:
            self._resting = 0.0
            self.gaps[-1] = (self.gaps[-1][0], round(stop))
        return stop

    @property
    def restarts(self) -> Restarts | None:
        """What its keeper reports, where it has one."""
        if not self.script.gap:
            return None
        with patch.object(heartbeat, "Reader", lambda _: _Gaps(self)):
            return Restarts(Path())

    # As the runner sees a process.

    @property
    def head(self) -> int:
        return len(self.log)

    @property
    def state(self) -> State:
        if self._resting and self.script.steps > 1:
            return State.STARTING
        return State.FINISHED if self.machine.now >= self.script.ends else State.READY

    def beats(self, since: int) -> Beats:
        first = max(since, self.head - CAPACITY)
        return Beats(self.log[first:], self.head, first - since)

    def poll(self) -> int | None:
        return 7 if self.machine.now >= self.script.dies else None

    def send_signal(self, _number: int) -> None:
        """It ends when it is asked to."""
        self.script.ends = min(self.script.ends, self.machine.now)


@dataclass(frozen=True)
class _Gaps:
    """The file in which a keeper writes down gaps."""

    job: Job
    state = 1

    @property
    def head(self) -> int:
        return len(self.job.gaps)

    def beats(self, since: int) -> Beats:
        return Beats(self.job.gaps[since:], self.head, 0)


class Thieves:
    """A collector that every slice has: what the hypervisor took of the lead's CPU."""

    name, every_slice = "cputime", True

    def __init__(self, machine: "Machine", thefts: Sequence[tuple[int, int]]) -> None:
        self._machine, self._thefts = machine, thefts

    def attach(self, _members: Mapping[str, int]) -> None:
        """There is nothing to look up."""

    def start(self, _active: Sequence[str]) -> None:
        self._begun = self._machine.now

    def stop(self) -> list[Sample]:
        now, begun = self._machine.now, self._begun
        stolen = sum(max(0, min(now, end) - max(begun, begin)) for begin, end in self._thefts) / SECOND
        return [Sample(now, self.name, "cpu0", "steal_s", stolen)]

    def close(self) -> None:
        """There is nothing to let go of."""

    def about(self) -> dict[str, str]:
        return {}


@dataclass
class Machine:
    """The clock, who runs, and what happens when."""

    launch: Launch
    scripts: Mapping[str, Script] = field(default_factory=dict)
    seed: int = 1
    thefts: Sequence[tuple[int, int]] = ()
    alarms: list[tuple[int, Callable[[], object]]] = field(default_factory=list)  # in order of time
    check: Callable[[], None] = lambda: None
    collectors: Sequence[Collector] = ()  # besides the usual ones
    now: int = SECOND
    changed: int = 0  # when the scene was

    def __post_init__(self) -> None:
        placebos = [placebo_member(cpu) for cpu in sorted({cpu for one in self.scenes for cpu in one.placebos})]
        names = [*(member.name for member in self.launch.cohort.members), *placebos]
        self.jobs = {
            name: Job(self, name, number, self.scripts.get(name) or Script(), self.seed)
            for number, name in enumerate(names, start=1000)
        }
        self.freezer = Freezing()
        self.kernel = FakeResctrl(Shape(domains={0: (0, 1, 2)}))
        for job in self.jobs.values():
            self.kernel.processes.fork(pid=job.pid)
        entries = ResctrlJournal(None, Path("/simulated"), "a simulated launch")
        mounted = Mounted(self.kernel, KernelsTasks(self.kernel), entries, {0: 0, 1: 0, 2: 0})
        self.allocator = ResctrlAllocator(mounted)
        witness, thieves = MaskWitness(self.allocator), Thieves(self, self.thefts)
        self.hardware = Hardware(
            self.allocator, NoMonitor(), [witness, thieves, *self.collectors], Surroundings(), witness
        )
        cast = [self._running(job) for job in self.jobs.values()]
        self.stage = _Stage(cast, self.freezer, self.hardware, lambda: self.check())
        self.stage.machine = self
        self.outcome = Measured(self.launch, freezer="simulated", cast=cast)
        self.said: list[str] = []

    @property
    def scenes(self) -> Sequence[object]:
        return self.launch.cohort.scenes

    def _running(self, job: Job) -> Running:
        environment = {"PATH": ""}
        cpu = int(job.name.replace(":", "@").partition("@")[2])
        start = Start(job.name, (cpu,), (), command=[], environment=environment, ready_within=60.0)
        start = replace(start, reports=job.script.steps > 1)
        return Running(start, job, job, Path(f"{job.name}.log"), job.restarts, ready_seconds=0.0)

    def pass_until(self, t_ns: int) -> None:
        """Let the time pass, and happen what is to happen meanwhile."""
        while self.alarms and self.alarms[0][0] <= t_ns:
            moment, happen = self.alarms.pop(0)
            self._pass(moment)
            happen()
        self._pass(t_ns)

    def _pass(self, t_ns: int) -> None:
        moving = [job for name, job in self.jobs.items() if job.script.escapes or not self.freezer.is_frozen(name)]
        for job in moving:
            job.run(self.now, t_ns, len(moving) > 1)
        self.now = max(self.now, t_ns)

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Have the stage read this machine's clock and sleep by it."""
        times = SimpleNamespace(
            monotonic_ns=lambda: self.now,
            monotonic=lambda: self.now / SECOND,
            sleep=lambda seconds: self.pass_until(self.now + max(1, round(seconds * SECOND))),
        )
        with patch.object(stages, "time", times):
            yield

    def say(self, words: str) -> None:
        """Hear what the runner says."""
        self.said.append(words)

    def measure(self) -> Measured:
        """Measure the launch as the runner does, once everybody is ready; nothing is left, however it ends."""
        members = [member.name for member in self.launch.cohort.members]
        with self.clock():
            try:
                self.hardware.attach(self.stage.held(), members)
                measure_rounds(self.outcome, self.stage, self.say)
                measure_after_rounds(self.outcome, self.stage, self.say)
                self.outcome.without_verdict = self.stage.dismiss()
            except WorkloadFailed as failure:
                self.outcome.fail(str(failure))
            finally:
                self.hardware.release()
        return self.outcome


class _Stage(Stage):
    """The real one; its machine knows when the scene changed."""

    machine: Machine

    def exchange(self, names: Sequence[str]) -> None:
        super().exchange(names)
        self.machine.changed = self.machine.now


def split(lead: int) -> Partition:
    """So many ways for the lead, and the others for everybody else."""
    rest = WAYS & ~((1 << lead) - 1)
    shares = (Share(member=LEAD, ways=WAYS & ~rest), Share(member=BESIDE, ways=rest), Share(member=REST, ways=rest))
    return Partition(name=f"split-{lead}", shares=shares)


def launch_of(
    number: int = 1, partitions: Sequence[Partition] = (), seed: int = 1, kept: bool = False, **design: object
) -> Launch:
    """A launch of one lead beside one antagonist, short enough for thousands of them."""
    pair = Mix(name="lead+beside", identity="pair", lead=LEAD, antagonists=(BESIDE,))
    made = cohort("c", pair)
    if partitions:
        under = pair.model_copy(update={"identity": "under", "partitions": tuple(partitions)})
        members = {member.name: member for member in made.members}
        made = made.model_copy(update={"mixes": (pair, under), "scenes": scenes_of((pair, under), members)})
    if kept:  # the antagonist is run again and again
        lead, beside = made.members
        made = made.model_copy(update={"members": (lead, beside.model_copy(update={"progress": "runs"}))})
    (one,) = plan([made], launches=1).launches
    short = {"rounds": 2, "spare_rounds": 1, "window": 0.12, "settle": 0.01, "longest_window": 1.0, "monitor": 0.0}
    limits = DESIGN.limits
    wanted = DESIGN.model_copy(
        update={"slice": None, "limits": limits, "longest_settle": 0.5, "steps": 10, **short, **design}
    )
    return one.model_copy(update={"number": number, "seed": seed, "design": wanted})
