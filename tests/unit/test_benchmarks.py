"""The benchmarks' own arithmetic: a wrong one would flatter us, and nobody would see it."""

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks import dial, job_heartbeat, kernel_peers, perturbation, precision, resolution_report, usual
from benchmarks.common import Report
from benchmarks.launch_parts import Clock
from benchmarks.precision import Apart, Mean, Paired
from benchmarks.share import breakdown
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


def test_the_seconds_are_those_of_a_study_that_was_carried_out():
    """Needed units from a few blocks, on average over many trials, against the truth for the spread they come from."""
    rng = np.random.default_rng(1)
    sd, cost = 0.02, 12.0
    truth = cost * float(precision.units_needed(np.array(sd**2), TARGET))
    found = [Paired(rng.normal(0.1, sd, (10, 1)), np.full(10, cost)).seconds(TARGET)[0] for _ in range(120)]
    assert np.mean(found) == pytest.approx(truth, rel=0.12)


def test_all_mixes_are_measured_when_the_one_with_the_largest_spread_is():
    steady, wild = np.array([0.1, 0.101, 0.099, 0.1]), np.array([0.1, 0.13, 0.07, 0.1])
    way = Paired(np.stack([steady, wild], axis=1), np.array([10.0, 10.0, 20.0, 20.0]))
    few, many = way.needed(TARGET)[0]
    assert few < many
    assert way.seconds(TARGET)[0] == 15.0 * many


def test_solo_runs_are_paid_once_for_all_mixes():
    rng = np.random.default_rng(2)
    solo, one, other = rng.normal(0, 0.02, 8), rng.normal(-0.1, 0.02, 8), rng.normal(-0.2, 0.05, 6)
    way = Apart(solo, [one, other], np.full(8, 3.0), [np.full(8, 4.0), np.full(6, 5.0)])
    n = way.needed(TARGET)[0]
    assert way.seconds(TARGET)[0] == pytest.approx(3.0 * n.max() + 4.0 * n[0] + 5.0 * n[1])


@settings(max_examples=30)
@given(sds=st.tuples(st.floats(0.003, 0.1), st.floats(0.003, 0.1)), seed=st.integers(0, 99))
def test_with_the_runs_needed_welch_gives_the_wanted_half_width(sds, seed):
    solo, corun = (np.random.default_rng(seed).normal(0, sd, 6) for sd in sds)
    n = Apart(solo, [corun], np.ones(6), [np.ones(6)]).needed(TARGET)[0, 0]
    errors = [Mean(0, np.std(one, ddof=1) / np.sqrt(n), n - 1) for one in (solo, corun)]
    assert precision.minus(*errors).half_width <= TARGET * 1.000001


def test_the_intervals_are_those_of_scipy():
    rng = np.random.default_rng(3)
    one, other = rng.normal(0, 1, 9), rng.normal(0.5, 2, 6)
    ours = precision.minus(precision.mean_of(one), precision.mean_of(other))
    theirs = stats.ttest_ind(one, other, equal_var=False)
    low, high = theirs.confidence_interval()
    assert (ours.value - ours.half_width, ours.value + ours.half_width) == pytest.approx((low, high))
    assert ours.freedom == pytest.approx(theirs.df)


def test_the_bootstrap_holds_the_seconds_of_the_true_spread():
    rng = np.random.default_rng(4)
    sd, held = 0.03, 0
    truth = float(precision.units_needed(np.array(sd**2), TARGET))
    for _ in range(80):
        way = Paired(rng.normal(0.1, sd, (20, 1)), np.ones(20))
        low, high = precision.interval(way.seconds(TARGET, rng, 200))
        held += low <= truth <= high
    assert 0.85 <= held / 80 <= 1.0  # a bootstrap of a variance from twenty units is known to be a little short


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


