"""One round of a launch: its stretches, the cycles of each, and the slices of these."""

import gc
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from statistics import median

from castmates.protocols import Say
from castmates.runner import outcome as progress
from castmates.runner.outcome import Measured
from castmates.runner.processes.launch import WorkloadFailed
from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.lead_in import LeadIn, lead_in
from castmates.runner.rounds.ledger import Ledger
from castmates.runner.rounds.pace import STEPS, Pace, Steps, first_settle, pace_of
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.slices import Slice, await_runs, measure_slice, measure_watched, who_runs
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.window import Window
from castmates.study.reasons import Reason, ReasonKind, kinds
from castmates.study.schedule import Orders, Stretch, stretches
from castmates.study.spec import UNMANAGED, Launch, Member, Scene

MOST_LEFT_OUT = 0.5  # of a slice, where more is found to be unsteady after it was measured


@dataclass
class Rounds:
    """What the rounds of a launch have in common."""

    outcome: Measured
    stage: Stage
    steps: Steps
    pace: Pace = field(init=False)
    _orders: Orders = field(default_factory=Orders)
    _slices: int = 0  # measured so far
    _silent: set[str] = field(default_factory=set)  # slow members that made no step in this round
    _longer: int = 1  # times as long are passes of a lead-in: twice as after each that was not steady
    _learned: bool = True  # something that asks for another length of slices

    def __post_init__(self) -> None:
        """Choose the length of slices from what was seen while everybody warmed up."""
        launch = self.outcome.launch
        self._members: Mapping[str, Member] = {member.name: member for member in launch.cohort.members}
        self._design = launch.design
        self._ledger = Ledger(self.stage, self._members, launch.design, frozenset(self.outcome.runner_cpus))
        self.prepare()

    def prepare(self) -> None:
        """Choose the length of the next round's slices, where something new was learned.

        Only before a round: what is chosen was then used, so that the launch's record has the lengths it was made of.
        """
        if not self._learned:
            return
        lead = self.outcome.launch.cohort.lead
        settle_s, watch_s = self._settling.seconds, self.stage.hardware.watch_s
        self.pace = pace_of(
            self._design, self.steps, lead.name, settle_s, watch_s, self._longest_period_s, lead.requests
        )
        self._settling.watch(self.pace.length_s)
        self.outcome.pace = self.pace
        self._learned = False

    def about(self) -> str:
        """The length of slices in words."""
        pace, cycles = self.pace, self.pace.cycles
        return (
            f"slices of {1e3 * pace.length_s:.0f} ms ({pace.why}), {1e3 * pace.settle_s:.0f} ms of it to settle; "
            f"{cycles} slice{'s' * (cycles != 1)} a window; a change of scene takes {1e3 * self.steps.switch:.1f} ms"
        )

    def measure(self, number: int) -> list[Window]:
        """Measure every scene in the slices of this round, stretch by stretch."""
        windows: list[Window] = []
        self.outcome.paces[number] = self.pace
        self._silent = set()
        # What is found later takes half of these slices at most: else few would have steps left, those with quick ones.
        most = max(MOST_LEFT_OUT * self.pace.length_s, self.pace.settle_s)
        steady_s = partial(self._settling.seconds_of, at_most=most)
        for place, stretch in enumerate(stretches(self.outcome.launch, number), start=1):
            changed = stretch.shares != self.stage.shares
            # Once a round, in case others have written masks: else all rounds to come would be rejected too.
            emptied = eviction.change_shares(self.stage, stretch.shares, anew=place == 1)
            self.outcome.emptied += [emptied] if emptied else []
            self.stage.hardware.begin_stretch(number)
            with _without_garbage_collection():
                led_in = LeadIn()
                if changed or emptied:
                    led_in = lead_in(self.stage, stretch.scenes, self.pace, emptied is not None, self._longer)
                    self.outcome.led_in += [led_in] if emptied else []
                    self._longer *= 1 + led_in.not_steady
                new = self._measure_stretch(stretch, number)
            self.stage.exchange([])  # what is looked up from here on is not to weigh on who runs
            for each in (each for window in new for each in window.all_slices):
                each.stretch, each.steady_s = place, steady_s
            for window in new:
                window.lead_in, window.emptied = led_in, emptied
            self._ledger.judge_stretch(new)
            windows += new
        windows.sort(key=lambda window: window.all_slices[0].number)
        for position, window in enumerate(windows, start=1):
            window.round, window.position = number, position
        return windows

    def learn(self, windows: list[Window]) -> Reason | None:
        """Learn from a round how long rates take to settle; a reason where its slices were too short for that."""
        settling = self._settling
        known = settling.seconds, dict(settling.others)
        too_short = settling.learn(each for window in windows for each in window.slices)
        if known != (settling.seconds, settling.others):
            self._learned = True
            self._judge_anew()
        self._learn_steps(windows)
        return too_short

    def _learn_steps(self, windows: Sequence[Window]) -> None:
        """Learn how long steps take in scenes that nobody warmed up in: those under partitions.

        A lead with little cache takes longer, and would else have too few steps in slices that were made for more.
        """
        new = [window for window in windows if window.scene.name not in self.steps.of_scene and window.slices]
        if not new:
            return
        self.steps, before = self.steps.with_those_of(map(_step_in, new)), self.steps
        self._learned |= self.steps.of_member != before.of_member

    def _judge_anew(self) -> None:
        """Judge all windows with what is left of their slices, now that more is left out."""
        counting = [window for window in self.outcome.windows if ReasonKind.NOT_SETTLED not in kinds(window.reasons)]
        by_stretch: dict[tuple[int, int], list[Window]] = {}
        for window in counting:
            by_stretch.setdefault((window.round, window.watched.stretch), []).append(window)
        for stretch in by_stretch.values():
            self._ledger.judge_stretch(stretch)

    @property
    def _longest_period_s(self) -> float:
        """After how long a quota of CPU time is renewed, at most; 0 where no scene has one."""
        shares = [share for scene in self.outcome.launch.cohort.scenes for share in scene.shares]
        return max((share.period / 1000 for share in shares if share.quota and share.period), default=0.0)

    @property
    def _settling(self) -> Settling:
        assert self.outcome.settling is not None
        return self.outcome.settling

    def _measure_stretch(self, stretch: Stretch, number: int) -> list[Window]:
        """Measure the scenes of a stretch in cycles; in one more, the last, everything is read."""
        pace, cycles = self.pace, self.pace.cycles
        windows = {scene.name: Window(scene, slow=pace.slow.intersection(scene.active)) for scene in stretch.scenes}
        stays_usual = pace.length_s - pace.settle_s >= pace.watch_s and not any(each.slow for each in windows.values())
        last = cycles if stays_usual else cycles + 1
        for cycle, order in enumerate(self._orders.draw(stretch, last, pace.slow), start=1):
            for scene in order:
                window = windows[scene.name]
                each = self._measure(scene, number, watched=cycle == last)
                each.cycle = cycle
                if cycle == last:
                    window.watched = each
                if cycle < last or stays_usual:
                    window.slices.append(each)
            self.stage.look_after()
        return list(windows.values())

    def _silent_in(self, watched: Slice) -> set[str]:
        """Slow members without a step; a program that is run again and again may need longer for one run."""
        return {
            name
            for name in self.pace.slow.intersection(watched.scene.active)
            if self._members[name].progress != "runs" and not watched.progress(name).records
        }

    def _measure(self, scene: Scene, number: int, watched: bool) -> Slice:
        if watched:
            each = measure_watched(self.stage, scene, self.pace, self._members, self._design, number, self._silent)
            self._silent |= self._silent_in(each)
        else:
            each = measure_slice(self.stage, scene, self.pace)
        self._slices += 1
        each.round, each.number, each.length_s = number, self._slices, self.pace.length_s
        return each


