"""A loss that still grows within slices is marked, and where none grows hardly any is."""

import math

import numpy as np
import pytest

from castmates.analysis.effects.effects import Growth, pooled_growth
from castmates.report.text.health import growth_sentence, later_sentence
from castmates.results.columns.study import EFFECTS, frame
from tests.unit.printed_intervals import assert_told
from tests.unit.test_effects import LEAD, ONE, effects, row, simple
from tests.unit.windows_maker import cohort, mix, plan, written

MANY = plan([cohort(f"c-{number}", mix(LEAD, f"beside{number}@1")) for number in range(12)], launches=6)


def grown(of, growth, spread=0.02, seed=1):
    """Windows whose later halves are slower beside others by `growth`, and scatter around that."""
    windows, rng = written(of, simple), np.random.default_rng(seed)
    beside = windows["scene"].str.startswith("corun")
    logs = rng.normal(0, spread, len(windows)) - np.where(beside, growth, 0.0)
    return windows.assign(later=np.exp(logs))


def test_the_slowdown_of_later_halves_over_that_of_earlier_ones():
    found = row(effects(grown(ONE, 0.05, spread=0.0)), "alone")
    assert found[["growth_pct", "growth_low", "growth_high"]].tolist() == pytest.approx([100 * math.expm1(0.05)] * 3)


@pytest.mark.parametrize(("growth", "expected"), [(0.05, True), (-0.05, False), (0.004, False)])
def test_growth_is_marked_where_it_is_certain_and_matters(growth, expected):
    found = effects(grown(MANY, growth, spread=0.01), MANY)
    leads = found[found["role"] == "lead"]
    assert set(leads["still_growing"]) == {expected}
    assert bool(growth_sentence(leads.to_dict("records"))) == expected


def test_the_interval_covers_the_growth():
    """The later halves of a launch may lose more than those of another."""
    studies = plan([cohort(f"c-{number}", mix(LEAD, f"beside{number}@1")) for number in range(400)], launches=6)
    windows, rng = grown(studies, 0.05), np.random.default_rng(7)
    launches = windows.groupby(["cohort", "launch"]).ngroup().to_numpy()
    beside = windows["scene"].str.startswith("corun")
    of_launch = np.where(beside, rng.normal(0, 0.02, launches.max() + 1)[launches], 0.0)
    found = effects(windows.assign(later=windows["later"] * np.exp(of_launch)), studies)
    found = found[(found["role"] == "lead") & (found["baseline"] == "alone")]
    true = 100 * math.expm1(0.05)
    assert_told("effects", "growth_low", ((found["growth_low"] < true) & (true < found["growth_high"])).mean())


def test_hardly_anything_is_marked_where_nothing_grows():
    """36 rows a study, adjusted together: one study in twenty may have a mark."""
    marked = [effects(grown(MANY, 0.0, seed=seed), MANY)["still_growing"].any() for seed in range(20)]
    assert sum(marked) <= 4


def test_without_windows_nothing_is_marked():
    table = effects(frame([], {**EFFECTS, **written(ONE, simple).dtypes.to_dict()}))
    assert not table["still_growing"].any()


def test_all_losses_together_show_a_growth_that_no_row_shows():
    windows = grown(MANY, 0.008, spread=0.02)
    assert not effects(windows, MANY)["still_growing"].any()
    (found,) = pooled_growth(MANY, windows)
    assert found.launches == 72
    assert 0 < found.low < 100 * math.expm1(0.008) < found.high
    assert found.bias == pytest.approx(found.high / 2)


def test_the_interval_of_all_losses_together_covers_their_growth():
    """Launches differ, and the losses of a launch share its `alone` scene: neither rows nor rounds are units."""
    study = plan([cohort("c", *(mix(LEAD, f"beside{number}@1") for number in range(3)))], launches=5)
    one, rng, studies = grown(study, 0.0), np.random.default_rng(11), 1000
    beside, alone = one["scene"].str.startswith("corun"), one["scene"] == "alone"
    launches, rounds = one["launch"].to_numpy() - 1, one.groupby(["launch", "round"]).ngroup().to_numpy()
    of_launch = rng.normal(-0.02, 0.02, (studies, 5))[:, launches]
    of_alone = rng.normal(0, 0.02, (studies, rounds.max() + 1))[:, rounds]
    logs = np.where(beside, of_launch, 0.0) + np.where(alone, of_alone, 0.0) + rng.normal(0, 0.01, (studies, len(one)))
    windows = one.loc[one.index.repeat(studies)].assign(
        platform=np.tile([f"{number:04d}" for number in range(studies)], len(one)), later=np.exp(logs.T.ravel())
    )
    found, true = pooled_growth(study, windows), 100 * math.expm1(0.02)
    assert len(found) == studies
    assert_told("health page", "low", float(np.mean([each.low < true < each.high for each in found])))


def test_fewer_than_three_launches_show_no_growth_of_all_losses_together():
    few = plan([cohort("c", mix(LEAD, "beside@1"))], launches=2)
    assert pooled_growth(few, grown(few, 0.05)) == []
    assert later_sentence([]) == ""


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.3, 1.4, "may be up to about 0.7 points too small"), (-1.4, -0.2, "Losses do not grow")],
)
def test_the_upper_end_is_the_possible_bias(low, high, words):
    sentence = later_sentence([Growth("measured", 12, (low + high) / 2, low, high)])
    assert words in sentence
    assert "12 launches" in sentence
