"""Where the search for the settle time begins and ends, and what it leaves behind."""

import random

import pytest

from castmates.runner.rounds.settling import BINS, HALF, Response, Settling, last_off
from castmates.runner.rounds.slices import Slice
from castmates.study.spec import Scene

WATCHED = 0.6
ALONE = Scene(name="alone", kind="alone", mix="", active=("lead@0",), placebos=(), partition="unmanaged")


def slice_of(scene: Scene, slow_for: float, seed: int) -> Slice:
    """Heartbeats that take a third longer until `slow_for` seconds have gone by."""
    draw, beats, t, units = random.Random(seed), [], 0.0, 0
    while t < WATCHED:
        t += 0.004 * (1.33 if t < slow_for else 1.0) * draw.uniform(0.98, 1.02)
        units += 1
        beats.append((int(t * 1e9), units))
    return Slice(scene, int(0.05e9), int(WATCHED * 1e9), 0, {"lead@0": beats})


@pytest.mark.parametrize(("odd", "last"), [(HALF, HALF), (HALF + 1, -1)])
def test_bins_behind_the_middle_one_are_what_the_others_are_compared_with(odd, last):
    response = Response()
    for draw in range(12):
        response.add([2.0 if number == odd else 0.001 * draw for number in range(BINS)])
    assert last_off({"alone": response})[0] == last


def test_a_launch_that_never_looked_is_not_called_unsteady():
    settling = Settling(0.05, 0.05, "lead@0")
    settling.watch(WATCHED)
    assert settling.learn([slice_of(ALONE, 0.2, seed) for seed in range(9)]) is None
    about = settling.about()
    assert (about["unsteady"], about["steady_after"], about["slowest"], about["curves"]) == (False, None, "", {})
