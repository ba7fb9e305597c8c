"""The settle time is found from the heartbeats since the change of scene, averaged over many slices."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.runner.rounds.settling import BINS, MORE, Response, Settling, curve_of, last_off
from castmates.runner.rounds.slices import Slice
from castmates.study.reasons import Reason, ReasonKind
from castmates.study.spec import Scene

SCENE = Scene(name="alone", kind="alone", mix="", active=("lead@0",), placebos=(), partition="unmanaged")
BESIDE = SCENE.model_copy(update={"name": "corun:lead+stream", "kind": "corun"})
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


def slice_of(slow_for: float, factor: float, noise: float = 0.0, seed: int = 1, scene: Scene = SCENE) -> Slice:
    since = {"lead@0": records(slow_for, factor, noise, seed=seed)}
    return Slice(scene, int(0.05e9), int(WATCHED * 1e9), 0, since)


def round_of(slow_for: float, factor: float, noise: float = 0.0, seed: int = 0, count: int = 9) -> list[Slice]:
    return [slice_of(slow_for, factor, noise=noise, seed=seed * 100 + number) for number in range(count)]


def settling_of(seconds: float, longest: float) -> Settling:
    made = Settling(seconds, longest, "lead@0")
    made.watch(WATCHED)
    return made


def test_a_steady_rate_needs_no_longer_settle_time():
    settling = settling_of(0.05, 2.0)
    assert settling.learn(round_of(0.0, 1.0, noise=0.05)) is None
    assert settling.seconds == 0.05
    assert settling.steady_after <= 0.05


@pytest.mark.parametrize("factor", [1.3, 0.75])
def test_a_beginning_at_another_rate_is_left_out_and_costs_no_slice(factor):
    settling = settling_of(0.05, 2.0)
    assert settling.learn(round_of(0.2, factor, noise=0.05)) is None
    assert 0.2 <= settling.steady_after <= 0.2 + 3 * WATCHED / BINS  # the mean of a few bins is judged
    assert settling.seconds == MORE * settling.steady_after
    assert settling.slowest == "lead@0"


def test_slices_that_are_too_short_to_become_steady_do_not_count_and_the_next_are_longer():
    settling = settling_of(0.05, 2.0)
    said = settling.learn(round_of(0.4, 1.5))
    assert str(said) == "not settled: the rate of lead@0 did not become steady in the first half of 0.60 s"
    assert (settling.seconds, settling.steady_after, settling.unsteady) == (WATCHED, None, False)


def test_the_second_time_it_waits_as_long_as_it_may_and_then_calls_it_unsteady():
    settling = settling_of(0.05, 1.0)
    for expected in (WATCHED, 1.0):
        assert settling.learn(round_of(0.4, 1.5)).kind == ReasonKind.NOT_SETTLED
        assert (settling.seconds, settling.unsteady) == (expected, False)
    assert settling.learn(round_of(0.4, 1.5)) is None  # longer than the longest is not waited
    assert (settling.seconds, settling.about()["unsteady"]) == (1.0, True)


def test_what_is_left_out_is_never_more_than_the_longest_settle_time():
    settling = settling_of(0.05, 0.15)
    assert settling.learn(round_of(0.2, 1.5)) is None
    assert (settling.seconds, settling.unsteady) == (0.15, False)
    assert settling.learn(round_of(0.2, 1.5)) is None
    assert (settling.seconds, settling.about()["unsteady"]) == (0.15, True)


def test_curves_of_slices_that_were_too_short_stay_on_record():
    """Those are the launches that settle slowly, whose curves are worth most."""
    settling = settling_of(0.05, 2.0)
    settling.learn(round_of(0.4, 1.5))
    before = settling.about()
    settling.watch(2 * WATCHED)
    about = settling.about()
    assert (about["watched"], about["curves"], about["response"]) == (2 * WATCHED, {}, {})
    (earlier,) = about["earlier"]
    assert earlier == {key: before[key] for key in ("watched", "curves", "response")}
    assert earlier["curves"] == {"lead@0": 9}


def test_what_is_not_wanted_is_not_looked_for():
    settling = settling_of(0.05, 0.0)
    assert settling.learn(round_of(0.4, 1.5)) is None
    assert settling.responses == {}


def test_rejected_slices_show_nothing():
    slices = round_of(0.2, 1.3)
    for one in slices:
        one.reasons.append(Reason(ReasonKind.STEAL, "much"))
    settling = settling_of(0.05, 2.0)
    assert settling.learn(slices) is None
    assert (settling.seconds, settling.responses) == (0.05, {})


def test_one_scene_that_settles_slowly_is_found_among_many_that_do_not():
    settling = settling_of(0.05, 2.0)
    for number in range(3):
        slow = slice_of(0.2, 1.5, noise=0.05, seed=77 + number, scene=BESIDE)
        assert settling.learn([*round_of(0.0, 1.0, noise=0.05, seed=number), slow]) is None
    assert settling.seconds > 0.1
    assert settling.slowest == "lead@0 in corun:lead+stream"


def test_a_machine_whose_speed_wanders_is_not_taken_for_one_that_settles():
    def wandering(seed: int) -> Slice:
        draw = random.Random(seed)
        return slice_of(draw.uniform(0.1, 0.5), draw.choice([0.6, 1.6]), noise=0.05, seed=seed)

    def is_fooled(number: int) -> bool:
        settling = settling_of(0.05, 2.0)
        return bool(settling.learn([wandering(1000 * number + k) for k in range(9)])) or settling.seconds > 0.05

    assert sum(map(is_fooled, range(100))) <= 5


def test_a_faint_slow_beginning_is_found_when_rounds_add_up():
    settling, found = settling_of(0.05, 2.0), []
    for seed in range(20):
        assert settling.learn(round_of(0.2, 1.04, noise=0.1, seed=seed, count=2)) is None
        found.append(settling.seconds)
    assert found[0] == 0.05
    assert 0.15 < found[-1] < 0.4


def test_noise_alone_seldom_raises_the_settle_time():
    def is_fooled(seed: int) -> bool:
        settling = settling_of(0.05, 2.0)
        return bool(settling.learn(round_of(0.0, 1.0, noise=0.3, seed=seed))) or settling.seconds > 0.05

    assert sum(map(is_fooled, range(200))) <= 10  # one in twenty


def test_rounds_add_up_to_what_they_are_together():
    rounds = [round_of(0.2, 1.2, noise=0.1, seed=seed) for seed in range(4)]
    rounds.append([slice_of(0.1, 1.3, noise=0.1, seed=9, scene=BESIDE)] * 3)
    parts, whole = settling_of(0.05, 2.0), settling_of(0.05, 2.0)
    for part in rounds:
        parts.learn(part)
    whole.learn([each for part in rounds for each in part])
    assert parts.steady_after == whole.steady_after
    assert parts.about()["curves"] == whole.about()["curves"] == {"lead@0": 39}
    response = whole.about()["response"]["lead@0"]
    assert parts.about()["response"]["lead@0"] == pytest.approx(response)
    assert max(response[2:7]) < -0.1 < -0.05 < min(response[12:23])  # slower at first, as it was made


def test_slices_of_another_length_are_looked_at_anew():
    settling = settling_of(0.05, 2.0)
    settling.learn(round_of(0.0, 1.0))
    settling.watch(WATCHED)
    assert settling.about()["curves"] == {"lead@0": 9}
    settling.watch(2 * WATCHED)
    assert settling.responses == {}
    assert settling.watched == 2 * WATCHED


@given(st.floats(0.001, 0.05), st.integers(0, 10**6))
def test_a_constant_rate_gives_a_flat_curve(step, seed):
    beats = [(int(number * step * 1e9), number + seed) for number in range(int(WATCHED / step) + 1)]
    curve = curve_of(beats, 0, WATCHED)
    assert curve is not None
    assert len(curve) == BINS
    assert all(value == pytest.approx(0, abs=1e-3) for value in curve if value is not None)


def test_a_process_with_too_few_steps_has_no_curve():
    assert curve_of([(1, 1), (2, 2), (3, 3)], 0, WATCHED) is None


def test_one_odd_bin_late_in_the_slice_is_not_looked_at():
    response = Response()
    for number in range(12):
        response.add([0.001 * number] * (BINS - 2) + [0.5, 0.5])
    assert last_off({"alone": response}) == (-1, "")


def test_an_antagonist_that_settles_slowly_has_more_left_out_of_its_own_slices_alone():
    settling = settling_of(0.05, 2.0)
    slices = round_of(0.0, 1.0, noise=0.05)
    for number, each in enumerate(slices):
        each.since_switch["stream@1"] = records(0.2, 1.3, 0.05, seed=500 + number)
        each.since_switch["slow@2"] = records(0.5, 1.3, 0.05, seed=900 + number)
    assert settling.learn(slices) is None
    assert settling.seconds == settling.seconds_of("lead@0") == 0.05
    assert 0.2 <= settling.seconds_of("stream@1") <= 0.4
    assert settling.seconds_of("slow@2") == WATCHED / 2
