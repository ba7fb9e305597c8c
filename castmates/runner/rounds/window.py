"""Measures one scene: switch, settle, open the window, close it, read what happened."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from castmates.protocols import Count, Sample
from castmates.runner.processes import restarts
from castmates.runner.processes.starts import placebo_member
from castmates.runner.rounds import eviction
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Design, Member, Scene

OCCUPANCY, OCCUPANCY_OF = "llc_occupancy", "occupancy of "
SHORTEST_LOOK = 0.05  # seconds between two looks at a window that is kept open for slow members


@dataclass
class Progress:
    """What one active process did inside a window."""

    records: list[tuple[int, int]]  # (time, units so far) of the heartbeats inside the window
    lost: int = 0
    before_ns: int | None = None  # the last heartbeat before the window, since the scene was set

    @property
    def units(self) -> float:
        """Units done between the first and the last heartbeat."""
        return float(self.records[-1][1] - self.records[0][1]) if len(self.records) > 1 else float("nan")

    @property
    def rate(self) -> float:
        """Units per second over the time between the first and the last heartbeat."""
        if len(self.records) < 2 or self.records[-1][0] == self.records[0][0]:
            return float("nan")
        return self.units / (self.records[-1][0] - self.records[0][0]) * 1e9


@dataclass
class Window:
    """One measured window."""

    scene: Scene
    open_ns: int
    close_ns: int
    progress: dict[str, Progress]  # by active process, placebos included
    samples: list[Sample]
    round: int = 0
    position: int = 0
    reasons: list[str] = field(default_factory=list)  # why it does not count
    counts: list[Count] = field(default_factory=list)
    switch_ns: int = 0  # when the scene was set; what lies between this and the opening is the settle time
    since_switch: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # what settles, until the close


def measure_window(
    stage: Stage, scene: Scene, members: Mapping[str, Member], design: Design, round_number: int = 1
) -> Window:
    """Run `scene` for one window; the caller knows its position and the reasons not to count it."""
    names = [*scene.active, *(placebo_member(cpu) for cpu in scene.placebos)]
    eviction.change_shares(stage, scene.shares)
    stage.switch(names)
    stage.forget_beats()
    switch_ns = stage.now_ns()
    active = [name for name in names if name in members]
    stage.hardware.begin_series(active, round_number)
    _settle(stage, names, members, design, switch_ns)
    stage.hardware.open_window(names)
    open_ns = stage.now_ns()
    _hold_open(stage, names, members, design, open_ns)
    close_ns = stage.now_ns()
    samples = stage.hardware.close_window()
    stage.read_beats()
    samples += restarts.samples({name: stage.cast[name].restarts for name in names}, open_ns, close_ns)
    progress = {name: _progress(stage, name, open_ns, close_ns) for name in names}
    since_switch = {name: stage.cast[name].records for name in names} | occupancy_since(switch_ns, samples, names)
    window = Window(scene, open_ns, close_ns, progress, samples, round=round_number)
    window.counts, window.switch_ns, window.since_switch = stage.hardware.counts(), switch_ns, since_switch
    return window


def occupancy_since(begin_ns: int, samples: Sequence[Sample], names: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the occupancy of members as progress: bytes times microseconds so far, whose rate is the occupancy."""
    held: dict[str, dict[int, float]] = {}
    for sample in samples:
        if sample.value is None or sample.t_ns <= begin_ns:
            continue
        if sample.metric == OCCUPANCY and sample.subject in names:
            series = held.setdefault(sample.subject, {})
            series[sample.t_ns] = series.get(sample.t_ns, 0.0) + sample.value  # a member may hold several caches
    curves = {}
    for name, series in held.items():
        records, done, before = [], 0.0, begin_ns
        for t_ns, held_bytes in sorted(series.items()):
            done += held_bytes * (t_ns - before) / 1e3
            records.append((t_ns, int(done)))
            before = t_ns
        curves[f"{OCCUPANCY_OF}{name}"] = records
    return curves


def _settle(stage: Stage, names: Sequence[str], members: Mapping[str, Member], design: Design, begin: int) -> None:
    """Wait out the settle time, and until everyone has completed a step since (but for commands that run long)."""
    before = {name: stage.cast[name].reader.head for name in names if _owes_steps(members.get(name))}
    stage.sleep_until(begin + int(design.settle * 1e9))
    last = begin + int((design.settle + design.longest_window) * 1e9)
    while stage.now_ns() < last and any(stage.cast[name].reader.head <= head for name, head in before.items()):
        stage.sleep_until(stage.now_ns() + int(SHORTEST_LOOK * 1e9))


def _hold_open(stage: Stage, names: Sequence[str], members: Mapping[str, Member], design: Design, open_ns: int) -> None:
    """Keep the window open for its time, and longer (up to a limit) while a member has not made its steps."""
    last = open_ns + int(design.longest_window * 1e9)
    until = open_ns + int(design.window * 1e9)
    while True:
        stage.sleep_until(until)
        now = stage.now_ns()
        missing = max(
            (_seconds_missing(_beats_since(stage.cast[name].records, open_ns), members[name], design, now - open_ns))
            for name in names
            if name in members
        )
        if missing <= 0 or now >= last:
            return
        until = min(last, now + int(max(missing, SHORTEST_LOOK) * 1e9))


def _beats_since(records: Sequence[tuple[int, int]], t_ns: int) -> int:
    return len(records) - bisect_left(records, (t_ns, 0))


def _seconds_missing(beats: int, member: Member, design: Design, open_for_ns: int) -> float:
    """Return how long a member will take, at its pace so far, for the steps that it still owes."""
    owed = (design.steps if _owes_steps(member) else 1) + 1 - beats
    return owed * open_for_ns / 1e9 / max(beats, 1)


def _owes_steps(member: Member | None) -> bool:
    """Everyone, a placebo (no member) too, but an antagonist that is run again and again: its runs may be long."""
    return member is None or member.role == "lead" or member.progress != "runs"


def _progress(stage: Stage, name: str, open_ns: int, close_ns: int) -> Progress:
    process = stage.cast[name]
    inside = [record for record in process.records if open_ns <= record[0] <= close_ns]
    before = max((t_ns for t_ns, _ in process.records if t_ns < open_ns), default=None)
    return Progress(inside, process.lost, before)
