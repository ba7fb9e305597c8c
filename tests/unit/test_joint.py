"""The mean that two groups of launches share: exact quantiles, limits, and whether its interval holds the truth."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castmates.analysis.comparison.comparison import Side, compare
from castmates.analysis.comparison.replay import factor, joint, replayed
from tests.unit.printed_intervals import assert_told
from tests.unit.test_coverage import covers
from tests.unit.windows_maker import Truth, simulated


def group(values):
    return pd.DataFrame({"mean": [np.mean(values)], "error": [stats.sem(values)], "launches": [len(values)]})


@pytest.mark.parametrize(("first", "second"), [(2, 2), (2, 7), (9, 2), (4, 4)])
def test_the_quantile_is_that_of_the_weighted_sum_of_two_ts(first, second):
    rng, share = np.random.default_rng(1), first / (first + second)
    drawn = share * rng.standard_t(first, 400_000) + (1 - share) * rng.standard_t(second, 400_000)
    assert (np.abs(drawn) <= factor(first, second)).mean() == pytest.approx(0.95, abs=0.002)


def test_the_more_exact_side_weighs_more_and_both_are_inside():
    quiet, noisy = [0.100, 0.101, 0.099], [0.13, 0.05, 0.12, 0.10]
    found = joint(group(quiet), group(noisy)).iloc[0]
    assert abs(found["mean"] - 0.1) < 0.002
    swapped = joint(group(noisy), group(quiet)).iloc[0]
    assert swapped.to_numpy() == pytest.approx(found.to_numpy())
    moved = joint(group(np.array(quiet) + 1), group(np.array(noisy) + 1)).iloc[0]
    assert moved.to_numpy() == pytest.approx(found.to_numpy() + 1)


def test_two_launches_have_no_joint_interval_and_exact_launches_decide():
    assert joint(group([0.1, 0.2]), group([0.1, 0.2, 0.3])).isna().all(axis=None)
    exact = joint(group([0.1] * 3), group([0.1, 0.2, 0.3])).iloc[0]
    assert exact.to_numpy() == pytest.approx([0.1] * 3, abs=1e-9)
    assert joint(group([0.1] * 3), group([0.2] * 3)).isna().all(axis=None)


@pytest.mark.parametrize(("few", "many"), [(3, 3), (3, 8), (5, 5)])
@pytest.mark.simulation
def test_the_interval_of_both_together_holds_the_truth(few, many):
    """Simulated studies, through the very function: a quiet machine and a noisy one of which the truth is the same."""
    quiet = Truth(launch=0.02, interaction=0.015, noise=0.01)
    noisy = Truth(launch=0.03, interaction=0.04, noise=0.03, rejected=0.05)
    a, b = simulated(quiet, 800, few, 3, seed=51 + few), simulated(noisy, 800, many, 3, seed=52 + many)
    comparison = compare(Side(a.plan, a.windows), Side(b.plan, b.windows), 0.02)
    for baseline, own in comparison.groupby("baseline"):
        # One study is replayed at a time: over 800 of them Holm's adjustment would let none differ, as here.
        table = replayed(own.assign(p_value=np.nan), 0.02)
        lost = quiet.corun - (quiet.placebo if baseline == "placebo" else 0.0)
        for side in ("published", "here", "joint"):
            share = covers(table[f"{side}_slowdown_low"], table[f"{side}_slowdown_high"], math.exp(lost))
            assert 0.925 <= share <= 0.975, (baseline, side)
            assert_told("replay", f"{side}_slowdown_low", share)
        share = covers(table["ratio_low"], table["ratio_high"], 1.0)
        assert_told("replay", "ratio_low", share)
