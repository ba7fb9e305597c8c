"""The benchmarks' own arithmetic: a wrong one would flatter us, and nobody would see it."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks import dial, job_heartbeat, kernel_peers, precision, usual
from benchmarks.common import Report
from benchmarks.launch_parts import Clock
from benchmarks.precision import Apart, Mean, Paired
from benchmarks.usual import rate_between
from castmates.errors import CastmatesError

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


def test_a_ratio_of_variances_is_as_uncertain_as_its_launches_are_few():
    rng = np.random.default_rng(9)
    ratio, low, high = precision.variance_ratio(rng.normal(0, 3, 7), rng.normal(0, 2, 7))
    assert (ratio / low, high / ratio) == pytest.approx((5.82, 5.82), abs=0.01)
    found = [precision.variance_ratio(rng.normal(0, 2, 4), rng.normal(0, 1, 6)) for _ in range(2000)]
    assert np.mean([low <= 4 <= high for _, low, high in found]) == pytest.approx(0.95, abs=0.015)


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


def test_a_jobs_loss_is_found_through_stretches_that_were_struck():
    """A true cost of 0.1 % among noise of 2 %, with one stretch in ten struck hard on either side."""
    rng = np.random.default_rng(2)
    losses = rng.normal(0.001, 0.02, (1000, 500))
    losses += np.where(rng.random(losses.shape) < 0.1, rng.normal(0, 0.5, losses.shape), 0)
    found = [job_heartbeat.trimmed(one) for one in losses]
    inside = np.mean([abs(one.value - 0.1) < one.half_width for one in found])
    assert 0.93 < inside < 0.97
    assert np.mean([one.half_width for one in found]) < 1.96 * 100 * losses.std() / np.sqrt(500) / 3


def test_a_jobs_launches_are_the_sample_and_not_their_pairs():
    """Three launches of 1,000 pairs whose own levels differ by 0.6 %: pooled pairs would claim to know it to 0.1 %."""
    rng = np.random.default_rng(4)
    launches = [rng.normal(level / 100, 0.01, 1000) for level in (-0.007, 1.144, 0.824)]
    for finding in job_heartbeat.findings("its phases marked", launches):
        assert (finding.count, finding.of) == (3, "launches")
        assert finding.verdict == "unresolved"
        assert finding.high - finding.low > 2


@pytest.mark.parametrize("cost", [0.1, 0.0])
def test_a_cost_in_one_pair_of_ten_is_not_trimmed_away(cost):
    rng = np.random.default_rng(3)
    launches = rng.normal(0, 0.005, (8, 2000))
    launches[:, :200] += rng.exponential(cost, (8, 200)) if cost else 0
    found = job_heartbeat.findings("a heartbeat", list(launches))
    assert [one.verdict for one in found] == ["met", "missed" if cost else "met"]


@pytest.mark.parametrize("count", range(5))
def test_too_few_pairs_of_a_job_are_an_error_of_one_sentence(count):
    for mean in (job_heartbeat.trimmed, job_heartbeat.untrimmed):
        with pytest.raises(CastmatesError, match=f"pairs of stretches: {count} in a launch, at least 5"):
            mean(np.zeros(count))


def latencies(ours, peer=()):
    return {
        ("chase", size): {"ours": np.repeat(ours, 2).tolist(), "lat_mem_rd": list(peer)}
        for size in kernel_peers.CHASE_SIZES
    }


@pytest.mark.parametrize(
    ("found", "verdicts"),
    [
        (latencies([1.0]), []),
        (latencies([1.0], [1.0]), ["one run, no verdict"] * 3),
        (latencies([1.0, 1.01, 1.0], [1.0, 1.0, 1.01]), ["met"] * 3),
        (latencies([1.1, 1.11, 1.1], [1.0, 1.0, 1.01]), ["missed"] * 3),
        (latencies([1.1, 0.9, 1.1], [1.0, 1.0, 1.01]), ["unresolved"] * 3),
    ],
)
def test_an_aim_beside_peers_is_judged_only_where_there_is_one_and_over_rounds(found, verdicts):
    report = Report("Peers", "kernel_peers")
    kernel_peers.describe_latencies(report, found)
    assert [one.verdict for one in report.run().findings if one.aim] == verdicts


def test_bandwidths_are_compared_with_the_best_peer_there_is():
    found = {
        ("copy", "L1"): {"ours": [9.0, 9.1, 9.0], "copy_avx": [9.1, 9.0, 9.0], "copy_sse": [5.0] * 3},
        ("copy", "L2"): {"ours": [8.0, 8.1, 8.0], "copy_avx": [9.0] * 3, "stress-ng stream": [20.0]},
        ("copy", "L3"): {"ours": [8.0] * 3},
    }
    report = Report("Peers", "kernel_peers")
    kernel_peers.describe_rates(report, found)
    found_by = {one.what: one.verdict for one in report.run().findings}
    assert found_by == {"copy in L1, of copy_avx": "met", "copy in L2, of copy_avx": "missed"}


def dial_of(ratios):
    return dial.Dial("chase", ["chase"], [1e9] * len(ratios), {0.4: ratios})


@pytest.mark.parametrize(
    ("ratios", "verdicts", "over"),
    [
        ([1.0, 0.995, 1.005], ["met"], ""),
        ([1.0, 1.0, 0.9], ["unresolved"], "1 of 3, at chase at 40 % (10.0 % at worst)"),
        ([0.9, 0.91, 0.9], ["missed"], "3 of 3, at chase at 40 % (10.0 % at worst)"),
        ([1.0], ["one run, no verdict"], ""),
        ([], [], ""),
    ],
)
def test_a_dial_is_judged_by_its_worst_hold_over_rounds(ratios, verdicts, over):
    assert [one.verdict for one in dial.findings([dial_of(ratios)])] == verdicts
    assert dial.single_misses([dial_of(ratios)]) == over


@pytest.mark.parametrize(("seconds", "kept"), [(1.0, 1), (10.0, 0)])
def test_a_round_of_a_dial_that_outlives_its_minute_is_dropped(monkeypatch, seconds, kept):
    now, one = [0.0], dial.Dial("chase", ["chase"])

    def measure(command):
        now[0] += seconds
        return 1000.0 if "--rate" not in command else float(command[-1])

    monkeypatch.setattr(dial.time, "monotonic", lambda: now[0])
    dial._round(one, random.Random(1), measure)
    assert [len(one.highest), *map(len, one.held.values())] == [kept] * (1 + len(dial.SHARES))
    assert one.dropped == 1 - kept


def test_the_clock_counts_what_lies_in_another_part_there_alone(monkeypatch):
    """An outer part of 2 + 4 s, with an inner one of 3 s that is met a second time by itself."""
    now = [0.0]
    monkeypatch.setattr("benchmarks.launch_parts.time.monotonic", lambda: now[0])
    monkeypatch.setattr("benchmarks.launch_parts.time.process_time", lambda: now[0] / 10)
    clock = Clock()

    def passes(seconds):
        now[0] += seconds

    with clock.during("outer"):
        passes(2)
        with clock.during("inner"):
            passes(3)
        passes(4)
    with clock.during("inner"):
        passes(5)
    assert clock.parts == {"outer": (6.0, pytest.approx(0.6)), "inner": (8.0, pytest.approx(0.8))}
