"""Losses of jobs from the effects of a study: both roles, several members, ways, and what is composed of pairs."""

import math

import numpy as np
import pytest
from scipy import stats

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.prediction.predicted import (
    ComposedLosses,
    Loss,
    MeasuredLosses,
    best_known,
    combined_loss,
    measured_losses,
)
from castmates.analysis.statistics.power import log_of, loss_pct
from tests.unit import partition_maker as maker
from tests.unit.printed_intervals import assert_told
from tests.unit.windows_maker import cohort, mix, plan, written

ONE_CACHE = dict.fromkeys(range(8), 0)


def losses(of, rate, caches=ONE_CACHE):
    return measured_losses(of, estimate_effects(of, written(of, rate), 0.02), caches)


def slowed(shares):
    """Rates by member in co-runs; 100 everywhere else."""
    return lambda _launch, _number, scene, member: 100 * shares.get((scene, member), 1.0)


def test_a_job_that_was_an_antagonist_has_a_loss_too_and_that_of_a_lead_comes_first():
    of = plan([cohort("c1", mix("a@0", "b@1")), cohort("c2", mix("b@0", "a@1"))], launches=3)
    shares = {("corun:a+b", "a@0"): 0.9, ("corun:a+b", "b@1"): 0.8}
    shares |= {("corun:b+a", "b@0"): 0.7, ("corun:b+a", "a@1"): 0.6}
    known = losses(of, slowed(shares))
    assert known.of("a", ["b"]).pct == pytest.approx(10)
    assert known.of("b", ["a"]).pct == pytest.approx(30)
    only = losses(plan([cohort("c1", mix("a@0", "b@1"))], launches=3), slowed(shares))
    assert only.of("b", ["a"]).pct == pytest.approx(20)
    assert only.of("b", ["b"]) is None


def test_members_of_one_kind_are_one_job_and_all_others_are_beside_it():
    of = plan([cohort("c1", mix("a@0", "b@1", "b@2"))], launches=3)
    scene = "corun:a+b+b"
    known = losses(of, slowed({(scene, "a@0"): 0.5, (scene, "b@1"): 0.8, (scene, "b@2"): 0.9}))
    assert known.of("a", ["b", "b"]).pct == pytest.approx(50)
    both = known.of("b", ["b", "a"])
    assert both.pct == pytest.approx(100 * (1 - math.sqrt(0.8 * 0.9)))
    assert (both.low, both.high) == (pytest.approx(10), pytest.approx(20))  # between all ends
    assert known.of("a", ["b"]) is None


def test_a_mix_around_two_caches_or_on_siblings_shows_nothing_of_one_cache():
    of = plan([cohort("c1", mix("a@0", "b@1"))], launches=3)
    assert losses(of, slowed({}), {0: 0, 1: 1}).of("a", ["b"]) is None
    assert losses(of, slowed({}), {}).of("a", ["b"]) is not None  # no cache is known: one
    near = mix("a@0", "b@1").model_copy(update={"name": "a+b:smt"})
    assert losses(plan([cohort("c1", near)], launches=3), slowed({})).of("a", ["b"]) is None


def test_losses_with_ways_are_those_of_partitions_that_keep_all_members_apart():
    of = maker.made(maker.atoms(ways=(4, 8), caps=(2,), sensitivity=(2,)))
    effects = estimate_effects(of, maker.windows(of), 0.02)
    known = measured_losses(of, effects, ONE_CACHE)
    (row,) = effects[
        (effects["partition"] == "split-4") & (effects["baseline"] == "alone") & (effects["role"] == "lead")
    ].to_dict("records")
    assert known.of("dlrm", ["stream"], 4).pct == row["loss_pct"]
    assert known.of("stream", ["dlrm"], 8) is not None  # what split-4 leaves it
    assert {(job, ways) for job, _, ways in known.known} == {
        ("dlrm", None), ("stream", None), ("dlrm", 4), ("dlrm", 8), ("stream", 8), ("stream", 4),
    }  # fmt: skip
    otherwise = effects.assign(held=["otherwise" if name == "split-4" else "" for name in effects["partition"]])
    assert measured_losses(of, otherwise, ONE_CACHE).of("dlrm", ["stream"], 4) is None


PAIRS = MeasuredLosses(
    {
        ("a", ("b",), None): Loss(10.0, 9.0, 11.0, "measured"),
        ("a", ("c",), None): Loss(20.0, math.nan, math.nan, "measured"),
        ("a", ("b", "c"), None): Loss(33.0, 30.0, 36.0, "measured"),
    }
)


def added(*rates):
    """The loss of a job whose extra time beside each of several adds up."""
    return 100 * (1 - 1 / (1 + sum(1 / rate - 1 for rate in rates)))


def test_what_is_measured_comes_first_and_extra_time_beside_several_adds_up():
    known = best_known(PAIRS)
    assert known.of("a", ["c", "b"]) == Loss(33.0, 30.0, 36.0, "measured")
    twice = known.of("a", ["b", "b"])
    assert (twice.pct, twice.low, twice.high, twice.source) == (
        pytest.approx(added(0.9, 0.9)), pytest.approx(added(0.91, 0.91)), pytest.approx(added(0.89, 0.89)), "predicted",
    )  # fmt: skip
    without = known.of("a", ["b", "b", "c"])
    assert without.pct == pytest.approx(added(0.9, 0.9, 0.8))
    assert math.isnan(without.high)
    assert known.of("a", ["b", "d"]) is None
    assert known.of("a", ["b", "b"], ways=4) is None

    predicted = {
        ("d",): Loss(5.0, 4.0, 6.0, "predicted"),
        ("b", "d"): Loss(14.0, math.nan, math.nan, "predicted"),
        ("b", "b", "d"): Loss(22.0, 15.0, 29.0, "predicted"),
    }

    class Predicted:
        def of(self, job, beside, _ways=None):
            return predicted.get(tuple(beside)) if job == "a" else None

    known = best_known(PAIRS, Predicted())
    assert known.of("a", ["b", "c"]).source == "measured"
    assert known.of("a", ["b", "b", "d"]) == predicted["b", "b", "d"]
    pairs = known.of("a", ["b", "d"])  # its prediction has no interval, and the pairs have some
    assert (pairs.pct, pairs.high) == (pytest.approx(added(0.9, 0.95)), pytest.approx(added(0.89, 0.94)))


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_ends_of_composed_losses_hold_the_truth_where_the_rule_does(shared):
    """Pairs of one lead share its `alone` scene, and so part of their errors; each study has new launches."""
    chance, studies, launches = np.random.default_rng(1), 4000, 5
    truths = np.array([0.2, 0.1, 0.05])
    common = math.sqrt(shared) * chance.normal(size=(studies, launches, 1))
    logs = truths + 0.03 * (common + math.sqrt(1 - shared) * chance.normal(size=(studies, launches, 3)))
    means, spread = logs.mean(axis=1), logs.std(axis=1, ddof=1) * stats.t.ppf(0.975, launches - 1) / math.sqrt(launches)
    for many in (2, 3):
        held = 0
        for mean, half in zip(means, spread, strict=True):
            pairs = {
                ("a", (name,), None): Loss(
                    *(loss_pct(mean[place] + sign * half[place]) for sign in (0, -1, 1)), "measured"
                )
                for place, name in enumerate("bcd"[:many])
            }
            loss = ComposedLosses(MeasuredLosses(pairs)).of("a", "bcd"[:many])
            held += log_of(loss.low) <= combined_loss(truths[:many]) <= log_of(loss.high)
        assert_told("groupings", "loss_low", held / studies)
