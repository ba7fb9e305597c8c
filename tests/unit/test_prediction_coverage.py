"""Do the intervals of predictions hold what is measured later? Studies of modelled machines, whose truth is known.

`python -m tests.unit.test_prediction_coverage` prints the table in docs/methodology.md.
"""

from functools import cache

import numpy as np
import pytest

from benchmarks.prediction import BOTH, Score, Way, several, studied
from benchmarks.simulated_grids import grid
from tests.unit.printed_intervals import assert_told

pytestmark = pytest.mark.simulation
STUDIES, SEED, SIZE = 60, 20261126, 10
ALONE = Way("pairs, leads alone", both=False)
TOGETHER = "two or three antagonists"


@cache
def scores():
    """By what is predicted from 40 % of the pairs."""
    found = {way.words: Score() for way in (BOTH, ALONE)} | {TOGETHER: Score()}
    for number in range(STUDIES):
        rng = np.random.default_rng(SEED + number)
        one = grid(SIZE, rng)
        for way in (BOTH, ALONE):
            losses = studied(one, way, number, rng, found[way.words])
            if way is BOTH:
                several(one, losses, rng, found[TOGETHER])
    return found


def table():
    """In Markdown."""
    lines = [
        "| predicted | mean error | mean largest error | hold a further measurement | half-width |",
        "| --- | --- | --- | --- | --- |",
    ]
    for words, score in scores().items():
        held, half = 100 * np.mean(score.held), np.mean(score.halves)
        errors = f"{np.mean(score.means):.2f} | {np.mean(score.largest):.1f}"
        lines.append(f"| {words} | {errors} | {held:.1f} | {half:.1f} |")
    return "\n".join(lines)


def test_the_intervals_of_predictions_hold_a_further_measurement():
    shares = [float(np.mean(score.held)) for score in scores().values()]
    assert_told("predictions", "loss_low", *shares)
    assert_told("predictions", "without_low", *shares)


def test_the_mean_error_from_two_fifths_of_the_pairs_is_within_two_points():
    for way in (BOTH, ALONE):
        assert np.mean(scores()[way.words].means) < 2.0


if __name__ == "__main__":
    print(table())
