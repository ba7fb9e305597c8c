"""Effects of a study with a grid -> the tables of predictions and of profiles.

The pressure of a program is also a setting of a dial: the one beside which the reporter loses as much (Bubble-Up).
Losses that were measured in both roles show whether what an antagonist loses stands for what a lead would lose.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.partitions.sensitivity import monotone
from castmates.analysis.prediction.pairs import ANTAGONIST, LEAD, Cell, Seen, best, mixes_of, seen_in
from castmates.analysis.prediction.predicted import Guess, Loss, PredictedLosses
from castmates.results.columns.prediction import PREDICTIONS, PROFILES
from castmates.results.columns.study import frame
from castmates.study.class_names import named
from castmates.study.dials import BANDWIDTH, CAPACITY, Dial, dials_of, settings_of
from castmates.study.spec import UNMANAGED, Plan, Prediction

PAIRS, TOGETHER = "from pairs", "from pairs together"
NOTHING = (math.nan, math.nan, math.nan)


def equivalent(pressed: Seen | None, beside: Mapping[str, Seen], dials: Mapping[str, Dial], kind: str) -> float:
    """The setting of a kind of dial that costs a reporter what it lost beside a program.

    `beside` has what it lost beside dials. NaN where fewer than two settings were measured, where the loss is not
    between theirs, and where the two settings around it do not differ for certain: then many would do.
    """
    curve = sorted((dials[name].amount, name) for name in beside if name in dials and dials[name].kind == kind)
    if pressed is None or len({amount for amount, _ in curve}) < 2:
        return math.nan
    known = [beside[name] for _, name in curve]
    weights = np.array([float(max(each.launches, 1)) for each in known])
    logs = -monotone(np.array([-each.log for each in known]), weights)
    for place, (below, above) in enumerate(pairwise(known)):
        low, high = logs[place], logs[place + 1]
        if low <= pressed.log <= high and below.high < above.low:
            share = (pressed.log - low) / (high - low)
            return curve[place][0] + float(share) * (curve[place + 1][0] - curve[place][0])
    return math.nan


def estimate_predictions(plan: Plan, effects: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Both tables, of everything in these effects; empty where the study has no grid."""
    cells, profiles = list[dict[str, Any]](), list[dict[str, Any]]()
    if (grid := plan.prediction) is None:
        return {"predictions": frame([], PREDICTIONS), "profiles": frame([], PROFILES)}
    for platform, machine, own in never_pooled(effects):
        about = {"study": plan.study, "platform": platform, "machine": machine}
        known, name = KnownGrid(own, grid, plan), name_on(plan, machine)
        cells += [row | about | {"lead": name(row["lead"])} for row in known.rows()]
        profiles += [row | about for row in known.profiles()]
    return {"predictions": frame(cells, PREDICTIONS), "profiles": frame(profiles, PROFILES)}


