"""Does the scene before leave a trace? The rate of a member's slice, by whether it was frozen just before.

Cycles, scenes and launches are taken out first; `docs/methodology.md` has the model.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.core import adjusted
from castmates.analysis.effects.verdicts import NEVER_FROZEN, carryover_verdicts
from castmates.analysis.keys import LAUNCH, ROUND
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, Floats, quantile, two_sided
from castmates.analysis.statistics.pairs import planned
from castmates.results.columns.study import CARRYOVER, frame
from castmates.study.class_names import workload_of
from castmates.study.schedule import stretch_of
from castmates.study.spec import Plan

POWER = 0.8  # of finding a change of the detectable size
LEAST_INFORMATION = 1e-6  # a launch has less where its cycles and scenes alone determine what ran before
MOST_TURNS, SMALLEST_TURN = 1000, 1e-12

_MEMBER = ["platform", "role", "member"]
_NOTHING: dict[str, Any] = {"launches": 0, "windows": 0, "windows_after_frozen": 0}


def estimate_carryover(plan: Plan, slices: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """A row per platform, role and member: how its rate differs where it was frozen in the slice just before.

    `slices` are the launches' tables, some whole launches at a time.
    """
    frozen = _frozen(plan)
    platforms, slopes = set[str](), list[pd.DataFrame]()
    for own in (planned(part, plan) for part in slices):
        platforms |= set(own["platform"])
        slopes += [_slopes(_after(own, frozen))] if len(own) else []
    known = pd.concat(slopes) if slopes else frame([], dict.fromkeys(_MEMBER, "str"))
    estimates = {key: _combined(launches) for key, launches in known.groupby(_MEMBER)}
    rows = [
        {"study": plan.study, "machine": plan.machine, "platform": platform, "role": role, "member": member}
        | {"workload": workload_of(member)}
        | estimates.get((platform, role, member), _NOTHING)
        for platform in sorted(platforms) or [""]
        for role, member in _members(plan)
    ]
    table = frame(rows, {**CARRYOVER, "verdict": "object", "p_holm": "float64"})
    table["p_holm"] = adjusted(table, "platform", "role")
    table["verdict"] = carryover_verdicts(table)
    table.loc[~table["member"].isin(frozen["member"]), "verdict"] = NEVER_FROZEN
    return table.astype(dict(CARRYOVER))


def _members(plan: Plan) -> list[tuple[str, str]]:
    """Role and name of everyone, leads first."""
    everyone = [(member.role, member.name) for launch in plan.launches for member in launch.cohort.members]
    return sorted(dict.fromkeys(everyone), key=lambda member: member[0] != "lead")


def _frozen(plan: Plan) -> pd.DataFrame:
    """Whether each scene of a cohort freezes a member, of those that some scene of the same stretch freezes.

    Where none does, as under a partition none freezes the lead, slices show nothing of it.
    """
    rows = list[tuple[str, str, str, float]]()
    for cohort in plan.cohorts:
        stretch = stretch_of(cohort)
        places = [(stretch[scene.name], scene, one.name) for scene, one in product(cohort.scenes, cohort.members)]
        freezing = {(number, name) for number, scene, name in places if name not in scene.active}
        rows += [
            (cohort.id, scene.name, name, float(name not in scene.active))
            for number, scene, name in places
            if (number, name) in freezing
        ]
    return pd.DataFrame(rows, columns=["cohort", "before", "member", "frozen"])


def _after(slices: pd.DataFrame, frozen: pd.DataFrame) -> pd.DataFrame:
    """The usable rates of slices that have one before them in their stretch, and whether one was frozen in that."""
    stretch = ["platform", *ROUND, "stretch"]
    places = slices[[*stretch, "slice", "scene"]].drop_duplicates().rename(columns={"scene": "before"})
    usable = slices[slices["counted"] & (slices["rate"] > 0)]
    rates = usable.assign(log_rate=np.log(usable["rate"]))
    rates = rates.merge(places.assign(slice=places["slice"] + 1), on=[*stretch, "slice"])
    return rates.merge(frozen, on=["cohort", "before", "member"])


def _slopes(rates: pd.DataFrame) -> pd.DataFrame:
    """Of each member in each launch: the change of the log rate, and how much the launch knows of it."""
    launch = rates.groupby([*_MEMBER, *LAUNCH], observed=True, sort=False).ngroup().to_numpy()
    cycle, scene = ["round", "stretch", "cycle"], ["scene"]
    sides = [
        pd.factorize(pd.MultiIndex.from_arrays([launch, *(rates[name] for name in names)]))[0]
        for names in (cycle, scene)
    ]
    frozen, log_rate = (_without_means(rates[name].to_numpy(dtype=float), sides) for name in ("frozen", "log_rate"))
    table = rates[_MEMBER].assign(
        launch=launch, squares=frozen**2, products=frozen * log_rate, windows=1, windows_after_frozen=rates["frozen"]
    )
    launches = table.groupby([*_MEMBER, "launch"], observed=True, sort=False).sum().reset_index()
    launches = launches[launches["squares"] > LEAST_INFORMATION]
    return launches.assign(slope=launches["products"] / launches["squares"])


def _without_means(values: Floats, sides: Sequence[npt.NDArray[np.intp]]) -> Floats:
    """What is left when the means of both sides (a launch's cycles, its scenes) are taken out, in turn, to the end."""
    sizes = [np.bincount(side) for side in sides]
    for _ in range(MOST_TURNS if len(values) else 0):
        before = values
        for side, size in zip(sides, sizes, strict=True):
            values = values - (np.bincount(side, weights=values) / size)[side]
        if np.abs(values - before).max() < SMALLEST_TURN:
            break
    return values


def _combined(launches: pd.DataFrame) -> dict[str, Any]:
    """The launches' slopes, each weighted by what its launch knows: a t interval with the launches as units."""
    counts = {"launches": len(launches)} | {name: launches[name].sum() for name in ("windows", "windows_after_frozen")}
    if len(launches) < FEWEST_LAUNCHES:
        return counts
    slope, weight = launches["slope"].to_numpy(), launches["squares"].to_numpy()
    freedom = np.array([len(launches) - 1.0])
    mean = np.average(slope, weights=weight)
    error = np.sqrt(np.sum(weight * (slope - mean) ** 2) / freedom / weight.sum())
    reach = quantile(freedom)
    low, high = mean - reach * error, mean + reach * error
    return counts | {
        "change_pct": _per_cent(mean),
        "change_low": _per_cent(low[0]),
        "change_high": _per_cent(high[0]),
        "detectable_pct": _per_cent(((reach + quantile(freedom, POWER)) * error)[0]),
        "p_value": two_sided(np.array([mean]), error, freedom)[0],
    }


def _per_cent(log: float) -> float:
    return float(100 * np.expm1(log))
