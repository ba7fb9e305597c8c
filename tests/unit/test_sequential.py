"""The sequential test of a share errs as seldom as it claims, and stops early."""

import numpy as np
import pytest

from tests.sequential import covers, holds


def drawn(share, seed, batch=50):
    """Draw batches of trials of this share, and count them."""
    dice, made = np.random.default_rng(seed), []

    def once(_number):
        made.append(batch)
        return int(dice.binomial(batch, share)), batch

    return once, made


@pytest.mark.parametrize(("share", "answer"), [(0.95, True), (0.90, False)])
def test_it_errs_as_seldom_as_it_claims_and_stops_early(share, answer):
    wrong, trials = 0, []
    for seed in range(2000):
        batch, made = drawn(share, seed)
        wrong += holds(batch, 0.95, 0.90, most=200, error=0.01) is not answer
        trials.append(sum(made))
    assert wrong <= 2000 * 0.01 + 14  # three binomial errors
    assert np.mean(trials) < 400


@pytest.mark.parametrize(("share", "answer"), [(0.95, True), (0.88, False), (0.999, False)])
def test_intervals_that_cover_too_seldom_or_too_often_are_refused(share, answer):
    assert [covers(drawn(share, seed)[0], most=100) for seed in range(20)] == [answer] * 20


def test_a_batch_is_simulated_once_for_both_sides():
    numbers = []
    dice = np.random.default_rng(1)

    def batch(number):
        numbers.append(number)
        return int(dice.binomial(100, 0.95)), 100

    assert covers(batch, most=50)
    assert len(numbers) == len(set(numbers))


def test_an_open_answer_after_the_last_batch_is_the_likelier_one():
    assert holds(lambda _: (19, 20), 0.95, 0.90, most=1)
    assert not holds(lambda _: (17, 20), 0.95, 0.90, most=1)