def never_pooled(effects: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """What is fitted separately: each platform on each class of nodes, or model of processor."""
    known = effects[effects["platform"] != ""]
    for (platform, machine), own in known.groupby(["platform", "machine"], sort=False):
        yield str(platform), str(machine), own


def name_on(plan: Plan, machine: str) -> Callable[[str], str]:
    """How leads are named on a class of nodes; a model of processor is in no name."""
    return partial(named, machine=machine if machine in {each.name for each in plan.machines} else "")


class KnownGrid:
    """What is known of a grid on one platform."""

    def __init__(self, effects: pd.DataFrame, grid: Prediction, plan: Plan) -> None:
        self.grid = grid
        self.losses = PredictedLosses.from_effects(
            effects, leads=grid.leads, targets=grid.antagonists, dials=dials_of(plan), hidden=grid.check
        )
        self._settings = settings_of(plan, grid.bubbles)
        self._every = best(seen_in(effects))  # those that check the fit included

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every cell of the grid, then everything else that was measured and can be predicted too."""
        cells: dict[Cell, str] = {}
        for lead in self.grid.leads:
            cells |= {(lead, (name,)): GRID for name in self.grid.antagonists}
        for cell, seen in self._every.items():
            cells.setdefault(cell, SEVERAL if len(seen.beside) > 1 else PROFILE)
        hidden = {mixes_of((lead, (name,))) for lead, name in self.grid.check}
        for cell, part in cells.items():
            checks = cell in self._every and mixes_of(cell) in hidden
            yield self.row(cell, CHECK if checks else part)

    def profiles(self) -> Iterator[dict[str, Any]]:
        """The sensitivity of each lead, then the pressure of each antagonist."""
        for lead in dict.fromkeys([*self.grid.leads, *self.grid.reporters]):
            for bubble in self.grid.bubbles:
                yield {"workload": lead, "profile": "sensitivity", "other": bubble, **self._loss((lead, (bubble,)))}
        for name in dict.fromkeys([*self.grid.antagonists, *self.grid.bubbles]):
            for reporter in self.grid.reporters:
                yield {
                    "workload": name,
                    "profile": "pressure",
                    "other": reporter,
                    **self._loss((reporter, (name,))),
                    **(self._equivalents(name, reporter) if name in self.grid.antagonists else {}),
                }

    def _equivalents(self, name: str, reporter: str) -> dict[str, float]:
        pressed = self._every.get((reporter, (name,)))
        beside = {
            dial: seen for dial in self.grid.bubbles if (seen := self._every.get((reporter, (dial,)))) is not None
        }
        return {
            column: equivalent(pressed, beside, self._settings, kind)
            for column, kind in (("equivalent_mib", CAPACITY), ("equivalent_gb_s", BANDWIDTH))
        }

    def row(self, cell: Cell, part: str) -> dict[str, Any]:
        """What is known of one cell: measured wherever it was, also of those that check the fit."""
        job, beside = cell
        seen = self._every.get(cell)
        guess = self.losses.guess(*cell) if part == CHECK or seen is None else self.losses.without(cell)
        without = NOTHING if guess is None or seen is None else _ends(guess.loss)
        return {
            "lead": job,
            "antagonists": "+".join(beside),
            "partition": UNMANAGED,
            "part": part,
            **self._loss(cell),
            "how": seen.how if seen is not None else _how(cell, guess),
            **dict(zip(("without_pct", "without_low", "without_high"), without, strict=True)),
            "error": without[0] - seen.pct if seen is not None else math.nan,
        }

    def _loss(self, cell: Cell) -> dict[str, Any]:
        seen = self._every.get(cell)
        loss = _measured(seen) if seen is not None else self.losses.of(*cell)
        ends = NOTHING if loss is None else _ends(loss)
        return {
            **dict(zip(("loss_pct", "loss_low", "loss_high"), ends, strict=True)),
            "launches": 0 if seen is None else seen.launches,
            "source": "" if loss is None else loss.source,
        }


def _measured(seen: Seen) -> Loss:
    return Loss(seen.pct, seen.low, seen.high, "measured")


def _ends(loss: Loss) -> tuple[float, float, float]:
    return loss.pct, loss.low, loss.high


def _how(cell: Cell, guess: Guess | None) -> str:
    if guess is None:
        return ""
    return PAIRS if len(cell[1]) == 1 else TOGETHER


@dataclass(frozen=True)
class Roles:
    """How the two differ, in points."""

    count: int  # losses that were measured in both roles
    mean: float  # by how much the lead's is above the antagonist's; NaN where there are none
    off: float  # mean of the differences without their sign


def both_roles(effects: pd.DataFrame) -> Roles:
    """Of every job beside the same others on one platform and class of nodes."""
    differences = []
    for _, _, own in never_pooled(effects):
        found: dict[Cell, dict[str, float]] = defaultdict(dict)
        for each in seen_in(own):
            found[each.cell][each.how] = each.pct
        differences += [one[LEAD] - one[ANTAGONIST] for one in found.values() if len(one) > 1]
    if not differences:
        return Roles(0, math.nan, math.nan)
    return Roles(len(differences), float(np.mean(differences)), float(np.mean(np.abs(differences))))


# How far predictions were off where the truth was measured.

GRID, PROFILE, CHECK, SEVERAL = "grid", "profile", "check", "several"  # parts of the table of predictions


@dataclass(frozen=True)
class Quality:
    """Errors of predictions, in points of the rate when alone."""

    count: int  # losses that were measured and predicted without their mix
    mean: float  # of the absolute errors; NaN where there are none
    largest: float
    inside: int  # of those with an interval, how many it contains
    with_interval: int


def quality(predictions: pd.DataFrame, part: str) -> Quality:
    """Of one part of the table: `grid` (each left out in turn), `check` (fresh mixes), `several`."""
    rows = predictions[(predictions["part"] == part) & predictions["error"].notna()]
    known = rows[rows["without_low"].notna() & rows["without_high"].notna()]
    inside = (known["without_low"] <= known["loss_pct"]) & (known["loss_pct"] <= known["without_high"])
    off = rows["error"].abs()
    return Quality(len(rows), float(off.mean()), float(off.max()), int(inside.sum()), len(known))
