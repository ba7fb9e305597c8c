"""Plans and tables of windows for tests: written by hand, rate by rate, or simulated from a known truth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.results.columns.launch import SLICES, WINDOWS
from castmates.results.columns.study import frame
from castmates.study.model import ControlKind, Study
from castmates.study.planning import design_of
from castmates.study.scenes import scenes_of
from castmates.study.spec import PROTOCOL, Cohort, Control, Launch, Member, Mix, Plan

DESIGN = design_of(Study(name="example"))
LEFT = 0.1  # of what being frozen costs in the next window, in the one after that

# (launch, round, scene, member) -> rate, None for a rejected window, "" for no window at all
Rate = Callable[[Launch, int, str, str], float | str | None]


def member(name, role="antagonist"):
    workload, _, cpus = name.partition("@")
    return Member(
        name=name,
        workload=workload,
        role=role,
        cpus=tuple(map(int, cpus.split("."))),
        nodes=(),
        command=(workload,),
        environment=None,
        environment_key=None,
        content="",
        progress="heartbeat",
        unit="step",
        variables={},
        ready_within=1,
    )


def mix(lead: str, *antagonists: str, identity: str = "") -> Mix:
    name = "+".join(one.partition("@")[0] for one in (lead, *antagonists))
    return Mix(name=name, identity=identity or f"{lead}+{'+'.join(antagonists)}", lead=lead, antagonists=antagonists)


def cohort(name: str, *mixes: Mix) -> Cohort:
    antagonists = dict.fromkeys(one for each in mixes for one in each.antagonists)
    members = {one.name: one for one in [member(mixes[0].lead, "lead"), *map(member, antagonists)]}
    return Cohort(
        id=name,
        protocol=PROTOCOL,
        native_key="",
        members=tuple(members.values()),
        mixes=mixes,
        scenes=scenes_of(mixes, members),
    )


def plan(
    cohorts: Sequence[Cohort], launches: int, mixes: Sequence[Mix] = (), controls: Mapping[ControlKind, Mix] = {}
) -> Plan:
    """`mixes` are the active ones; all of the cohorts' that are no control if left out."""
    results = tuple(one for each in cohorts for one in each.mixes if one not in controls.values())
    return Plan(
        study="example",
        titles={},
        mixes=tuple(mixes) or results,
        controls=tuple(Control(kind=kind, mix=one) for kind, one in controls.items()),
        launches=tuple(
            Launch(study="example", cohort=each, number=number, seed=number, design=DESIGN)
            for each in cohorts
            for number in range(1, launches + 1)
        ),
    )


def written(plan: Plan, rate: Rate, rounds: int = 3, platform: str = "measured") -> pd.DataFrame:
    """Every window of the plan with the rate that this function gives it."""
    rows = []
    for launch in plan.launches:
        members = {one.name: one for one in launch.cohort.members}
        for number in range(1, rounds + 1):
            for position, scene in enumerate(launch.cohort.scenes, start=1):
                for name in scene.active:
                    value = rate(launch, number, scene.name, name)
                    if value == "":
                        continue
                    rows.append(
                        {
                            "study": plan.study,
                            "cohort": launch.cohort.id,
                            "launch": launch.number,
                            "round": number,
                            "position": position,
                            "window": (number - 1) * len(launch.cohort.scenes) + position,
                            "scene": scene.name,
                            "kind": scene.kind,
                            "mix": scene.mix,
                            "partition": scene.partition,
                            "member": name,
                            "workload": members[name].workload,
                            "role": members[name].role,
                            "unit": "step",
                            "open_ns": 0,
                            "close_ns": 10**9,
                            "beats": 10,
                            "units": 10.0,
                            "rate": 1.0 if value is None else value,
                            "valid": value is not None,
                            "reasons": "stolen time" if value is None else "",
                            "reason_kinds": "steal" if value is None else "",
                            "blamed": "",
                            "platform": platform,
                        }
                        | one_slice(value is not None)
                    )
    return frame(rows, WINDOWS)


def one_slice(valid):
    """What a window holds of its slices where it has one, of a second; `valid` may be a column."""
    return {
        "slices": 1,
        "slices_rejected": 1 - 1 * valid,
        "slices_dropped": 0,
        "open_s": 1.0,
        "progress_s": 1.0,
        "later": 1.0,
        "lead_in_passes": 1,
        "not_steady": False,
    }


def slices_of(windows: pd.DataFrame) -> pd.DataFrame:
    """The slices of windows that have one each, all in one stretch: what is a round there is a cycle here."""
    one = {"round": 1, "stretch": 1, "cycle": windows["round"], "slice": windows["window"]}
    seen = {"switch_ns": windows["switch_ns"].fillna(windows["open_ns"]), "watched": True, "counted": windows["valid"]}
    one |= {"length_s": 1.0, "steady_s": 0.0}
    return windows.assign(**one, **seen)[list(SLICES)].astype(dict(SLICES))


@dataclass(frozen=True)
class Truth:
    """How a simulated machine behaves; all in log units, so 0.02 is 2 %."""

    launch: float  # sd between launches, common to all scenes of a launch
    interaction: float  # sd between launches of what a scene does to a member
    noise: float  # sd between windows
    walk: float = 0.002  # sd of a step of the random walk, a step per window
    trend: float = 0.05  # from the campaign's first window to its last
    rejected: float = 0.0  # share of windows
    corun: float = 0.10  # what the co-run costs: log rate(alone) - log rate(corun)
    placebo: float = 0.03  # what the placebo costs
    carryover: float = 0.0  # what a member loses in a window after one in which it was frozen


