"""Adaptive studies on the modelled machine, many at once: they scatter as the machine does, their looks are real.

What a launch gives is drawn as `test_oracle.py` draws it (a test there compares that with the machine itself). Looks
are taken by the code that takes them in a sweep, and intervals are made by the code that makes the printed ones.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from castmates.analysis.design.adaptive import Look, MixAtLook, MixEstimate, decide, halves
from castmates.analysis.statistics.intervals import estimate
from castmates.study.curves import curves, measured_later, questions
from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.scenes import scenes_of, under
from castmates.study.spec import UNMANAGED, Cohort, Plan
from tests.unit.modelled.makers import project_of
from tests.unit.modelled.test_oracle import log_rates, truths

TOGETHER = 100  # studies that are drawn at once


@dataclass
class Setting:
    """A study of one lead, its cells, and what is true of them."""

    plan: Plan
    cohort: Cohort  # of all mixes together
    rounds: int
    looks: list = field(default_factory=list)
    margin: float = 0.02
    limit: float | None = None
    cells: list = field(default_factory=list)  # identities
    names: list = field(default_factory=list)
    true: np.ndarray = None  # log slowdowns against alone
    places: list = field(default_factory=list)  # of their scenes; of alone first

    @classmethod
    def of(cls, tmp_path, text, rounds=3):
        project = project_of(tmp_path, text)
        return cls.of_lead(project.study, project.plan(), rounds)

    @classmethod
    def of_lead(cls, study: Study, plan: Plan, rounds: int = 3, lead: str | None = None) -> "Setting":
        """The setting of one lead of a modelled study; of its only one, where none is named."""
        one = cls.of_plan(plan, rounds, lead)
        one.looks, one.margin, one.limit = study.budget.looks, study.margin, study.recommend.lead_loss
        launch = one.plan.launches[0].model_copy(update={"cohort": one.cohort, "design": design_of(study)})
        rates = truths(one.plan.model_copy(update={"launches": (launch,)}))
        name = one.cohort.lead.name
        scenes = [scene.name for scene in one.cohort.scenes]
        one.true = np.array([math.log(rates["alone"][name] / rates[scenes[at]][name]) for at in one.places[1:]])
        return one

    @classmethod
    def of_plan(cls, plan: Plan, rounds: int, lead: str | None = None) -> "Setting":
        """The same without a truth, and before it is known what is asked."""
        lead = plan.mixes[0].lead if lead is None else lead
        launches = tuple(launch for launch in plan.launches if launch.cohort.lead.name == lead)
        plan = plan.model_copy(update={"mixes": tuple(m for m in plan.mixes if m.lead == lead), "launches": launches})
        members = {each.name: each for launch in launches for each in launch.cohort.members}
        first = members.pop(lead)
        cohort = launches[0].cohort.model_copy(
            update={
                "mixes": plan.mixes,
                "members": (first, *members.values()),
                "scenes": scenes_of(plan.mixes, {lead: first, **members}),
            }
        )
        one = cls(plan, cohort, rounds)
        scenes = [scene.name for scene in cohort.scenes]
        one.places = [scenes.index("alone")]
        for mix in plan.mixes:
            partition = mix.partitions[0].name if mix.partitions else UNMANAGED
            one.cells.append(mix.identity)
            one.names.append(f"{mix.name} {partition}")
            one.places.append(scenes.index(under(f"corun:{mix.name}" if mix.antagonists else "alone", partition)))
        return one

    @property
    def noise(self):
        return self.plan.launches[0].design.model.noise

    def drawn(self, rng: np.random.Generator, studies: int) -> np.ndarray:
        """By study, launch and cell, the mean of the rounds' differences."""
        flat = {scene.name: dict.fromkeys(scene.active, 1.0) for scene in self.cohort.scenes}
        logs = log_rates(flat, self.cohort, self.noise, rng, studies, self.looks[-1], self.rounds)
        lead = logs[:, :, :, self.places, 0]
        return self.true + (lead[..., :1] - lead[..., 1:]).mean(axis=2)

    def scenes_of(self, identities):
        """How many windows a round has that measures these cells."""
        mixes = [mix for mix in self.plan.mixes if mix.identity in identities]
        members = {member.name: member for member in self.cohort.members}
        return len(scenes_of(mixes, members)) if mixes else 0


@dataclass
class Came:
    """What one adaptive study came to."""

    measured: np.ndarray  # by launch and cell
    asked: list
    windows: int


def play(setting: Setting, values: np.ndarray) -> Came:
    """One study; `values` has what each launch would give in each cell."""
    mixes, looks = setting.plan.mixes, setting.looks
    asks = questions(mixes, setting.limit, setting.margin)
    lines, waiting = curves(mixes), set(measured_later(mixes))
    place = {identity: number for number, identity in enumerate(setting.cells)}
    groups = np.zeros(len(place), dtype=np.int64)
    measured = np.zeros(values.shape, dtype=bool)
    asked = [MixAtLook(identity) for identity in setting.cells if identity not in waiting]
    begin, windows = 0, 0
    for end in looks:
        going = [each.identity for each in asked if each.goes_on]
        measured[begin:end, [place[identity] for identity in going]] = True
        measured &= ~np.isnan(values)
        windows += (end - begin) * setting.rounds * setting.scenes_of(set(going))
        counts = measured.sum(axis=0).astype(float)
        shown = np.where(measured, values, np.nan)
        with np.errstate(invalid="ignore"):
            means = np.nansum(shown, axis=0) / counts
            spread = np.sqrt(np.nansum((shown - means) ** 2, axis=0) / (counts - 1))
        half = np.nan_to_num(halves(counts, spread, groups), nan=np.inf)
        known = {
            identity: MixEstimate(int(counts[at]), float(means[at]), float(half[at]))
            for identity, at in place.items() if counts[at]
        }  # fmt: skip
        asked = decide(Look(asks, lines, math.log1p(setting.margin), looks[-1] - end), known, asked)
        begin = end
        if not any(each.goes_on for each in asked):
            break
    return Came(measured, asked, windows)


def printed(came, values):
    """The printed intervals of many studies: a row per study and cell."""
    parts = []
    for study, (one, drawn) in enumerate(zip(came, values, strict=True)):
        launch, cell = np.nonzero(one.measured)
        parts.append(pd.DataFrame({"study": study, "cell": cell, "cohort": "c", "launch": launch,
                                   "difference": drawn[launch, cell], "round": 1}))  # fmt: skip
    return estimate(pd.concat(parts, ignore_index=True), ["study", "cell"]).reset_index()
