"""The settle time is found from the heartbeats since a change of scene."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.protocols import Sample
from castmates.runner.rounds.settling import SLICES, Settling, curve_of, last_off
from castmates.runner.rounds.window import Window, occupancy_since
from castmates.study.spec import Scene

SCENE = Scene(name="solo", kind="solo", mix="", active=("lead@0",), placebos=(), partition="unmanaged")
WATCHED = 0.6


def records(slow_for: float, factor: float, noise: float = 0.0, step: float = 0.004, seed: int = 1) -> list:
    """Heartbeats whose steps take `factor` times as long until `slow_for` seconds have gone by."""
    draw = random.Random(seed)
    found, t, units = [], 0.0, 100
    while t < WATCHED:
        t += step * (factor if t < slow_for else 1.0) * math.exp(draw.gauss(0, noise))
        units += 1
        found.append((int(t * 1e9), units))
    return found


def window(slow_for: float, factor: float, settle: float = 0.05, noise: float = 0.0, seed: int = 1) -> Window:
    since = {"lead@0": records(slow_for, factor, noise, seed=seed)}
    return Window(SCENE, int(settle * 1e9), int(WATCHED * 1e9), {}, [], 0.0, since_switch=since)


def round_of(slow_for: float, factor: float, noise: float = 0.0, seed: int = 0, count: int = 9) -> list[Window]:
    return [window(slow_for, factor, noise=noise, seed=seed * 100 + number) for number in range(count)]


def test_a_steady_rate_needs_no_longer_settle_time():
    settling = Settling(0.05, 2.0)
    assert settling.learn(round_of(0.0, 1.0, noise=0.05)) == ""
    assert settling.seconds == 0.05


def test_a_slow_beginning_rejects_the_round_and_the_next_waits_longer():
    settling = Settling(0.05, 2.0)
    said = settling.learn(round_of(0.2, 1.3, noise=0.05))
    assert said.startswith("not settled: the rate of lead@0 ")
    assert 0.2 <= settling.seconds <= 0.35


def test_a_rate_that_never_becomes_steady_waits_for_the_longest_time():
    settling = Settling(0.05, 1.0)
    assert "did not become steady" in settling.learn(round_of(0.4, 1.5))
    assert settling.seconds == 1.0
    assert settling.learn(round_of(0.4, 1.5)) == ""  # longer than the longest is not waited


def filling(fills_for: float, every: float = 0.02) -> list[Sample]:
    """A member's occupancy that rises until it has its 8 MB, beside a frozen one's that is not asked for."""
    times = [number * every for number in range(1, int(WATCHED / every) + 1)]
    levels = [8e6 * min(1.0, 0.2 + 0.8 * t / fills_for) if fills_for else 8e6 for t in times]
    held = [
        Sample(int(t * 1e9), "resctrl", "lead@0", "llc_occupancy", level)
        for t, level in zip(times, levels, strict=True)
    ]
    return held + [Sample(int(t * 1e9), "resctrl", "frozen@1", "llc_occupancy", 1e6 / (1 + t)) for t in times]


@pytest.mark.parametrize(("fills_for", "too_early"), [(0.0, False), (0.25, True)])
def test_occupancy_that_still_rises_is_not_settled(fills_for, too_early):
    windows = round_of(0.0, 1.0)
    for one in windows:
        one.since_switch |= occupancy_since(0, filling(fills_for), ["lead@0"])
    settling = Settling(0.05, 2.0)
    said = settling.learn(windows)
    assert said.startswith("not settled: the occupancy of lead@0 ") == too_early
    assert set(settling.curves) == (set() if too_early else {"lead@0", "occupancy of lead@0"})


def test_too_few_readings_of_occupancy_say_nothing():
    windows = round_of(0.0, 1.0)
    for one in windows:
        one.since_switch |= occupancy_since(0, filling(0.25, every=0.1), ["lead@0"])
    assert Settling(0.05, 2.0).learn(windows) == ""


def test_the_occupancy_of_a_member_with_two_caches_is_their_sum():
    both = [
        Sample(t, "resctrl", "lead@0", "llc_occupancy", 3e6, cache) for t in (1000, 2000) for cache in ("l3:0", "l3:1")
    ]
    assert occupancy_since(0, both, ["lead@0"]) == {"occupancy of lead@0": [(1000, 6_000_000), (2000, 12_000_000)]}


def test_what_is_not_wanted_is_not_looked_for():
    assert Settling(0.05, 0.0).learn(round_of(0.4, 1.5)) == ""


def test_rejected_windows_say_nothing():
    windows = round_of(0.2, 1.3)
    for one in windows:
        one.reasons.append("steal: much")
    assert Settling(0.05, 2.0).learn(windows) == ""


def test_one_scene_that_settles_slowly_is_found_among_many_that_do_not():
    settling, said = Settling(0.05, 2.0), []
    for round_ in range(3):
        slow = window(0.2, 1.5, noise=0.05, seed=77 + round_)
        slow.scene = SCENE.model_copy(update={"name": "corun:lead+stream"})
        said.append(settling.learn([*round_of(0.0, 1.0, noise=0.05, seed=round_), slow]))
    assert any("the rate of lead@0" in one for one in said)
    assert settling.seconds > 0.1


def test_a_machine_whose_speed_wanders_is_not_taken_for_one_that_settles():
    def wandering(seed: int) -> Window:
        draw = random.Random(seed)
        return window(draw.uniform(0.1, 0.5), draw.choice([0.6, 1.6]), noise=0.05, seed=seed)

    false = sum(bool(Settling(0.05, 2.0).learn([wandering(1000 * n + k) for k in range(9)])) for n in range(100))
    assert false <= 5


def test_the_second_time_it_waits_as_long_as_it_may():
    settling = Settling(0.05, 2.0)
    assert settling.learn(round_of(0.1, 1.5))
    assert settling.seconds < 0.5
    windows = [window(0.4, 1.5, settle=settling.seconds, seed=number) for number in range(9)]
    assert settling.learn(windows)
    assert settling.seconds == 2.0


def test_a_faint_slow_beginning_is_found_when_rounds_add_up():
    settling = Settling(0.05, 2.0)
    said = [settling.learn(round_of(0.2, 1.04, noise=0.1, seed=seed, count=2)) for seed in range(20)]
    assert said[0] == ""
    assert any(said)


def test_what_is_unsteady_even_after_the_longest_time_is_recorded():
    settling = Settling(0.05, 0.06)
    assert settling.learn(round_of(0.2, 1.5))
    assert settling.learn(round_of(0.2, 1.5)) == ""
    assert settling.about()["unsteady"] is True


def test_noise_alone_seldom_rejects_a_round():
    false = sum(bool(Settling(0.05, 2.0).learn(round_of(0.0, 1.0, noise=0.3, seed=seed))) for seed in range(200))
    assert false <= 10  # one in twenty


@given(st.floats(0.001, 0.05), st.integers(0, 10**6))
def test_a_constant_rate_gives_a_flat_curve(step, seed):
    beats = [(int(number * step * 1e9), number + seed) for number in range(int(WATCHED / step) + 1)]
    curve = curve_of(beats, 0, WATCHED)
    if len(beats) >= SLICES // 2:
        assert curve is not None
        assert all(value == pytest.approx(0, abs=1e-3) for value in curve if value is not None)


def test_a_process_with_too_few_steps_has_no_curve():
    assert curve_of([(1, 1), (2, 2)], 0, WATCHED) is None


def test_one_odd_slice_late_in_the_window_is_not_looked_at():
    curves = [[0.001 * number] * (SLICES - 2) + [0.5, 0.5] for number in range(12)]
    assert last_off({"solo": curves}) == (-1, "")
