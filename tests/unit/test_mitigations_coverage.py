"""Do the intervals of mitigations and distances hold the truth as often as they claim, also for a mask that is chosen?

The worst case for the choice is that of masks which are all worth the same: whichever looks best does so by luck.
"""

import math
from functools import cache

import numpy as np
import pytest

from castmates.analysis.effects.distances import estimate_distances
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.partitions.mitigations import estimate_mitigations
from castmates.study.spec import Mitigation
from tests.unit import windows_maker
from tests.unit.partition_maker import split, under
from tests.unit.printed_intervals import assert_told

pytestmark = pytest.mark.simulation
STUDIES, SEED, LAUNCHES = 400, 20261123, 6
SCENE, WINDOW = 0.015, 0.01  # standard deviations, in log terms
TRUE = {"loss": 0.1, "gain": 0.2, "others_loss": 0.25, "cost": 0.05}
PLACES = {"smt": 0.3, "core": 0.2, "socket": 0.05}


def _rates(lost):
    """Rates that lose this much, with noise between launches and windows."""
    rng = np.random.default_rng(SEED)
    moved = {}

    def rate(launch, number, scene, member):
        place = (launch.path, scene, member)
        luck = moved.setdefault(place, rng.normal(0, SCENE))
        return 100 * math.exp(-lost(scene, member) + luck + rng.normal(0, WINDOW))

    return rate


@cache
def mitigated():
    cohorts, against = [], []
    for number in range(STUDIES):
        base = windows_maker.mix(f"x{number}@0", f"a{number}@1")
        parts = [split(ways, base.lead, base.antagonists[0]) for ways in (2, 4, 6, 8)]
        cohorts.append(windows_maker.cohort(f"c{number}", base, *(under(base, part) for part in parts)))
        arms = tuple((base.name, part.name) for part in parts)
        against.append(Mitigation(mix=base.name, kind="ways", arms=arms))
    plan = windows_maker.plan(cohorts, LAUNCHES).model_copy(update={"mitigations": tuple(against)})

    def lost(scene, member):
        if not scene.startswith("corun"):
            return 0.0
        managed = "@split" in scene
        return (0.1 if managed else 0.3) if member.startswith("x") else (0.25 if managed else 0.2)

    table = estimate_mitigations(plan, windows_maker.written(plan, _rates(lost), rounds=2), 0.02)
    return table[table["mitigation"] == "ways"]


def _true(quantity):
    return 100 * (math.expm1(TRUE[quantity]) if quantity == "gain" else -math.expm1(-TRUE[quantity]))


@pytest.mark.parametrize("quantity", TRUE)
def test_the_intervals_of_a_chosen_mask_hold_the_truth(quantity):
    table, true = mitigated(), _true(quantity)
    assert (table["launches"] + table["launches_choosing"] == LAUNCHES).all()
    held = (table[f"{quantity}_low"] <= true) & (true <= table[f"{quantity}_high"])
    assert_told("mitigations", f"{quantity}_low", held.mean())


@cache
def distant():
    cohorts = []
    for number in range(STUDIES):
        mixes = [windows_maker.mix(f"x{number}@0", f"a{number}@{cpu}") for cpu in (1, 2, 3)]
        named = [mix.model_copy(update={"name": f"{mix.name}:{at}"}) for mix, at in zip(mixes, PLACES, strict=True)]
        cohorts.append(windows_maker.cohort(f"c{number}", *named))
    plan = windows_maker.plan(cohorts, LAUNCHES)

    def lost(scene, member):
        return PLACES[scene.rpartition(":")[2]] if scene.startswith("corun") and member.startswith("x") else 0.0

    table = windows_maker.written(plan, _rates(lost), rounds=2)
    return estimate_distances(plan, table, estimate_effects(plan, table, margin=0.02))


def test_the_intervals_of_a_step_away_hold_the_truth():
    table = distant()
    steps = {"core": 0.1, "socket": 0.15}
    true = 100 * np.expm1(table["distance"].map(steps))
    known = true.notna()
    held = (table["gain_low"] <= true) & (true <= table["gain_high"])
    assert_told("distances", "gain_low", held[known].mean())


def test_the_losses_by_distance_hold_the_truth():
    table = distant()
    slowdown = np.exp(table["distance"].map(PLACES))
    assert_told(
        "distances", "slowdown_low", ((table["slowdown_low"] <= slowdown) & (slowdown <= table["slowdown_high"])).mean()
    )
    loss = 100 * (1 - 1 / slowdown)
    assert_told("distances", "loss_low", ((table["loss_low"] <= loss) & (loss <= table["loss_high"])).mean())
