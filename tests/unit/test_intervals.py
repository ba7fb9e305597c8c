"""The estimator against numbers worked out by hand, and what must hold for any numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from castmates.analysis.statistics.intervals import estimate, holm, more_than, widening


def pairs(launches):
    """{launch: differences} -> the table that `estimate` takes."""
    rows = [(0, "c", launch, value) for launch, values in launches.items() for value in values]
    return pd.DataFrame(rows, columns=["row", "cohort", "launch", "difference"])


def only(launches):
    return estimate(pairs(launches), by=["row"]).iloc[0]


def test_headline_by_hand():
    # Launch means 0.1, 0.2, 0.3; s = 0.1; t(0.975, 2) = 4.302653.
    found = only({1: [0.05, 0.15], 2: [0.2], 3: [0.3, 0.3, 0.3]})
    half = 4.302652729696142 * 0.1 / np.sqrt(3)
    assert found["mean"] == pytest.approx(0.2)
    assert (found["low"], found["high"]) == pytest.approx((0.2 - half, 0.2 + half))
    assert found["p_value"] == pytest.approx(stats.ttest_1samp([0.1, 0.2, 0.3], 0).pvalue)
    assert (found["launches"], found["rounds"]) == (3, 6)


def test_every_launch_weighs_the_same_however_many_rounds_it_has():
    assert only({1: [1.0] * 50, 2: [0.0], 3: [0.0]})["mean"] == pytest.approx(1 / 3)


def test_within_launch_by_hand_with_unequal_rounds():
    # Squares 0.005 + 0 + 0.02, freedom 1 + 0 + 2, shares 1/2 + 1 + 1/3; t(0.975, 3) = 3.182446.
    found = only({1: [0.05, 0.15], 2: [0.2], 3: [0.2, 0.4, 0.3]})
    half = 3.182446305284263 * np.sqrt(0.025 / 3 * (1 / 2 + 1 + 1 / 3)) / 3
    assert (found["within_low"], found["within_high"]) == pytest.approx((0.2 - half, 0.2 + half))


def test_within_launch_of_one_launch_is_the_ordinary_t_interval():
    values = [0.1, 0.13, 0.08, 0.11]
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    found = only({1: values})
    assert (found["within_low"], found["within_high"]) == pytest.approx((low, high))


def test_rounds_that_go_one_way_widen_the_interval_within_launch():
    # Squares 0.02 of freedom 2, half the squared steps 0.01: more alike than is believed, so 0.5. The mean of three
    # rounds then varies by 1 + 2 (2/3 0.5 + 1/3 0.25) of what independent ones would, and they vary inside by 1 - 5/12.
    half = 4.302652729696142 * np.sqrt(0.01 / 3 * (1 + 5 / 6) / (1 - 5 / 12))
    found = only({1: [0.1, 0.2, 0.3]})
    assert (found["within_low"], found["within_high"]) == pytest.approx((0.2 - half, 0.2 + half))


def test_rounds_are_taken_in_the_order_of_their_numbers():
    table = pairs({1: [0.1, 0.3, 0.2]}).assign(round=[1, 3, 2])
    ordered = estimate(table.sort_values("round"), by=["row"])
    pd.testing.assert_frame_equal(estimate(table, by=["row"]), ordered)
    assert ordered.iloc[0]["within_high"] > only({1: [0.1, 0.3, 0.2]})["within_high"]


def test_two_rounds_do_not_show_how_alike_they_are():
    found = only({1: [0.1, 0.2]})
    half = 12.706204736174694 * 0.05
    assert (found["within_low"], found["within_high"]) == pytest.approx((0.15 - half, 0.15 + half))


def test_the_widening_is_that_of_rounds_with_such_a_correlation():
    """From the covariances themselves, where a great many launches show them."""
    rounds, correlation = 5, 0.3
    apart = np.abs(np.subtract.outer(np.arange(rounds), np.arange(rounds)))
    covariance = correlation**apart
    of_mean = covariance.mean()
    inside = (np.trace(covariance) - rounds * of_mean) / (rounds - 1)
    launches = pd.DataFrame({"row": 0, "rounds": [rounds], "variance": inside, "successive": 1 - correlation})
    assert widening(launches, ["row"])[0] == pytest.approx(of_mean * rounds / inside, rel=0.02)


@pytest.mark.parametrize("launches", [{1: [0.1, 0.2]}, {1: [0.1, 0.2], 2: [0.3, 0.1]}])
def test_below_three_launches_there_is_no_headline_interval(launches):
    found = only(launches)
    assert np.isnan([found["low"], found["high"], found["p_value"]]).all()
    assert np.isfinite([found["mean"], found["within_low"], found["within_high"]]).all()


def test_single_rounds_leave_nothing_to_say_within_launch():
    found = only({1: [0.1], 2: [0.2], 3: [0.3]})
    assert np.isnan([found["within_low"], found["within_high"]]).all()
    assert np.isfinite(found["low"])


@pytest.mark.parametrize(("value", "p_value"), [(0.0, 1.0), (0.125, 0.0)])
def test_launches_that_agree_to_the_last_bit(value, p_value):
    found = only({1: [value], 2: [value], 3: [value]})
    assert found["p_value"] == p_value
    assert found["low"] == found["high"] == value


def test_groups_and_cohorts_stay_apart():
    rows = [(0, "c", 1, 0.0), (0, "d", 1, 0.2), (0, "d", 1, 0.4), (1, "c", 1, 7.0)]
    table = pd.DataFrame(rows, columns=["row", "cohort", "launch", "difference"])
    found = estimate(table, by=["row"])
    assert found.loc[0, "mean"] == pytest.approx(0.15)
    assert found.loc[0, "launches"] == 2
    assert found.loc[1, "mean"] == 7.0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_leaves_nan_out_of_the_count():
    assert holm([0.01, np.nan, 0.04])[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(holm([0.01, np.nan, 0.04])[1])
    assert holm([]).size == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_keeps_the_order_and_never_lowers(p_values):
    raw, adjusted = np.array(p_values), holm(p_values)
    assert (adjusted >= raw).all()
    assert (adjusted <= np.minimum(1, raw * len(raw))).all()
    assert (np.diff(adjusted[np.argsort(raw, kind="stable")]) >= 0).all()


@pytest.mark.parametrize("edge", [0.0, 0.1, 0.19, 0.5])
def test_above_an_edge_is_the_one_sided_t_test(edge):
    values = [0.1, 0.2, 0.3, 0.25]
    found = estimate(pairs({launch: [value] for launch, value in enumerate(values)}), by=["row"])
    wanted = stats.ttest_1samp(values, edge, alternative="greater").pvalue
    assert more_than(found, edge).tolist() == pytest.approx([wanted])


def test_above_an_edge_is_not_known_from_one_launch():
    assert more_than(estimate(pairs({1: [0.1, 0.2]}), by=["row"]), 0.0).isna().all()