@dataclass(frozen=True)
class Campaigns:
    """Many independent studies of one mix side by side, as one plan and one table."""

    plan: Plan
    windows: pd.DataFrame
    alone_here: np.ndarray  # by study: the loss against alone of exactly these launches


def simulated(truth: Truth, studies: int, launches: int, rounds: int, seed: int) -> Campaigns:
    """Each study is a separate campaign: launches one after another, fresh random scene order in each round."""
    rng = np.random.default_rng(seed)
    cohorts = [cohort(f"c{number:05d}", mix(f"lead{number:05d}@0", "stream@1")) for number in range(studies)]
    made = plan(cohorts, launches)
    scenes = cohorts[0].scenes
    shape = (studies, launches, rounds, len(scenes))
    position = rng.random(shape).argsort(axis=3).argsort(axis=3)
    drift = _drift(truth, rng, shape, position)
    launch = rng.normal(0, truth.launch, (studies, launches, 1, 1))
    # Alone is where the others start from; its twin is the same condition and so has no interaction either.
    cost = {"alone": 0.0, "alone-again": 0.0, "placebo:1": truth.placebo, "antagonist-alone:stream@1": 0.0}
    moved = rng.normal(0, truth.interaction, (*shape[:2], len(scenes)))
    moved[:, :, [name.name in ("alone", "alone-again") for name in scenes]] = 0.0
    loss = moved + [cost.get(scene.name, truth.corun) for scene in scenes]
    valid = rng.random(shape) >= truth.rejected
    tables = []
    for role, index in (("lead", 0), ("antagonist", 1)):
        active = [number for number, scene in enumerate(scenes) if cohorts[0].members[index].name in scene.active]
        name = cohorts[0].members[index].name
        cold = truth.carryover * _cold([name in scene.active for scene in scenes], position)
        log_rate = launch - loss[:, :, None, :] + drift - cold + rng.normal(0, truth.noise, shape)
        tables.append(_table(cohorts, scenes, active, role, index, position, log_rate, valid))
    corun = [scene.kind for scene in scenes].index("corun")
    return Campaigns(made, pd.concat(tables, ignore_index=True), loss[:, :, corun].mean(axis=1))


def _drift(truth, rng, shape, position):
    """Random walk and trend by the time at which each window was opened."""
    studies, launches, rounds, scenes = shape
    length = launches * rounds * scenes
    by_time = rng.normal(0, truth.walk, (studies, length)).cumsum(axis=1) - np.linspace(0, truth.trend, length)
    return np.take_along_axis(by_time.reshape(shape), position, axis=3)


def _cold(runs, position):
    """How cold a member's caches are in each window: wholly after it was frozen, less in each window that it ran since.

    As measured: of 7 % that a frozen DLRM lost, a tenth and less was left a slice later. A launch begins warm.
    """
    studies, launches, rounds, count = position.shape
    by_time = np.array(runs)[position.argsort(axis=3)].reshape(studies, launches, rounds * count)
    cold = np.zeros(by_time.shape)
    for place in range(1, rounds * count):
        cold[..., place] = np.where(by_time[..., place - 1], LEFT * cold[..., place - 1], 1.0)
    return np.take_along_axis(cold.reshape(position.shape), position, axis=3)


def _table(cohorts, scenes, active, role, index, position, log_rate, valid):
    studies, launches, rounds, _ = log_rate.shape
    where = np.indices((studies, launches, rounds, len(active))).reshape(4, -1)
    study, launch, number = where[0], where[1], where[2]
    scene = np.array(active)[where[3]]
    at = (study, launch, number, scene)
    members = [each.members[index] for each in cohorts]
    table = pd.DataFrame(
        {
            "study": "example",
            "cohort": np.array([each.id for each in cohorts], dtype=object)[study],
            "launch": launch + 1,
            "round": number + 1,
            "position": position[at] + 1,
            "window": number * len(scenes) + position[at] + 1,
            "scene": np.array([_here(each.name) for each in scenes], dtype=object)[scene],
            "kind": np.array([each.kind for each in scenes], dtype=object)[scene],
            "mix": "",
            "partition": scenes[0].partition,
            "member": np.array([each.name for each in members], dtype=object)[study],
            "workload": np.array([each.workload for each in members], dtype=object)[study],
            "role": role,
            "unit": "step",
            "open_ns": 0,
            "close_ns": 10**9,
            "first_ns": pd.NA,
            "last_ns": pd.NA,
            "beats": 10,
            "units": 10.0,
            "rate": np.exp(log_rate[at]),
            "valid": valid[at],
            "reasons": np.where(valid[at], "", "stolen time"),
            "reason_kinds": np.where(valid[at], "", "steal"),
            "blamed": "",
            "platform": "measured",
        }
        | one_slice(valid[at])
    )
    corun = table["kind"] == "corun"
    table.loc[corun, "mix"] = table["cohort"].map({each.id: each.mixes[0].name for each in cohorts})
    table.loc[corun, "scene"] = "corun:" + table["mix"]
    return table.reindex(columns=list(WINDOWS)).astype(dict(WINDOWS))


def _here(name: str) -> str:
    """The co-run scenes are named after their own mix, later."""
    return "" if name.startswith("corun:") else name