def _step_in(window: Window) -> tuple[str, str, float]:
    """A scene, who ends its slices, and how long a step of that one took; as long as was looked at, if none was seen.

    Slices that were rejected because of too few steps are looked at too: they have the longest.
    """
    who = window.scene.active[0]
    longest = max(each.seconds for each in window.slices)
    known = [step for each in window.slices if (step := step_of(each.since_switch[who], math.inf)) < math.inf]
    return window.scene.name, who, median(known) if known else longest


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Put the collector of this process off: it would work at any moment, on a CPU that is measured."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# Before the first round every scene runs for a moment, and steps and changes of scene are timed.

SHORTEST = 0.1  # seconds that a scene runs
LOOK = 0.02  # seconds between two looks


def warm_up(stage: Stage, launch: Launch) -> Steps:
    """Run each scene without a partition until who ends its slices has made a few steps; report how long they took."""
    members = {member.name: member for member in launch.cohort.members}
    scenes = [scene for scene in launch.cohort.scenes if scene.partition == UNMANAGED]
    random.Random(f"{launch.seed}/warm-up").shuffle(scenes)
    of_scene: dict[str, float] = {}
    of_member: dict[str, float] = {}
    switches = []
    for scene in scenes:
        switches.append(_switch(stage, who_runs(scene)))
        took = _run(stage, scene, members, launch.design.longest_window)
        of_scene[scene.name] = took[scene.active[0]]
        for name, step in took.items():
            of_member[name] = max(step, of_member.get(name, 0.0))
    stage.look_after()
    return Steps(of_scene, of_member, median(switches))


