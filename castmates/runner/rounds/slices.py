"""Measures one slice: an uninterrupted stretch of one scene, from its switch to a step of the lead."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from castmates.analysis.explanations.topdown_phases import Interval, of_phases
from castmates.protocols import Count, Sample
from castmates.runner.processes import restarts
from castmates.runner.processes.launch import WorkloadFailed
from castmates.runner.processes.starts import placebo_member
from castmates.runner.rounds.pace import Pace
from castmates.runner.rounds.stage import Stage
from castmates.study.counter_keys import BY_NAME
from castmates.study.reasons import Reason
from castmates.study.spec import Design, Member, Scene

LONGEST_WAIT = 3.0  # slices that we wait at most for the step that ends one
POLLS = 20  # looks for that step while one usually takes place
SHORTEST_POLL, LONGEST_POLL = 0.0003, 0.02  # seconds between two of them
SHORTEST_LOOK = 0.05  # seconds between two looks at a slice that is kept open for slow members
RUN_LOOK = 0.005  # seconds between two looks whether a program that is started again makes steps
TRIES = 4  # times that a slice is measured at most until no program is started again in it


@dataclass(frozen=True, slots=True)
class Progress:
    """What one active process did inside a slice."""

    records: Sequence[tuple[int, int]]  # (time, units so far) of the heartbeats inside the slice
    lost: int = 0
    before_ns: int | None = None  # the last heartbeat before the slice was opened, since the scene was set

    @property
    def units(self) -> float:
        """Units done between the first and the last heartbeat."""
        return float(self.records[-1][1] - self.records[0][1]) if len(self.records) > 1 else float("nan")

    @property
    def seconds(self) -> float:
        """The time between the first and the last heartbeat."""
        return (self.records[-1][0] - self.records[0][0]) / 1e9 if len(self.records) > 1 else float("nan")

    @property
    def rate(self) -> float:
        """Units per second over that time."""
        return self.units / self.seconds if self.seconds else float("nan")

    def halves(self, middle_ns: int) -> tuple["Progress", "Progress"]:
        """What was done before and after the first step that ended past the middle."""
        place = bisect_left(self.records, (middle_ns, 0))
        return Progress(self.records[: place + 1]), Progress(self.records[place:])


def _at_once(_name: str) -> float:
    return 0.0


@dataclass
class Slice:
    """One uninterrupted stretch of a scene."""

    scene: Scene
    open_ns: int  # from here on it was read
    close_ns: int
    switch_ns: int = 0  # when the scene was set
    since_switch: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # heartbeats of those who ran
    lost: Mapping[str, int] = field(default_factory=dict)  # heartbeats that were overwritten before they were read
    samples: list[Sample] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)
    crept: Mapping[str, int] = field(default_factory=dict)  # steps of who should have stood still
    unfrozen: Sequence[str] = ()  # who was seen to be able to run; looked for in watched slices alone
    allowed: Mapping[str, set[int]] = field(default_factory=dict)  # CPUs that threads may run on; in watched slices
    ended: Sequence[str] = ()  # who reported that it is at its end
    restarted: Sequence[str] = ()  # whose run ended, and who went on in another one
    watched: bool = False  # with everything that is read, not only with what is cheap
    round: int = 0
    stretch: int = 0  # of the round, from 1
    cycle: int = 0  # of its stretch, from 1
    number: int = 0  # within the launch, from 1
    length_s: float = math.nan  # from the switch on, but for the step that ends it: its nominal length
    end_ns: int | None = None  # after which the next step is everybody's last; None where all steps count
    steady_s: Callable[[str], float] = _at_once  # seconds after the switch from which on one's rate was steady
    reasons: list[Reason] = field(default_factory=list)  # why it does not count
    dropped: bool = False  # with its cycle, of which another slice does not count

    @property
    def seconds(self) -> float:
        """How long it was open."""
        return (self.close_ns - self.open_ns) / 1e9

    @property
    def counted(self) -> bool:
        """Whether it is part of its window."""
        return not self.reasons and not self.dropped

    def begin_ns(self, name: str) -> int:
        """From when on one's progress counts: it was read, and had settled."""
        return max(self.open_ns, self.switch_ns + int(self.steady_s(name) * 1e9))

    def progress(self, name: str) -> Progress:
        """What one who ran did in it: up to the first of its steps that ends after the nominal length.

        Cut at a step of somebody else, the last step would be lost more often the longer it is, and rates be too high.
        """
        whole = self.heartbeats(name)
        if self.end_ns is None:
            return whole
        return replace(whole, records=whole.records[: bisect_left(whole.records, (self.end_ns, 0)) + 1])

    def heartbeats(self, name: str) -> Progress:
        """All of it until the slice was closed, what came after its last step that counts included."""
        records = self.since_switch[name]
        first = bisect_left(records, (self.begin_ns(name), 0))
        last = bisect_right(records, self.close_ns, key=lambda record: record[0])
        before = records[first - 1][0] if first else None
        return Progress(records[first:last], self.lost.get(name, 0), before)

    def halves(self, name: str) -> tuple[Progress, Progress]:
        """What one who ran did in the earlier and in the later half of what counts."""
        return self.progress(name).halves((self.begin_ns(name) + (self.end_ns or self.close_ns)) // 2)


def who_runs(scene: Scene) -> list[str]:
    """Everybody who runs in a scene, placebos included."""
    return [*scene.active, *(placebo_member(cpu) for cpu in scene.placebos)]


def _whole(stage: Stage, names: Sequence[str], measure: Callable[[], Slice]) -> Slice:
    """Measure a slice again in which a program ended that goes on in another run: that time is in no slice."""
    for _ in range(TRIES):
        await_runs(stage, names)
        each = measure()
        if not each.restarted:
            break
        for name in each.restarted:
            stage.cast[name].spoilt += 1
    return each


def await_runs(stage: Stage, names: Sequence[str]) -> None:
    """Let these run until each has a run that makes steps; only who ends and is started again may have none."""
    begin_ns = stage.now_ns()
    while late := [stage.cast[name] for name in names if stage.cast[name].between_runs]:
        waited_s = (stage.now_ns() - begin_ns) / 1e9
        if slow := [process for process in late if waited_s > process.start.ready_within]:
            raise WorkloadFailed.of(
                slow[0], f"ended well, and made no step in another run within {slow[0].start.ready_within:g} s"
            )
        stage.exchange(names)
        stage.sleep_until(stage.now_ns() + int(RUN_LOOK * 1e9))


def measure_slice(stage: Stage, scene: Scene, pace: Pace) -> Slice:
    """Run a scene for one slice, and read at its edges what is cheap to read."""
    names = who_runs(scene)

    def measure() -> Slice:
        switch_ns = _set(stage, names)
        stage.rest_until(switch_ns + pace.settle_ns)
        stage.hardware.open_slice(names)
        open_ns = stage.now_ns()
        _hold(stage, scene, pace, switch_ns)
        close_ns = stage.now_ns()
        samples = stage.hardware.close_slice()
        end_ns = switch_ns + pace.length_ns
        return _closed(stage, Slice(scene, open_ns, close_ns, switch_ns, samples=samples, end_ns=end_ns), names)

    return _whole(stage, names, measure)


def measure_watched(
    stage: Stage,
    scene: Scene,
    pace: Pace,
    members: Mapping[str, Member],
    design: Design,
    round_number: int,
    silent: AbstractSet[str] = frozenset(),
) -> Slice:
    """Run a scene for a slice in which everything is read; it is kept open for who makes few steps.

    Who was `silent` in an earlier slice of the round is waited for no more: its windows are rejected all the same.
    """
    names = who_runs(scene)
    active = [name for name in names if name in members]

    def measure() -> Slice:
        switch_ns = _set(stage, names)
        stage.hardware.begin_series(active, round_number)
        stage.rest_until(max(switch_ns + pace.settle_ns, stage.now_ns()))
        stage.hardware.open_window(names)
        open_ns = stage.now_ns()
        _hold(stage, scene, pace, switch_ns)
        slow = [members[name] for name in active if name in pace.slow and name not in silent]
        _hold_open(stage, slow, pace, design, open_ns)
        close_ns = stage.now_ns()
        samples = stage.hardware.close_window()
        # Kept open for longer than usual, it ends with the steps that were asked for, or gives nobody's progress.
        is_usual = pace.watch_s <= pace.length_s - pace.settle_s and not pace.slow.intersection(active)
        end_ns = switch_ns + pace.length_ns if is_usual else None
        watched = Slice(scene, open_ns, close_ns, switch_ns, samples=samples, watched=True, end_ns=end_ns)
        _closed(stage, watched, names)
        watched.unfrozen = [name for name in stage.cast if name not in names and not stage.freezer.is_frozen(name)]
        watched.allowed = {name: stage.cpus_of_threads(name) for name in names}
        return watched

    return _whole(stage, names, measure)


def _set(stage: Stage, names: Sequence[str]) -> int:
    """Let exactly these run, and forget what was reported so far; return when they began."""
    stage.exchange(names)
    stage.forget_beats()
    return stage.now_ns()


def _closed(stage: Stage, measured: Slice, names: Sequence[str]) -> Slice:
    """Read what happened in a slice that has just been closed."""
    stage.read_beats()
    cast = stage.cast
    measured.since_switch = {name: cast[name].records for name in names}
    measured.lost = {name: cast[name].lost for name in names if cast[name].lost}
    measured.crept = {
        name: moved
        for name, process in cast.items()
        if name not in measured.since_switch and (moved := process.reader.head - process.seen)
    }
    measured.restarted = [name for name in names if cast[name].was_restarted(measured.switch_ns, measured.close_ns)]
    measured.ended = [name for name in names if cast[name].at_its_end]
    kept = {name: cast[name].restarts for name in names}
    measured.samples += restarts.samples(kept, measured.open_ns, measured.close_ns)
    measured.counts = stage.hardware.counts() if measured.watched else stage.hardware.counts_of_slice()
    return measured


def _hold(stage: Stage, scene: Scene, pace: Pace, switch_ns: int) -> None:
    """Wait for the end of a slice: a step of everybody, but of slow antagonists, after its nominal length."""
    length_ns = pace.length_ns
    stage.rest_until(switch_ns + length_ns)
    ends = [stage.cast[name] for name in scene.active if name == scene.active[0] or name not in pace.slow]
    owing = [(process, process.reader.head) for process in ends]
    last = switch_ns + int(LONGEST_WAIT * length_ns)
    poll = min(max(pace.step_of(scene) / POLLS, SHORTEST_POLL), LONGEST_POLL)
    while True:
        owing = [each for each in owing if each[0].reader.head == each[1] and not each[0].at_its_end]
        if not owing or (now := stage.now_ns()) >= last:
            return
        stage.rest_until(now + int(poll * 1e9))


def _hold_open(stage: Stage, slow: Sequence[Member], pace: Pace, design: Design, open_ns: int) -> None:
    """Keep a watched slice open as long as what is read needs, and (up to a limit) for the steps of slow members."""
    last = open_ns + int(design.longest_window * 1e9)
    until = open_ns + pace.watch_ns
    while True:
        stage.sleep_until(until)
        now = stage.now_ns()
        open_s = (now - open_ns) / 1e9
        missing = max((_missing_s(stage, member, design, open_ns, open_s) for member in slow), default=0.0)
        if missing <= 0 or now >= last:
            return
        until = min(last, now + int(max(missing, SHORTEST_LOOK) * 1e9))


def _missing_s(stage: Stage, member: Member, design: Design, open_ns: int, open_s: float) -> float:
    """Return how long a member will take, at its pace so far, for the steps that it still owes.

    Before its first step nothing is known of its pace: it is looked at again after as long as it was silent.
    """
    process = stage.cast[member.name]
    if process.at_its_end:
        return 0.0
    beats = len(process.records) - bisect_left(process.records, (open_ns, 0))
    if not beats:
        return open_s
    steps = 1 if member.progress == "runs" and member.role == "antagonist" else design.steps
    if beats > steps:
        return 0.0
    last_ns = process.records[-1][0]
    step_s = (last_ns - open_ns) / 1e9 / beats
    return max((steps + 1 - beats) * step_s - (open_ns - last_ns) / 1e9 - open_s, step_s / 2)


# The Top-Down shares of intervals inside a watched slice, joined to the phases of a member by CLOCK_MONOTONIC.

SERIES = "topdown"  # whose samples they are
GROUP = "phases"


def topdown_counts(member: str, spans: Mapping[str, Sequence[tuple[int, int]]], watched: Slice) -> Iterator[Count]:
    """Yield the shares of each phase (name -> its times), as far as the intervals of the slice show them."""
    for share in of_phases(_intervals(member, watched), spans):
        yield Count(
            member, share.metric, share.value, "scaled", "by time", "metric", GROUP, BY_NAME[share.metric].level,
            phase=share.phase, note=share.note,
        )  # fmt: skip


def _intervals(member: str, watched: Slice) -> list[Interval]:
    """Return the intervals between the slice's edges; each begins where the one before it ended."""
    by_end: dict[int, dict[str, float]] = {}
    for sample in watched.samples:
        if sample.source == SERIES and sample.subject == member and sample.metric in BY_NAME:
            shares = by_end.setdefault(sample.t_ns, {})
            if sample.value is not None:
                shares[sample.metric] = sample.value
    intervals, begin_ns = [], watched.open_ns
    for end_ns, shares in sorted(by_end.items()):
        end = min(end_ns, watched.close_ns)
        if shares and end > begin_ns:
            intervals.append(Interval(begin_ns, end, shares))
        begin_ns = max(begin_ns, end_ns)
    return intervals
