"""How rates wander is found from heartbeats: nothing where nothing wanders, and as much as was put in."""

import math
import random

import pytest

from castmates.analysis.design.pilot import BUDGET, GAP, wandering

SECONDS = 60.0


def beats(step: float, spread: float, memory: float, seed: int = 1) -> list[tuple[int, int]]:
    """Steps of a rate whose logarithm is an Ornstein-Uhlenbeck process."""
    draw, t, log, done = random.Random(seed), 0.0, 0.0, []
    kept = math.exp(-step / memory)
    while t < SECONDS:
        log = kept * log + math.sqrt(1 - kept * kept) * draw.gauss(0, spread)
        t += step * math.exp(-log)
        done.append((int(t * 1e9), len(done)))
    return done


def test_a_steady_rate_does_not_scatter():
    assert all(row.scatter < 1e-6 for row in wandering("steady", beats(0.002, 0.0, 1.0)))


def test_neighbours_differ_by_what_the_rate_wanders_in_between():
    """Windows much longer than its memory average it out; windows much shorter hardly see it."""
    rows = {row.seconds: row for row in wandering("wanders", beats(0.001, 0.1, 0.5))}
    for length in (0.1, 0.5):
        apart = length + GAP
        # Variance of the difference of two means of an Ornstein-Uhlenbeck process over neighbouring windows.
        x, own = length / 0.5, 2 * (0.1**2) * (0.5 / length) * (1 - (0.5 / length) * (1 - math.exp(-length / 0.5)))
        between = 0.1**2 * math.exp(-(apart - length) / 0.5) * ((1 - math.exp(-x)) / x) ** 2
        assert rows[length].scatter == pytest.approx(math.sqrt(2 * (own - between)), rel=0.25)
    assert rows[0.06].half_width_pct < rows[1.0].half_width_pct


def test_windows_on_both_sides_of_a_gap_are_no_neighbours():
    """Twice as fast after five windows without progress: no pair of neighbours shows that."""
    every = 200_000_000 + int(GAP * 1e9)
    stalls, goes_on = 90 * every, 95 * every
    first = [(time, number) for number, time in enumerate(range(0, stalls + 1, 1_000_000))]
    then = [(time, len(first) + number) for number, time in enumerate(range(goes_on + 1, 2 * goes_on, 500_000))]
    (row,) = [row for row in wandering("stalls", [*first, (goes_on, len(first) - 1), *then]) if row.seconds == 0.2]
    assert row.scatter < 0.01
    assert row.pairs == (90 - 1) + (95 - 1) - 1


def test_windows_with_few_steps_or_few_neighbours_are_left_out():
    lengths = [row.seconds for row in wandering("slow", beats(0.1, 0.05, 1.0))]
    assert lengths == [0.5, 1.0, 2.0]
    assert SECONDS / (2.0 + GAP) - 1 >= 8
    assert wandering("slow", beats(0.1, 0.05, 1.0)[:20]) == []


def test_the_half_width_is_that_of_a_minute_of_pairs():
    (row,) = [row for row in wandering("wanders", beats(0.001, 0.1, 0.5)) if row.seconds == 0.2]
    pairs = int(BUDGET / (2 * (0.2 + GAP)))
    assert row.half_width_pct == pytest.approx(100 * 1.98 * row.scatter / math.sqrt(pairs), rel=0.02)
