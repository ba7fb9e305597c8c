"""When caches that were emptied are full again: known warm-ups, noise, and members of which too little is known."""

import math
import random
from types import SimpleNamespace

import pytest

from castmates.runner.rounds.lead_in import PASSES, RATE, lead_in
from castmates.runner.rounds.pace import Pace, Steps

LEAD, OTHER = "lead@0", "other@1"
SCENES = [SimpleNamespace(active=(LEAD, OTHER), placebos=())]
SLICE_S, STEP_S = 0.25, 0.01


class Stage:
    """Two members whose rates are functions of time, in units a second, on a clock that stands between turns."""

    def __init__(self, rate, other=lambda _s: 1000.0, held=None, step_s=STEP_S):
        self.rates = {LEAD: rate, OTHER: other}
        self.held, self.step_s = held, {LEAD: step_s, OTHER: STEP_S}
        self.cast = {name: SimpleNamespace(records=[]) for name in self.rates}
        self.evictors = {"evictor:2": 2000}  # of caches of 1000 bytes
        self.hardware = SimpleNamespace(
            occupancies=lambda: {LEAD: self.held and self.held(self.now / 1e9), OTHER: None}
        )
        self.now, self.turns = 0, []

    def occupancies(self):
        return {LEAD: self.held and self.held(self.now / 1e9), OTHER: None}

    def exchange(self, names):
        self.turns.append(names)

    def forget_beats(self):
        self.begun = self.now

    def look_after(self):
        pass

    def now_ns(self):
        return self.now

    def rest_until(self, t_ns):
        self.now = t_ns

    def read_beats(self):
        for name, process in self.cast.items():
            steps = int((self.now - self.begun) / 1e9 / self.step_s[name])
            at_s = [self.begun / 1e9 + number * self.step_s[name] for number in range(steps)]
            units = [0.0]
            for t_s in at_s[1:]:
                units.append(units[-1] + self.rates[name](t_s) * self.step_s[name])
            process.records = [(int(t_s * 1e9), 1000 * done) for t_s, done in zip(at_s, units, strict=False)]


def pace_of(step_s=STEP_S, slow=()):
    steps = Steps({}, {LEAD: step_s, OTHER: STEP_S}, 0.001)
    return Pace(SLICE_S, 0.01, 0.1, frozenset(slow), steps, 8)


def warming(size, tau):
    """A rate that comes up from exp(-size) of its end, with a time constant of so many passes."""
    return lambda t_s: 1000 * math.exp(-size * math.exp(-t_s / (tau * SLICE_S)))


@pytest.mark.parametrize("tau", [1, 2, 4, 8, 12, 15, 30])
@pytest.mark.parametrize("size", [0.05, 0.3, 0.7])
def test_a_slow_warm_up_is_steady_only_when_little_is_still_to_come(size, tau):
    """The table of a reviewer: 34 % were still to come of a rate that was called steady after two passes."""
    stage = Stage(warming(size, tau))
    led_in = lead_in(stage, SCENES, pace_of(), emptied=True)
    to_come = size * math.exp(-led_in.passes / tau)
    assert led_in.steady <= (to_come <= RATE)
    assert led_in.steady or tau >= 4
    assert led_in.passes <= PASSES


@pytest.mark.parametrize("tau", [8, 15])
def test_longer_passes_let_it_come_to_its_end(tau):
    stage = Stage(warming(0.3, tau))
    led_in = lead_in(stage, SCENES, pace_of(), emptied=True, times=8)
    assert led_in.steady
    assert 0.3 * math.exp(-stage.now / 1e9 / SLICE_S / tau) <= RATE


def noisy(curve, noise, seed):
    """The same in passes that scatter."""
    draw, of_pass = random.Random(seed), {}
    return Stage(lambda s: curve(s) * math.exp(of_pass.setdefault(int(s / SLICE_S), draw.gauss(0, noise))))


@pytest.mark.parametrize("noise", [0.002, 0.005, 0.02, 0.1])
def test_noise_alone_ends_and_is_mostly_steady(noise):
    led_in = [lead_in(noisy(lambda _s: 1000.0, noise, seed), SCENES, pace_of(), emptied=True) for seed in range(60)]
    assert max(each.passes for each in led_in) <= PASSES
    assert sum(each.not_steady for each in led_in) <= 6


@pytest.mark.parametrize("noise", [0.002, 0.005, 0.01])
@pytest.mark.parametrize("tau", [8, 15, 30])
def test_noise_hides_few_slow_warm_ups(noise, tau):
    led_in = [lead_in(noisy(warming(0.3, tau), noise, seed), SCENES, pace_of(), emptied=True) for seed in range(60)]
    assert sum(each.not_steady for each in led_in) >= 45


def test_a_cache_that_fills_while_rates_are_steady():
    full_after_s = 9 * SLICE_S
    led_in = lead_in(Stage(lambda _s: 1000.0, held=lambda s: min(1.0, s / full_after_s) * 900), SCENES, pace_of(), True)
    assert led_in.steady
    assert led_in.passes >= 9
    never = lead_in(Stage(lambda _s: 1000.0, held=lambda s: 10 * s / SLICE_S), SCENES, pace_of(), emptied=True)
    assert never.why == f"what {LEAD} holds of the caches still changed"


@pytest.mark.parametrize("step_s", [0.1, 0.2])
def test_a_training_job_with_few_steps_in_a_slice_gets_longer_turns(step_s):
    """Steps of 100 ms in slices of 250 ms."""
    stage = Stage(lambda _s: 1000.0, step_s=step_s)
    assert lead_in(stage, SCENES, pace_of(step_s), emptied=True).steady
    assert stage.now / 1e9 / len(stage.turns) == pytest.approx(4 * step_s)


def test_what_is_not_known_is_not_steady():
    none = lead_in(Stage(lambda _s: 1000.0, step_s=10.0), SCENES, pace_of(), emptied=True)
    assert none.why == f"the rate of {LEAD} is not known"
    assert none.not_steady
    # Members that are too slow for slices are looked at by their occupancy, where it is read.
    assert lead_in(Stage(lambda _s: 1000.0, step_s=10.0), SCENES, pace_of(slow=[LEAD]), emptied=True).steady


def test_where_nothing_was_emptied_every_scene_runs_once():
    stage = Stage(warming(0.7, 30))
    led_in = lead_in(stage, SCENES * 2, pace_of(step_s=0.2), emptied=False)
    assert (led_in.passes, led_in.steady) == (1, None)
    assert stage.turns == [[LEAD, OTHER]] * 2
    assert stage.now == 2 * int(SLICE_S * 1e9)
