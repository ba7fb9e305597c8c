"""Where the search for the settle time begins and ends, and what it leaves behind."""

import random

import pytest

from castmates.runner.rounds.settling import HALF, SLICES, Settling, curve_of, last_off
from castmates.runner.rounds.window import Window
from castmates.study.spec import Scene

WATCHED = 0.6
ALONE, BESIDE = (
    Scene(name=name, kind=kind, mix="", active=("lead@0",), placebos=(), partition="unmanaged")
    for name, kind in (("solo", "solo"), ("corun:lead+stream", "corun"))
)


def window(scene: Scene, slow_for: float, seed: int) -> Window:
    """Heartbeats that take a third longer until `slow_for` seconds have gone by."""
    draw, beats, t, units = random.Random(seed), [], 0.0, 0
    while t < WATCHED:
        t += 0.004 * (1.33 if t < slow_for else 1.0) * draw.uniform(0.98, 1.02)
        units += 1
        beats.append((int(t * 1e9), units))
    return Window(scene, int(0.05e9), int(WATCHED * 1e9), {}, [], 0.0, since_switch={"lead@0": beats})


def test_a_curve_has_one_rate_for_each_slice():
    beats = [(int(0.004e9 * number), number) for number in range(1, 160)]
    assert len(curve_of(beats, 0, WATCHED)) == SLICES


@pytest.mark.parametrize(("odd", "last"), [(HALF, HALF), (HALF + 1, -1)])
def test_slices_behind_the_middle_one_are_what_the_others_are_compared_with(odd, last):
    curves = [[2.0 if number == odd else 0.001 * draw for number in range(SLICES)] for draw in range(12)]
    assert last_off({"solo": curves})[0] == last


def test_the_scene_that_settles_slowly_is_named():
    settling = Settling(0.05, 2.0)
    windows = [window(ALONE, 0.0, seed) for seed in range(60)] + [window(BESIDE, 0.2, seed) for seed in range(4)]
    assert "the rate of lead@0 in corun:lead+stream became steady" in settling.learn(windows)


def test_a_block_that_never_looked_is_not_called_unsteady():
    settling = Settling(0.05, 0.05)
    assert settling.learn([window(ALONE, 0.2, seed) for seed in range(9)]) == ""
    about = settling.about()
    assert (about["unsteady"], about["steady_after"], about["slowest"], about["curves"]) == (False, None, "", {})