def _switch(stage: Stage, names: Sequence[str]) -> float:
    """Change to a scene as between two slices, both edges included; return the seconds that this took."""
    begin = stage.now_ns()
    stage.hardware.open_slice(names)
    stage.hardware.close_slice()
    stage.exchange(names)
    stage.forget_beats()
    return (stage.now_ns() - begin) / 1e9


def _run(stage: Stage, scene: Scene, members: Mapping[str, Member], longest: float) -> dict[str, float]:
    """Run a scene for a moment; return how long a step of each member took, at least."""
    await_runs(stage, who_runs(scene))
    begin = stage.now_ns()
    first = stage.cast[scene.active[0]]
    while True:
        stage.sleep_until(stage.now_ns() + int(LOOK * 1e9))
        passed = (stage.now_ns() - begin) / 1e9
        enough = len(first.records) > STEPS + 1 and passed >= SHORTEST
        if enough or passed >= longest:
            break
    if members[scene.active[0]].progress == "runs" and scene.kind == "alone" and len(first.records) < 2:
        raise WorkloadFailed(
            f"{first.name} ended fewer than two runs in the {passed:.0f} s that a slice may take: give it another "
            "'progress', with which slices lie inside runs (castmates help add-a-workload), or raise "
            "budget.longest_window to more than twice a run, so that whole runs are compared"
        )
    # Who ends the slices was waited for as long as is ever waited; others may need any time.
    unseen = {name: passed if name == scene.active[0] else math.inf for name in scene.active if name in members}
    return {name: step_of(stage.cast[name].records, otherwise) for name, otherwise in unseen.items()}


def step_of(records: Sequence[tuple[int, int]], otherwise: float) -> float:
    """The usual time between two heartbeats, where it was seen."""
    gaps = [after - before for (before, _), (after, _) in pairwise(records)]
    return median(gaps) / 1e9 if gaps else otherwise


# Rounds, each of which has every scene in many short slices, are measured until enough of them are clean.


def measure_rounds(outcome: Measured, stage: Stage, say: Say) -> None:
    """Measure rounds until enough of them are clean, or the spare ones are used up."""
    launch, design = outcome.launch, outcome.launch.design
    progress.rounds_begin(outcome)
    begin, lead = stage.now_ns(), launch.cohort.lead
    steps = warm_up(stage, launch)
    ready = stage.now_ns()
    outcome.settling = Settling(first_settle(design, steps, lead.name, lead.requests), design.longest_settle, lead.name)
    rounds = Rounds(outcome, stage, steps)
    say(rounds.about())
    number, last = 0, design.rounds + design.spare_rounds
    while outcome.rounds < design.rounds and number < last:
        number += 1
        rounds.prepare()
        windows = rounds.measure(number)
        outcome.windows += windows
        if too_short := rounds.learn(windows):
            # What was measured in shorter slices does not count, and does not use up the rounds.
            for window in outcome.windows:
                window.reasons.insert(0, too_short)  # before what shorter slices may have caused
            last = number + design.rounds + design.spare_rounds
            rounds.prepare()
            say(rounds.about())
        outcome.rounds = _clean_rounds(outcome.windows)
        say(f"round {number}: {_summary(windows)}")
        progress.round_ended(outcome, number)
    stage.switch([])
    # What a round costs decides how many there are; warming up is part of the start, however many rounds follow.
    outcome.warm_up_seconds, outcome.measure_seconds = (ready - begin) / 1e9, (stage.now_ns() - ready) / 1e9


def _clean_rounds(windows: Sequence[Window]) -> int:
    """How many rounds have no window that is rejected."""
    every = {window.round for window in windows}
    return len(every - {window.round for window in windows if window.reasons})


def _summary(windows: Sequence[Window]) -> str:
    """How many windows and slices a round had, and what was rejected in it."""
    slices = [each for window in windows for each in window.all_slices]
    parts = [f"{len(windows)} windows of {len(slices)} slices"]
    if lost := sum(bool(each.reasons) for each in slices):
        parts.append(f"{lost} slices rejected")
    return ", ".join(filter(None, [*parts, progress.summary(windows)]))
