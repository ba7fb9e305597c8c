"""The combined throughput of a mix: analytic cases, a published example, invariants, which launches count."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from castmates.analysis.effects.system import (
    ANTT,
    HARMONIC,
    JAIN,
    MAX_SLOWDOWN,
    METRICS,
    STP,
    UNFAIRNESS,
    launch_metrics,
    system_metrics,
)
from tests.unit.windows_maker import cohort, mix, plan, written

SLOWDOWNS = st.lists(st.floats(0.5, 50), min_size=1, max_size=8)
PAIR = plan([cohort("c", mix("bert@0", "stream@1"))], launches=4)
TRIO = plan([cohort("c", mix("bert@0", "stream@1", "chase@2"))], launches=3)


def metrics(slowdowns):
    return launch_metrics(pd.DataFrame({"launch": 1, "slowdown": slowdowns}), ["launch"]).iloc[0].to_dict()


def test_analytic_two_members():
    """By hand: one loses nothing, the other takes twice as long."""
    assert metrics([1.0, 2.0]) == pytest.approx(
        {STP: 1.5, ANTT: 1.5, HARMONIC: 2 / 3, UNFAIRNESS: 2.0, MAX_SLOWDOWN: 2.0, JAIN: 0.9}
    )


@pytest.mark.parametrize("k", [2, 5, 20])
def test_analytic_one_unharmed_the_other_k_times_slower(k):
    """By hand: STP = 1 + 1/k, ANTT = (1 + k)/2, Jain = (k + 1)² / (2 (k² + 1))."""
    found = metrics([1.0, float(k)])
    assert found[STP] == pytest.approx(1 + 1 / k)
    assert found[ANTT] == pytest.approx((1 + k) / 2)
    assert found[JAIN] == pytest.approx((k + 1) ** 2 / (2 * (k**2 + 1)))


def test_analytic_time_sharing_gives_the_work_of_one():
    """By hand: n members that share one processor in turns are n times slower and make the progress of one."""
    found = metrics([4.0] * 4)
    assert (found[STP], found[ANTT], found[JAIN], found[UNFAIRNESS]) == pytest.approx((1.0, 4.0, 1.0, 1.0))


@pytest.mark.parametrize(("shares", "index"), [((1, 3, 5), 0.77), ((1, 4, 5), 0.79), ((1, 2, 5), 0.71)])
def test_published_fairness_index(shares, index):
    """Jain, Chiu and Hawe's index: the values of a public slide that cites their report of 1984."""
    assert round(metrics([1 / share for share in shares])[JAIN], 2) == index


@settings(max_examples=50, deadline=None)
@given(SLOWDOWNS)
def test_what_must_hold_for_any_slowdowns(slowdowns):
    found, n = metrics(slowdowns), len(slowdowns)
    assert found[HARMONIC] * found[ANTT] == pytest.approx(1)
    assert 1 / n - 1e-9 <= found[JAIN] <= 1 + 1e-9
    assert found[UNFAIRNESS] >= 1
    assert found[MAX_SLOWDOWN] >= found[ANTT] - 1e-9
    assert n / found[ANTT] <= found[STP] + 1e-9  # the harmonic mean is the smaller one
    if min(slowdowns) >= 1:
        assert found[STP] <= n + 1e-9
        assert found[ANTT] >= 1 - 1e-9


def rates(losses, without=()):
    """Rates of members that are slower by these factors in the co-run, by launch; `without` has no valid co-run."""

    def rate(launch, number, scene, member):
        if not scene.startswith("corun"):
            return 8.0
        return None if (launch.number, member) in without else 8.0 / losses[member][launch.number - 1]

    return rate


def rows(made, losses, without=()):
    return system_metrics(made, written(made, rates(losses, without))).set_index("metric")


def test_one_value_per_launch_then_t_on_the_log_scale():
    bert, stream = [1.1, 1.2, 1.3, 1.2], [1.5, 1.4, 1.6, 1.5]
    found = rows(PAIR, {"bert@0": bert, "stream@1": stream})
    logs = np.log(1 / np.array(bert) + 1 / np.array(stream))
    low, high = stats.ttest_1samp(logs, 0).confidence_interval()
    assert found.loc[STP, "value"] == pytest.approx(np.exp(logs.mean()))
    assert (found.loc[STP, "low"], found.loc[STP, "high"]) == pytest.approx((np.exp(low), np.exp(high)))
    assert found.index.tolist() == list(METRICS)
    assert found.loc[HARMONIC, "low"] == pytest.approx(1 / found.loc[ANTT, "high"])
    assert set(found["launches"]) == {4}
    assert set(found["members"]) == {2}
    assert set(found["platform"]) == {"measured"}


def test_a_launch_in_which_a_member_has_no_pair_is_counted_and_left_out():
    losses = {"bert@0": [1.1, 9.0, 1.1, 1.1], "stream@1": [1.5, 9.0, 1.5, 1.5]}
    found = rows(PAIR, losses, without={(2, "stream@1")})
    assert found.loc[STP, "value"] == pytest.approx(1 / 1.1 + 1 / 1.5)
    assert (found.loc[STP, "launches"], found.loc[STP, "launches_incomplete"]) == (3, 1)


def test_a_launch_in_which_no_member_has_a_pair_is_counted_too():
    losses = {"bert@0": [1.1] * 4, "stream@1": [1.5] * 4}
    found = rows(PAIR, losses, without={(2, "bert@0"), (2, "stream@1")})
    assert (found.loc[STP, "launches"], found.loc[STP, "launches_incomplete"]) == (3, 1)


def test_two_launches_give_no_interval_and_none_no_value():
    losses = {"bert@0": [1.1] * 3, "stream@1": [1.5] * 3, "chase@2": [2.0] * 3}
    found = rows(TRIO, losses, without={(1, "chase@2")})
    assert found.loc[STP, "value"] == pytest.approx(1 / 1.1 + 1 / 1.5 + 0.5)
    assert found[["low", "high"]].isna().all().all()
    found = rows(TRIO, losses, without={(one, "chase@2") for one in (1, 2, 3)})
    assert found["value"].isna().all()
    assert (found.loc[STP, "launches"], found.loc[STP, "launches_incomplete"]) == (0, 3)


def test_ends_stay_where_the_metric_can_be():
    losses = {"bert@0": [1.0, 1.3, 1.0, 1.0], "stream@1": [1.0, 1.0, 1.2, 1.0]}
    found = rows(PAIR, losses)
    assert found.loc[UNFAIRNESS, "low"] == 1
    assert found.loc[JAIN, "high"] == 1
    assert found.loc[JAIN, "low"] < found.loc[JAIN, "value"] < 1


def test_platforms_stay_apart_and_a_plan_without_coruns_has_no_rows():
    half = {"bert@0": [1.1] * 4, "stream@1": [1.5] * 4}
    windows = written(PAIR, rates(half))
    both = pd.concat([windows, written(PAIR, rates({"bert@0": [2.0] * 4, "stream@1": [2.0] * 4}), platform="modelled")])
    found = system_metrics(PAIR, both).set_index(["platform", "metric"])["value"]
    assert found["modelled", STP] == pytest.approx(1.0)
    assert found["measured", STP] == pytest.approx(1 / 1.1 + 1 / 1.5)
    alone = plan([cohort("c", mix("bert@0", "stream@1"))], launches=1)
    assert system_metrics(alone.model_copy(update={"mixes": ()}), windows).empty
