"""A loss that still grows within slices is marked, and where none grows hardly any is."""

import math

import numpy as np
import pytest

from castmates.report.text.health import growth_sentence
from castmates.results.columns.study import EFFECTS, frame
from tests.unit.printed_intervals import assert_told
from tests.unit.test_effects import LEAD, ONE, effects, row, simple
from tests.unit.windows_maker import company, mix, plan, written

MANY = plan([company(f"c-{number}", mix(LEAD, f"beside{number}@1")) for number in range(12)], blocks=6)


def grown(of, growth, spread=0.02, seed=1):
    """Windows whose later halves are slower beside others by `growth`, and scatter around that."""
    windows, rng = written(of, simple), np.random.default_rng(seed)
    beside = windows["scene"].str.startswith("corun")
    logs = rng.normal(0, spread, len(windows)) - np.where(beside, growth, 0.0)
    return windows.assign(later=np.exp(logs))


def test_the_slowdown_of_later_halves_over_that_of_earlier_ones():
    found = row(effects(grown(ONE, 0.05, spread=0.0)), "solo")
    assert found[["growth_pct", "growth_low", "growth_high"]].tolist() == pytest.approx([100 * math.expm1(0.05)] * 3)


@pytest.mark.parametrize(("growth", "expected"), [(0.05, True), (-0.05, False), (0.004, False)])
def test_growth_is_marked_where_it_is_certain_and_matters(growth, expected):
    found = effects(grown(MANY, growth, spread=0.01), MANY)
    leads = found[found["role"] == "lead"]
    assert set(leads["still_growing"]) == {expected}
    assert bool(growth_sentence(leads.to_dict("records"))) == expected


def test_the_interval_covers_the_growth():
    """The later halves of a launch may lose more than those of another."""
    studies = plan([company(f"c-{number}", mix(LEAD, f"beside{number}@1")) for number in range(400)], blocks=6)
    windows, rng = grown(studies, 0.05), np.random.default_rng(7)
    launches = windows.groupby(["company", "block"]).ngroup().to_numpy()
    beside = windows["scene"].str.startswith("corun")
    of_launch = np.where(beside, rng.normal(0, 0.02, launches.max() + 1)[launches], 0.0)
    found = effects(windows.assign(later=windows["later"] * np.exp(of_launch)), studies)
    found = found[(found["role"] == "lead") & (found["baseline"] == "solo")]
    true = 100 * math.expm1(0.05)
    assert_told("effects", "growth_low", ((found["growth_low"] < true) & (true < found["growth_high"])).mean())


def test_hardly_anything_is_marked_where_nothing_grows():
    """36 rows a study, adjusted together: one study in twenty may have a mark."""
    marked = [effects(grown(MANY, 0.0, seed=seed), MANY)["still_growing"].any() for seed in range(20)]
    assert sum(marked) <= 4


def test_without_windows_nothing_is_marked():
    table = effects(frame([], {**EFFECTS, **written(ONE, simple).dtypes.to_dict()}))
    assert not table["still_growing"].any()
