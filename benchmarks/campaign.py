"""What the resolution benchmark has measured, by every way, and what each way makes of it."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

import numpy as np

from benchmarks import launches, usual
from benchmarks.common import say
from benchmarks.precision import Apart, Floats, Paired, Way
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES
from castmates.study.spec import Plan

OURS, A, B, B_PAIRED = "ours", "usual, scenes alone first", "usual, interleaved", "usual, interleaved, paired"
TARGET, ROUGH = 0.01, 0.02  # half-widths of the log loss: 1 % and 2 % of the slowdown


@dataclass
class Campaign:
    """Everything measured so far."""

    plan: Plan  # of the cohort of all mixes
    single: list[Plan]  # of the cohorts of one mix each
    windows: usual.Windows
    folder: Path
    ours: list[launches.Measured] = field(default_factory=list)
    alone: dict[int, list[launches.Measured]] = field(default_factory=dict)  # by mix
    apart: dict[int, list[usual.Run]] = field(default_factory=dict)  # way A, by arm: alone, then the mixes
    cycles: list[dict[int, usual.Run]] = field(default_factory=list)  # way B, by arm; the last turn may be incomplete

    @property
    def arms(self) -> int:
        """Alone and the mixes."""
        return 1 + len(self.plan.mixes)

    @property
    def turns(self) -> list[list[usual.Run]]:
        """The complete turns of way B: a run of every arm."""
        return [[cycle[arm] for arm in range(self.arms)] for cycle in self.cycles if len(cycle) == self.arms]

    def measure_next(self, rng: random.Random) -> float:
        """One run of way B, whose turns take the arms in random orders; returns its seconds."""
        if not self.cycles or len(self.cycles[-1]) == self.arms:
            self.cycles.append({})
        turn = self.cycles[-1]
        arm = rng.choice([arm for arm in range(self.arms) if arm not in turn])
        turn[arm] = self.measure_run(arm)
        return max(turn[arm].seconds)

    def measure_run(self, arm: int) -> usual.Run:
        """One run of the usual way."""
        mix = None if arm == 0 else self.plan.mixes[arm - 1]
        measured = usual.measure(self.plan.launches[0].cohort, mix, self.windows)
        say(f"usual way, {mix.name if mix else 'alone'}: {measured.rates[-1]:.6g}/s, {measured.seconds[-1]:.1f} s")
        return measured


@dataclass(frozen=True)
class Known:
    """A way of measuring, of which there is enough to be judged."""

    name: str
    choice: usual.Choice | None  # None for ours
    count: int  # of the kind of unit of which there are fewest
    units: str  # how many there were, in words
    way: Way


def known_ways(campaign: Campaign) -> list[Known]:
    """Ours, then each usual way with the cheapest of its choices; those with too few units are left out."""
    cheapest: dict[str, Known] = {}
    for known in every_choice(campaign):
        best = cheapest.setdefault(known.name, known)
        if known.way.seconds(TARGET)[0] < best.way.seconds(TARGET)[0]:
            cheapest[known.name] = known
    return list(cheapest.values())


def every_choice(campaign: Campaign) -> list[Known]:
    """Ours, then each usual way with each of its choices in which every run has a rate."""
    differences, costs = launches.losses(campaign.plan, campaign.ours)
    found = []
    if len(costs) >= FEWEST_LAUNCHES:
        found.append(Known(OURS, None, len(costs), f"{len(costs)} launches", Paired(differences, costs)))
    in_phases = [campaign.apart.get(arm, []) for arm in range(campaign.arms)]
    in_turns = [[cycle[arm] for cycle in campaign.cycles if arm in cycle] for arm in range(campaign.arms)]
    for name, arms in ((A, in_phases), (B, in_turns)):
        if (fewest := min(map(len, arms))) >= FEWEST_LAUNCHES:
            counts = "/".join(str(len(arm)) for arm in arms)
            found += _choices(name, fewest, f"{counts} runs", _apart, arms, campaign)
    if len(turns := campaign.turns) >= FEWEST_LAUNCHES:
        found += _choices(B_PAIRED, len(turns), f"{len(turns)} turns", _turns, turns, campaign)
    return found


def without_controls(campaign: Campaign) -> Way:
    """Our way where each launch is charged nothing for the slices of its controls, which the usual way has not."""
    differences, costs = launches.losses(campaign.plan, campaign.ours)
    free = sum(launches.control_seconds(one) for one in campaign.ours) / sum(one.seconds for one in campaign.ours)
    return Paired(differences, costs * (1 - free))


def _choices(
    name: str,
    count: int,
    units: str,
    judge: Callable[[Sequence[Sequence[usual.Run]], int], Way],
    runs: Sequence[Sequence[usual.Run]],
    campaign: Campaign,
) -> Iterator[Known]:
    for number, choice in enumerate(campaign.windows.choices):
        if all(isfinite(run.rates[number]) for group in runs for run in group):
            yield Known(name, choice, count, units, judge(runs, number))


def _apart(arms: Sequence[Sequence[usual.Run]], choice: int) -> Apart:
    logs = [_logs(runs, choice) for runs in arms]
    costs = [np.array([run.seconds[choice] for run in runs]) for runs in arms]
    return Apart(logs[0], logs[1:], costs[0], costs[1:])


def _turns(cycles: Sequence[Sequence[usual.Run]], choice: int) -> Paired:
    logs = np.array([_logs(cycle, choice) for cycle in cycles])
    costs = np.array([sum(run.seconds[choice] for run in cycle) for cycle in cycles])
    return Paired(logs[:, :1] - logs[:, 1:], costs)


def _logs(runs: Iterable[usual.Run], choice: int) -> Floats:
    return np.log([run.rates[choice] for run in runs])
