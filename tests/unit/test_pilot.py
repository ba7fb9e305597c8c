"""A pilot finds how much launches and rounds vary, and proposes the design that follows."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from castmates.analysis.design.pilot import best_rounds, cost_of, spreads, window_for, window_noise
from castmates.analysis.statistics.power import detectable, half_width, launches_for
from castmates.pipeline.pilot import Proposal, yaml_lines
from castmates.study.budget_keys import Budget
from castmates.study.model import Study
from castmates.study.rounds import Cost, Spread
from tests.unit.windows_maker import Truth, cohort, mix, plan, simulated, written

LONG = 10_000.0


MANY = 10**9  # launches, beside which what is usual counts for nothing


def spread(between, within, launches=MANY):
    return Spread("x+a", 0.0, between + within / 4, within, between, launches, 4.0)


positive = st.floats(1e-6, 1e-2)
seconds = st.floats(0.1, 100)


@given(positive, positive, seconds, seconds)
def test_no_other_number_of_rounds_is_better(between, within, launch, one_round):
    rounds = best_rounds([spread(between, within)], [Cost(launch, one_round)], LONG)

    def work(number):
        return (launch + number * one_round) * (between + within / number)

    # What the limits allow: from two rounds to twenty, and no launch below a fifth of the time.
    most = max(2, min(20, math.ceil(round(4 * launch / one_round, 9))))
    best = min(work(number) for number in range(2, most + 1))
    assert 2 <= rounds <= most
    assert work(rounds) <= 1.1 * best  # the root is rounded up, and the optimum is flat


@given(positive, positive, seconds, seconds, st.floats(1, 10))
def test_a_more_costly_launch_or_more_noise_asks_for_more_rounds(between, within, launch, one_round, more):
    usual = best_rounds([spread(between, within)], [Cost(launch, one_round)], LONG)
    assert best_rounds([spread(between, within)], [Cost(more * launch, one_round)], LONG) >= usual
    assert best_rounds([spread(between, more * within)], [Cost(launch, one_round)], LONG) >= usual
    assert best_rounds([spread(more * between, within)], [Cost(launch, one_round)], LONG) <= usual


def test_known_variances_give_the_known_optimum():
    # sqrt(20 / 2 * 0.0009 / 0.0001) = 9.49
    assert best_rounds([spread(0.0001, 0.0009)], [Cost(20, 2)], LONG) == 10
    assert best_rounds([spread(0.0001, 0.0009)], [Cost(20, 2)], longest_launch=35) == 7
    # no launch is seen to differ: as many as leave the launch a fifth of the time
    assert best_rounds([spread(0.0, 0.0009)], [Cost(2, 2)], LONG) == 4
    assert best_rounds([spread(0.0001, 0.0)], [Cost(20, 2)], LONG) == 2
    assert best_rounds([spread(0.0001, 0.0009)], [Cost(0, 2)], LONG) == 2


def test_a_few_launches_that_agree_do_not_show_that_all_do():
    # (0 + 0.05) / 2, and sqrt(2 / 2 / 0.025) = 6.3, but no launch below a fifth of the time; sqrt(9 / 0.025) = 18.97
    assert best_rounds([spread(0.0, 0.0009, launches=2)], [Cost(2, 2)], LONG) == 4
    assert best_rounds([spread(0.0, 0.0009, launches=2)], [Cost(18, 2)], LONG) == 19
    assert best_rounds([spread(0.0, 0.0009)], [Cost(18, 2)], LONG) == 20
    # (0.9 + 0.05) / 2
    assert best_rounds([spread(0.00081, 0.0009, launches=2)], [Cost(18, 2)], LONG) == 5
    # nothing is known, or the modelled machine has no noise: sqrt(9 / 0.05)
    assert best_rounds([], [Cost(18, 2)], LONG) == 14
    assert best_rounds([spread(0.0, 0.0)], [Cost(18, 2)], LONG) == 14


def test_the_variances_are_found_again():
    truth = Truth(launch=0.02, interaction=0.015, noise=0.01, trend=0.0, walk=0.0)
    campaigns = simulated(truth, studies=1, launches=400, rounds=3, seed=5)
    (found,) = spreads(campaigns.plan, campaigns.windows).values()
    assert math.sqrt(found.between) == pytest.approx(0.015, rel=0.12)
    assert math.sqrt(found.within) == pytest.approx(0.01 * math.sqrt(1.5), rel=0.05)  # alone was measured twice
    assert found.of_means == pytest.approx(found.of_launches(3))
    assert (found.launches, round(found.rounds, 9)) == (400, 3)
    assert found.log == pytest.approx(truth.corun, abs=0.01)
    assert window_noise(campaigns.windows) == pytest.approx(0.01, rel=0.1)


def test_spreads_by_hand():
    one = plan([cohort("a", mix("dlrm@0", "stream@1", identity="it"))], launches=2)
    losses = {1: (0.1, 0.2), 2: (0.3, 0.6)}

    def rate(launch, number, scene, member):
        return math.exp(-losses[launch.number][number - 1]) if scene == "corun:dlrm+stream" else 1.0

    (found,) = spreads(one, written(one, rate, rounds=2)).values()
    assert found.of_means == pytest.approx(np.var([0.15, 0.45], ddof=1))
    assert found.within == pytest.approx((0.005 + 0.045) / 2)
    assert found.between == pytest.approx(found.of_means - found.within / 2)
    assert set(spreads(one, written(one, rate, rounds=2))) == {"it"}


def test_one_launch_tells_no_variance():
    one = plan([cohort("a", mix("dlrm@0", "stream@1"))], launches=1)
    assert spreads(one, written(one, lambda *_: 1.0)) == {}


def test_costs_come_from_the_records():
    scenes = {"cohort": {"scenes": list("abcde")}}
    good = {"status": "measured", "windows": 20, "seconds": {"total": 22.0, "measure": 12.0}, "spec": scenes}
    assert cost_of([good, good | {"status": "failed"}]) == Cost(launch=10.0, round=3.0)
    assert cost_of([good | {"status": "failed"}]) is None


def test_a_window_holds_the_steps_of_the_slowest_lead():
    one = plan([cohort("a", mix("dlrm@0", "stream@1"))], launches=1)
    # Nine slices, of which six count: 20 heartbeats make 14 steps of 0.1 s, however long the round was.
    slices = {"slices": 9, "slices_rejected": 1, "slices_dropped": 2, "beats": 20, "progress_s": 1.4}
    windows = written(one, lambda *_: 1.0).assign(first_ns=0, last_ns=60 * 10**9, **slices)
    assert window_for(windows, steps=10, shortest=0.5, longest=5, settle=0.1) == 1.1
    assert window_for(windows, steps=10, shortest=2.0, longest=5, settle=0.1) == 2.0
    assert window_for(windows, steps=10, shortest=0.5, longest=5, settle=0.5) == 1.5
    assert window_for(windows, steps=100, shortest=0.5, longest=5, settle=0.1) == 5
    assert window_for(windows.assign(beats=6), steps=10, shortest=0.5, longest=5, settle=0.1) == 0.5  # not one step


@pytest.mark.parametrize("launches", [3, 5, 12])
def test_four_studies_of_five_find_what_is_called_detectable(launches):
    variance = 0.02**2
    loss = detectable(variance, launches)
    dice = np.random.default_rng(launches)
    means = dice.normal(loss, math.sqrt(variance), (40_000, launches))
    found = stats.ttest_1samp(means, 0.0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.01)


@given(positive, st.integers(3, 60))
def test_more_launches_find_and_tell_more(variance, launches):
    assert detectable(variance, launches + 1) < detectable(variance, launches)
    assert detectable(variance, launches, 0.01) > detectable(variance, launches)
    assert half_width(variance, launches + 1) < half_width(variance, launches)
    assert half_width(variance, launches, 0.5) == pytest.approx(half_width(variance, launches) * math.exp(0.5))


@given(positive, st.floats(0.001, 0.1))
def test_the_launches_for_a_precision_are_the_fewest(variance, wanted):
    launches = launches_for(variance, wanted, most=200)
    if launches is None:
        assert half_width(variance, 200) > wanted
    else:
        assert half_width(variance, launches) <= wanted
        assert launches == 3 or half_width(variance, launches - 1) > wanted


@pytest.mark.parametrize(
    ("budget", "needs", "told", "key"),
    [
        ({}, [7, 12], "# about 12 launches for ±1 % of every lead's time alone", "launches: 12"),
        ({"precision": 0.01}, [7, 12], "# about 12 launches", "most_launches: 24"),
        ({"precision": 0.01, "launches": 14}, [7], "# about 7 launches", "most_launches: 20"),
        ({}, [7, None], "# more than 200 launches, and so no number is proposed, for", ""),
        ({"precision": 0.01}, [None], "# more than 200 launches", ""),
    ],
)
def test_a_number_of_launches_is_proposed_only_where_one_is_known(budget, needs, told, key):
    study = Study(name="s", leads=["x"], antagonists=["a"], budget=Budget(**budget))
    text = yaml_lines(study, Proposal(rounds=3, window=1.0, settle=0.1), needs, 0.01)
    assert told in text
    assert re.findall(r"^  ((?:most_)?launches: .*)$", text, re.MULTILINE) == [key] * bool(key)
    assert "  rounds: 3\n  window: 1.0\n  settle: 0.1\n" in text


def test_two_launches_find_nothing():
    assert detectable(0.01, 2) == math.inf
    assert half_width(0.01, 2) == math.inf
