"""What the resolution benchmark has measured, by every way, and what each way makes of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import blocks, usual
from benchmarks.common import say
from benchmarks.coverage import B_PAIRED, OURS, A, B
from benchmarks.precision import Apart, Floats, Paired, Way
from castmates.analysis.intervals import FEWEST_BLOCKS
from castmates.study.spec import Plan

TARGET = 0.01  # half-width of the log loss: 1 % of the slowdown
LENGTHS = (0, 1)  # a run's short and its long window


@dataclass
class Campaign:
    """Everything measured so far."""

    plan: Plan  # of the company of all mixes
    single: list[Plan]  # of the companies of one mix each
    windows: usual.Windows
    folder: Path
    ours: list[blocks.Measured] = field(default_factory=list)
    alone: dict[int, list[blocks.Measured]] = field(default_factory=dict)  # by mix
    apart: dict[int, list[usual.Run]] = field(default_factory=dict)  # way A, by arm: solo, then the mixes
    cycles: list[list[usual.Run]] = field(default_factory=list)  # way B: a run of every arm

    @property
    def arms(self) -> int:
        """Solo and the mixes."""
        return 1 + len(self.plan.mixes)

    def measure_run(self, arm: int) -> usual.Run:
        """One run of the usual way."""
        mix = None if arm == 0 else self.plan.mixes[arm - 1]
        measured = usual.measure(self.plan.blocks[0].company, mix, self.windows)
        say(f"usual way, {mix.name if mix else 'solo'}: {measured.rates[1]:.6g}/s, {measured.seconds[1]:.1f} s")
        return measured


@dataclass(frozen=True)
class Known:
    """A way of measuring, of which there is enough to be judged."""

    name: str
    window: float
    units: str  # how many there were, in words
    way: Way


def known_ways(campaign: Campaign) -> list[Known]:
    """Ours, then each usual way with the better of its two windows; those with too few units are left out."""
    differences, costs = blocks.losses(campaign.plan, campaign.ours)
    found = []
    if len(costs) >= FEWEST_BLOCKS:
        found.append(Known(OURS, campaign.windows.short, f"{len(costs)} blocks", Paired(differences, costs)))
    in_phases = [campaign.apart.get(arm, []) for arm in range(campaign.arms)]
    in_turns = [[cycle[arm] for cycle in campaign.cycles] for arm in range(campaign.arms)]
    for name, arms in ((A, in_phases), (B, in_turns)):
        if min(map(len, arms)) >= FEWEST_BLOCKS:
            counts = "/".join(str(len(arm)) for arm in arms)
            found.append(_better(name, f"{counts} runs", [_apart(arms, one) for one in LENGTHS], campaign))
    if len(campaign.cycles) >= FEWEST_BLOCKS:
        turns = [_turns(campaign.cycles, one) for one in LENGTHS]
        found.append(_better(B_PAIRED, f"{len(campaign.cycles)} turns", turns, campaign))
    return found


def _better(name: str, units: str, ways: Sequence[Way], campaign: Campaign) -> Known:
    lengths = (campaign.windows.short, campaign.windows.long)
    window, way = min(zip(lengths, ways, strict=True), key=lambda one: float(one[1].seconds(TARGET)[0]))
    return Known(name, window, units, way)


def _apart(arms: Sequence[Sequence[usual.Run]], length: int) -> Apart:
    logs = [_logs(runs, length) for runs in arms]
    costs = [np.array([run.seconds[length] for run in runs]) for runs in arms]
    return Apart(logs[0], logs[1:], costs[0], costs[1:])


def _turns(cycles: Sequence[Sequence[usual.Run]], length: int) -> Paired:
    logs = np.array([_logs(cycle, length) for cycle in cycles])
    costs = np.array([sum(run.seconds[length] for run in cycle) for cycle in cycles])
    return Paired(logs[:, :1] - logs[:, 1:], costs)


def _logs(runs: Iterable[usual.Run], length: int) -> Floats:
    return np.log([run.rates[length] for run in runs])
