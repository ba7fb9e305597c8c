"""The benchmarks' own arithmetic: a wrong one would flatter us, and nobody would see it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks import precision, usual
from benchmarks.precision import Apart, Mean, Paired
from benchmarks.usual import rate_between

TARGET = 0.01
NS = 10**9
sizes = st.floats(1e-6, 10.0)


def t(freedom):
    return stats.t.ppf(0.975, freedom)


@settings(max_examples=40)
@given(sd=sizes, factor=st.floats(1.0, 2.0))
def test_the_units_needed_are_enough_and_one_fewer_is_not(sd, factor):
    units = float(precision.units_needed(np.array(sd**2), TARGET, factor))
    assert t(factor * (units - 1)) * sd / np.sqrt(units) <= TARGET
    assert units == 3 or t(factor * (units - 2)) * sd / np.sqrt(units - 1) > TARGET


def test_a_spread_of_one_per_cent_needs_seven_units_for_one_per_cent():
    assert precision.units_needed(np.array([1e-4, 0.0, 4e-4]), TARGET).tolist() == [7, 3, 18]


def test_all_mixes_are_measured_when_the_one_with_the_largest_spread_is():
    steady, wild = np.array([0.1, 0.101, 0.099, 0.1]), np.array([0.1, 0.13, 0.07, 0.1])
    way = Paired(np.stack([steady, wild], axis=1), np.array([10.0, 10.0, 20.0, 20.0]))
    few, many = way.needed(TARGET)[0]
    assert few < many
    assert way.seconds(TARGET)[0] == 15.0 * many


def test_alone_runs_are_paid_once_for_all_mixes():
    rng = np.random.default_rng(2)
    alone, one, other = rng.normal(0, 0.02, 8), rng.normal(-0.1, 0.02, 8), rng.normal(-0.2, 0.05, 6)
    way = Apart(alone, [one, other], np.full(8, 3.0), [np.full(8, 4.0), np.full(6, 5.0)])
    n = way.needed(TARGET)[0]
    assert way.seconds(TARGET)[0] == pytest.approx(3.0 * n.max() + 4.0 * n[0] + 5.0 * n[1])


@settings(max_examples=30)
@given(sds=st.tuples(st.floats(0.003, 0.1), st.floats(0.003, 0.1)), seed=st.integers(0, 99))
def test_with_the_runs_needed_welch_gives_the_wanted_half_width(sds, seed):
    alone, corun = (np.random.default_rng(seed).normal(0, sd, 6) for sd in sds)
    n = Apart(alone, [corun], np.ones(6), [np.ones(6)]).needed(TARGET)[0, 0]
    errors = [Mean(0, np.std(one, ddof=1) / np.sqrt(n), n - 1) for one in (alone, corun)]
    assert precision.minus(*errors).half_width <= TARGET * 1.000001


def test_the_intervals_are_those_of_scipy():
    rng = np.random.default_rng(3)
    one, other = rng.normal(0, 1, 9), rng.normal(0.5, 2, 6)
    ours = precision.minus(precision.mean_of(one), precision.mean_of(other))
    theirs = stats.ttest_ind(one, other, equal_var=False)
    low, high = theirs.confidence_interval()
    assert (ours.value - ours.half_width, ours.value + ours.half_width) == pytest.approx((low, high))
    assert ours.freedom == pytest.approx(theirs.df)


@pytest.mark.parametrize("count", [3, 12])
def test_the_interval_holds_the_seconds_of_the_true_spread_also_with_few_units(count):
    rng = np.random.default_rng(4)
    sd, held = 0.03, 0
    truth = float(precision.units_needed(np.array(sd**2), TARGET))
    for _ in range(200):
        way = Paired(rng.normal(0.1, sd, (count, 1)), np.ones(count))
        low, high = precision.interval(way.seconds(TARGET, rng, 400))
        held += low <= truth <= high
    assert 0.9 <= held / 200 <= 0.99


def test_points_are_per_cent_of_the_rate():
    assert precision.points(Mean(np.log(1.25), 0.0, 4)).value == pytest.approx(20.0)
    low, high = (100 * (1 - np.exp(-(0.2 + step))) for step in (-1e-4, 1e-4))
    assert precision.points(Mean(0.2, 1e-4, 4)).error == pytest.approx((high - low) / 2, rel=1e-3)


@settings(max_examples=60)
@given(value=st.floats(-3, 3), error=st.floats(0.01, 3), freedom=st.floats(1, 50))
def test_ways_agree_exactly_when_the_90_per_cent_interval_lies_within_the_margin(value, error, freedom):
    test = precision.equivalence(Mean(value, error, freedom), 1.0)
    half = stats.t.ppf(0.95, freedom) * error
    assert (test.verdict == "agree") == (value - half > -1 and value + half < 1)
    assert (test.verdict == "differ") == (value - half > 1 or value + half < -1)


def test_a_rate_is_of_the_heartbeats_inside_the_window_alone():
    records = [(number * NS, number * 10) for number in range(10)]
    assert rate_between(records, 2 * NS, 5 * NS) == pytest.approx(10.0)
    assert rate_between(records, 2 * NS - 1, 5 * NS + 1) == pytest.approx(10.0)
    assert np.isnan(rate_between(records, 2 * NS + 1, 3 * NS))


def test_the_usual_ways_window_closes_after_its_length_or_with_the_last_of_the_leads_steps():
    windows = usual.Windows((usual.Choice(0.5, 2.0),), steps=4, longest=6.0)
    every_second = [(number * NS, number) for number in range(20)]
    assert usual.closing(every_second, NS // 2, 2.0, windows) == 5 * NS  # beats at 1 to 5 are four steps
    assert usual.closing(every_second, NS // 2, 5.0, windows) == int(5.5 * NS)
    assert usual.closing(every_second[:3], NS // 2, 2.0, windows) == int(6.5 * NS)


def test_a_choice_costs_a_run_of_the_usual_way_only_the_seconds_until_its_window_closes():
    windows = usual.Windows((usual.Choice(0.5, 2.0), usual.Choice(1.0, 8.0)), steps=1, longest=6.0)
    recording = usual._Recording([(number * NS // 10, number) for number in range(100)], 0, 9 * NS, start_up=3.0)
    run = usual._evaluate(recording, whole=12.5, windows=windows)
    assert run.seconds == pytest.approx((6.0, 12.5))
    assert run.inside == pytest.approx((2.0, 8.0))
    assert run.rates == pytest.approx((10.0, 10.0))
