"""The geometric mean over the pairs that several studies have in common: exact cases, and what its intervals cover."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castmates.analysis.comparison.comparison import Side, difference_of_means, geometric_means
from castmates.analysis.statistics.welch import cohort_means, summed
from castmates.results.columns.comparison import COMPARISON_MEANS
from tests.unit.printed_intervals import assert_told
from tests.unit.test_coverage import covers
from tests.unit.windows_maker import cohort, mix, plan, written

MARGIN = 0.02
LOSSES = {"stream": [0.10, 0.12, 0.11, 0.15], "chase": [0.30, 0.28, 0.36, 0.31]}


def side(losses, platform="measured", cohorts=1):
    """Each antagonist costs the lead so much in each launch; in one cohort, or in one for each antagonist."""
    mixes = [mix("dlrm@0", f"{name}@1") for name in losses]
    groups = [mixes] if cohorts == 1 else [[one] for one in mixes]
    of = plan([cohort(f"c{number}", *own) for number, own in enumerate(groups)], launches=4)

    def rate(launch, number, scene, member):
        if not scene.startswith("corun"):
            return 100.0
        loss = losses[scene.rpartition("+")[2]][launch.number - 1]
        return None if loss is None else 100.0 * math.exp(-loss)

    return Side(of, written(of, rate, platform=platform))


def mean_of(table, letter):
    return table[table["letter"] == letter].iloc[0]


def test_the_mixes_of_a_cohort_share_their_launches():
    """The mean is over launches, each with the mean over its mixes: one sample of four values."""
    table = geometric_means({"A": side(LOSSES), "B": side({name: [0.0] * 4 for name in LOSSES})}, MARGIN)
    assert list(table.columns) == list(COMPARISON_MEANS)
    values = np.mean(list(LOSSES.values()), axis=0)
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    ours = mean_of(table, "A")
    assert (ours["pairs"], ours["launches"]) == (2, 4)
    assert ours["slowdown"] == pytest.approx(math.exp(values.mean()))
    assert (ours["slowdown_low"], ours["slowdown_high"]) == pytest.approx((math.exp(low), math.exp(high)))
    assert ours["verdict"] == "baseline"
    assert math.isnan(ours["ratio"])


def test_the_ratio_of_two_means_is_welchs():
    other = {"stream": [0.2, 0.21, 0.25, 0.2], "chase": [0.3, 0.34, 0.31, 0.36]}
    table = geometric_means({"A": side(LOSSES), "B": side(other)}, MARGIN)
    ours, theirs = (np.mean(list(of.values()), axis=0) for of in (LOSSES, other))
    wanted = stats.ttest_ind(theirs, ours, equal_var=False)
    low, high = wanted.confidence_interval(0.95)
    found = mean_of(table, "B")
    assert found["ratio"] == pytest.approx(math.exp(theirs.mean() - ours.mean()))
    assert (found["ratio_low"], found["ratio_high"]) == pytest.approx((math.exp(low), math.exp(high)))
    assert found["p_value"] == pytest.approx(wanted.pvalue)
    assert found["p_holm"] == pytest.approx(wanted.pvalue)


def test_cohorts_are_independent():
    table = geometric_means({"A": side(LOSSES, cohorts=2), "B": side(LOSSES)}, MARGIN)
    error = math.sqrt(sum(stats.sem(values) ** 2 for values in LOSSES.values())) / 2
    half = math.log(mean_of(table, "A")["slowdown_high"] / mean_of(table, "A")["slowdown"])
    assert stats.t.ppf(0.975, 6) <= half / error <= stats.t.ppf(0.975, 3)  # Welch and Satterthwaite's degrees
    assert mean_of(table, "A")["slowdown"] == pytest.approx(mean_of(table, "B")["slowdown"])


def test_only_pairs_that_all_studies_have_count():
    three = {**LOSSES, "compute": [0.9] * 4}
    table = geometric_means({"A": side(three), "B": side(LOSSES), "C": side({"stream": LOSSES["stream"]})}, MARGIN)
    assert set(table["pairs"]) == {1}
    assert table["slowdown"].to_numpy() == pytest.approx(math.exp(np.mean(LOSSES["stream"])))
    apart = geometric_means({"A": side({"stream": [0.1] * 4}), "B": side({"chase": [0.1] * 4})}, MARGIN)
    assert apart.empty


def test_a_launch_that_lacks_a_pair_is_left_out_and_a_mean_never_lacks_one():
    torn = {"stream": [0.1, None, 0.3, 0.1], "chase": [0.2, 0.5, 0.2, 0.3]}
    found = mean_of(geometric_means({"A": side(torn), "B": side(LOSSES)}, MARGIN), "A")
    assert found["launches"] == 3
    assert found["slowdown"] == pytest.approx(math.exp(np.mean([0.15, 0.25, 0.2])))
    never = {"stream": [0.1, None, 0.3, None], "chase": [None, 0.5, None, 0.3]}
    none = mean_of(geometric_means({"A": side(never), "B": side(LOSSES)}, MARGIN), "A")
    assert (none["launches"], math.isnan(none["slowdown"])) == (0, True)


def test_platforms_are_never_put_into_one_ratio():
    table = geometric_means({"A": side(LOSSES), "B": side(LOSSES, platform="modelled")}, MARGIN)
    found = mean_of(table, "B")
    assert found["verdict"] == "platforms differ"
    assert math.isnan(found["ratio"])
    assert not math.isnan(found["slowdown"])


STUDIES = 3000
TRUTH = {"one": 0.05, "two": 0.20, "three": 0.12}  # a loss per pair


@cache
def simulated(launches, scatter, seed):
    """Losses of many studies: two cohorts, of which one has two pairs that share their windows alone."""
    rng = np.random.default_rng(seed)
    homes = {"one": "c", "two": "c", "three": "d"}
    tables = []
    shared = {home: rng.normal(0, scatter, (STUDIES, launches)) for home in ("c", "d")}
    for name, truth in TRUTH.items():
        loss = truth + shared[homes[name]] + rng.normal(0, 1.5 * scatter, (STUDIES, launches))
        study, launch = np.indices(loss.shape).reshape(2, -1)
        tables.append(
            pd.DataFrame(
                {
                    "study": study,
                    "mix": name,
                    "cohort": homes[name],
                    "launch": launch,
                    "session": 0,
                    "loss": loss.ravel(),
                }
            )
        )
    return cohort_means(pd.concat(tables, ignore_index=True), ["study"])


@pytest.mark.parametrize(("few", "many"), [(3, 10), (5, 5), (6, 6)])
def test_the_intervals_hold_the_truth(few, many):
    """A quiet machine with few launches against one that scatters three times as much."""
    ours, theirs = simulated(few, 0.01, 51), simulated(many, 0.03, 52)
    truth = np.mean(list(TRUTH.values()))
    for own in (summed(ours, ["study"]), summed(theirs, ["study"])):
        share = covers(own["low"], own["high"], truth)
        assert 0.925 <= share <= 0.975
        assert_told("comparison_means", "slowdown_low", share)
        assert_told("comparison_throughput", "rate_low", share)  # the same sums of logarithms, of rates
    ratio = difference_of_means(ours, theirs, ["study"])
    share = covers(ratio["low"], ratio["high"], 0.0)
    assert 0.925 <= share <= 0.975
    assert_told("comparison_means", "ratio_low", share)
    assert_told("comparison_throughput", "ratio_low", share)
    assert 0.03 <= float((ratio["p_value"] < 0.05).mean()) <= 0.07


@pytest.mark.parametrize("sessions", [4, 6])
def test_cohorts_that_share_their_hours_are_not_independent(sessions):
    """Four cohorts in the same sessions, each of which slows all of them: the mean varies as its hours do."""
    dice, per_session = np.random.default_rng(9), 3
    shape = (1000, 4, sessions, per_session)
    losses = 0.1 + dice.normal(0, 0.05, (1000, 1, sessions, 1)) + dice.normal(0, 0.01, shape)
    study, where, session, launch = np.indices(shape).reshape(4, -1)
    table = pd.DataFrame({"study": study, "mix": where, "cohort": where, "session": session,
                          "launch": session * per_session + launch, "loss": losses.ravel()})  # fmt: skip
    found = summed(cohort_means(table, ["study"]), ["study"])
    assert 0.93 <= covers(found["low"], found["high"], 0.1) <= 0.97
    assert set(found["launches"]) == {4 * sessions * per_session}
    lost = table[(table["study"] == 0) & ~((table["cohort"] == 2) & (table["session"] == 1))]
    (part,) = cohort_means(lost, ["study"]).to_dict("records")
    assert (part["units"], part["launches"]) == (sessions - 1, 4 * (sessions - 1) * per_session)