def test_a_difference_of_exactly_the_margin_is_seldom_called_agreement():
    rng = np.random.default_rng(5)
    verdicts = [precision.equivalence(precision.mean_of(rng.normal(1.0, 0.5, 12)), 1.0).verdict for _ in range(800)]
    assert 0.02 <= verdicts.count("agree") / 800 <= 0.08
    assert precision.equivalence(Mean(0.0, 0.1, 10), 1.0).verdict == "agree"
    assert precision.equivalence(Mean(0.2, 0.9, 10), 1.0).verdict == "not shown"


def test_the_breakdown_of_a_block_adds_up_to_its_time_after_the_barrier():
    # Two rounds of two windows of 1 s, each after 0.2 s of settling and 0.05 s between them; the third is rejected.
    switched = np.array([0.1, 1.35, 2.7, 3.95])
    table = pd.DataFrame(
        {
            "window": [1, 2, 3, 4],
            "round": [1, 1, 2, 2],
            "switch_ns": (switched * NS).astype("int64"),
            "open_ns": ((switched + 0.2) * NS).astype("int64"),
            "close_ns": ((switched + 1.2) * NS).astype("int64"),
            "valid": [True, True, False, True],
        }
    )
    windows = pd.concat([table, table])  # a row for each active member
    record = {"settle": {"seconds": 0.15}, "seconds": {"launch": 2.0, "measure": 5.2, "total": 8.0}}
    parts = breakdown(record, windows)
    assert sum(parts.values()) == pytest.approx(6.0)
    assert parts["valid"] == pytest.approx(3.0)
    assert parts["rejected"] == pytest.approx(1.0)
    assert (parts["settle"], parts["waiting"]) == pytest.approx((0.6, 0.2))
    assert (parts["between"], parts["rounds"]) == pytest.approx((0.1, 0.15))
    assert (parts["around"], parts["ending"]) == pytest.approx((0.15, 0.8))


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


@pytest.mark.parametrize(
    ("times", "bracket", "said"),
    [
        (6.0, None, "the aim of 5 is met by the point estimate; too few units for an interval."),
        (4.0, None, "the aim of 5 is missed by the point estimate; too few units for an interval."),
        (6.0, (5.5, 7.0), "the aim of 5 is met."),
        (6.0, (4.0, 7.0), "met by the estimate, but the interval reaches below it."),
        (4.0, (3.0, 4.9), "the aim of 5 is missed."),
    ],
)
def test_a_ratio_has_an_interval_only_with_enough_units(times, bracket, said):
    assert resolution_report.verdict("usual", times, bracket, 5.0).endswith(said)


@pytest.mark.parametrize(
    ("loss", "error", "said"),
    [
        (0.1, 0.05, "below 0.5 %"),
        (2.0, 0.1, "missed: at least 1.8"),
        (0.1, 1.0, "unresolved at ±2.04"),
        (-3.0, 0.1, "below"),
    ],
)
def test_a_perturbation_is_below_its_aim_only_when_the_whole_interval_is(loss, error, said):
    assert perturbation.verdict(Mean(loss, error, 30)).startswith(said)


def test_noise_alone_is_no_perturbation_in_either_direction():
    pairs = perturbation.Pairs("")
    pairs.without, pairs.with_it = np.exp(np.random.default_rng(8).normal(0, 0.2, (2, 20_000))).tolist()
    assert np.mean(pairs.losses) == pytest.approx(0.0, abs=0.006)


def test_a_jobs_loss_is_found_through_stretches_that_were_struck():
    """A true cost of 0.1 % among noise of 2 %, with one stretch in ten struck hard on either side."""
    rng = np.random.default_rng(2)
    losses = rng.normal(0.001, 0.02, (1000, 500))
    losses += np.where(rng.random(losses.shape) < 0.1, rng.normal(0, 0.5, losses.shape), 0)
    found = [job_heartbeat.trimmed(one) for one in losses]
    inside = np.mean([abs(one.value - 0.1) < one.half_width for one in found])
    assert 0.93 < inside < 0.97
    assert np.mean([one.half_width for one in found]) < 1.96 * 100 * losses.std() / np.sqrt(500) / 3


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [(0.05, 0.05, "below 0.3 %"), (0.5, 0.05, "missed: at least 0.40 %"), (0.25, 0.1, "unresolved at ±0.20 %")],
)
def test_a_jobs_loss_is_judged_by_both_its_intervals(value, error, words):
    low, judged = Mean(0.0, 0.01, 1e9), Mean(value, error, 1e9)
    assert job_heartbeat.verdict(judged, low) == words
    untrimmed = words if words.startswith("below") else f"{words} (untrimmed)"
    assert job_heartbeat.verdict(low, judged) == untrimmed


@pytest.mark.parametrize(("cost", "said"), [(0.1, "missed: at least 0."), (0.03, "unresolved at ±"), (0.0, "below")])
def test_a_cost_in_one_pair_of_ten_is_not_trimmed_away(cost, said):
    rng = np.random.default_rng(3)
    losses = rng.normal(0, 0.005, 2000)
    losses[:200] += rng.exponential(cost, 200) if cost else 0
    loss, whole = job_heartbeat.trimmed(losses), job_heartbeat.untrimmed(losses)
    assert loss.value + loss.half_width < job_heartbeat.AIM
    told = job_heartbeat.verdict(loss, whole)
    assert told.startswith(said)
    assert told.endswith("(untrimmed)") == (cost > 0)


@pytest.mark.parametrize("count", range(5))
def test_too_few_pairs_of_a_job_are_an_error_of_one_sentence(count):
    for mean in (job_heartbeat.trimmed, job_heartbeat.untrimmed):
        with pytest.raises(CastmatesError, match=f"pairs of stretches: {count} in a launch, at least 5"):
            mean(np.zeros(count))


def latencies(ours, peer=()):
    return {("chase", size): {"ours": [ours], "lat_mem_rd": list(peer)} for size in kernel_peers.CHASE_SIZES}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (latencies(1.0), "not measured: no peer is installed."),
        (latencies(1.0, [1.0]), "met at all 3."),
        (latencies(1.1, [1.0]), "missed at 3 of 3: L1"),
    ],
)
def test_an_aim_beside_peers_is_met_only_where_there_is_one(capsys, found, said):
    report = Report("Peers", "kernel_peers")
    kernel_peers._tell_latencies(report, found)
    report.print()
    assert f"up to L2, is {said}" in capsys.readouterr().out


def test_bandwidths_are_compared_with_the_best_peer_there_is(capsys):
    found = {
        ("copy", "L1"): {"ours": [9.0], "copy_avx": [9.1], "copy_sse": [5.0]},
        ("copy", "L2"): {"ours": [8.0], "copy_avx": [9.0]},
        ("copy", "L3"): {"ours": [8.0]},
    }
    report = Report("Peers", "kernel_peers")
    kernel_peers._tell_rates(report, found)
    report.print()
    assert "is missed at 1 of 2: copy in L2 (88.9 %)" in capsys.readouterr().out


@pytest.mark.parametrize(("flags", "wide"), [("sse2 avx avx2", False), ("avx avx512f avx512dq", True)])
def test_avx512_peers_are_taken_where_the_processor_has_it(tmp_path, flags, wide):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    tests = kernel_peers.peers_of_mode(tmp_path)
    assert all(any("avx512" in test for test in of_mode) == wide for of_mode in tests.values())


def dial_of(ratios):
    return dial.Dial("chase", ["chase"], [1e9] * len(ratios), {0.4: ratios})


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ([1.0, 0.99, 1.01], "met in all 3 (worst: 1.00 %)"),
        ([1.0, 1.0, 0.9], "missed: 1 of 3 are over 2 %, at chase at 40 % (10.0 % at worst)"),
        ([], "not measured"),
    ],
)
def test_a_dial_is_judged_by_its_worst_round(ratios, said):
    assert dial.verdict([dial_of(ratios)]).startswith(said)
    assert "not measured" in dial.verdict([dial_of(ratios), dial_of([])])


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
