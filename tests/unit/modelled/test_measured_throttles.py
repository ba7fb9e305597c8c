"""A modelled machine that takes the curve of a record throttles as the machine did that was measured."""

import json

import pytest
import yaml
from pydantic import ValidationError

from castmates.runner.modelled.balance import balance
from castmates.study.modelled import MachineModel
from castmates.study.rdt_trial import Tried
from castmates.trials.rdt.throttles import curve, figures, for_a_model
from tests.unit.modelled.test_published import EMR, LINE, SPR, XEONS, actor, stream
from tests.unit.rdt_trials import trial
from tests.unit.trials.rdt.simulated import Throttle
from tests.unit.trials.rdt.test_throttles import EMERALD_RAPIDS, SAPPHIRE_RAPIDS

SINGLE = {100: 12.5, 90: 12.5, 80: 12.1, 70: 10.9, 60: 9.3, 50: 7.7, 40: 6.2, 30: 4.6, 20: 3.1, 10: 1.6}


def moved(machine, cores, step):
    (rate,) = balance([actor(machine, "stream", stream(), cores, throttle=step / 100)], machine).rates
    return rate * 1000 * LINE


@pytest.mark.parametrize(("name", "eight"), [(EMR, EMERALD_RAPIDS), (SPR, SAPPHIRE_RAPIDS)])
def test_it_has_the_published_curve(name, eight):
    """The streams of these read a device, which the points have in them."""
    curves = [
        curve(Throttle({step: SINGLE[step] for step in eight}), 1, list(eight)),
        curve(Throttle(eight), 8, list(eight)),
    ]
    record = json.loads(
        json.dumps({"throttles": {"curves": [figures(each) for each in curves], "model": for_a_model(curves, "%")}})
    )
    written = yaml.safe_load(json.dumps(record["throttles"]["model"]))
    machine = MachineModel.model_validate({**XEONS[name], "turbo": 0.0, "throttles": written})
    tried = Tried.of(trial() | {"caches": [record]})
    for number in (1, 8):
        free = moved(machine, range(number), 100)
        for step in eight:
            assert 100 * moved(machine, range(number), step) / free == pytest.approx(tried.left(step)[number], abs=0.02)


def test_between_the_points_it_goes_on_a_line_and_each_cache_counts_for_itself():
    points = [
        {"cores": cores, "step": step, "rate": f"{rate} GB"}
        for cores, step, rate in [(4, 100, 20), (4, 50, 12), (8, 100, 24), (8, 50, 20)]
    ]
    machine = MachineModel(domains=2, cores=8, sockets=1, bandwidth="400 GB", turbo=0.0, throttles=points)
    assert moved(machine, range(2), 50) == pytest.approx(6e9)
    assert moved(machine, range(6), 50) == pytest.approx(16e9)
    assert moved(machine, range(4), 75) == pytest.approx(16e9)
    assert moved(machine, [*range(4), *range(8, 12)], 50) == pytest.approx(24e9)


def test_it_does_not_limit_who_takes_less():
    machine = MachineModel(
        turbo=0.0, throttles=[{"cores": 1, "step": 100, "rate": "12 GB"}, {"cores": 1, "step": 10, "rate": "1 GB"}]
    )
    slow = stream(0.5e9)
    rates = [balance([actor(machine, "slow", slow, (0,), throttle=each)], machine).rates[0] for each in (1.0, 0.1)]
    assert rates[0] == rates[1]


@pytest.mark.parametrize("steps", [[50], [100, 50, 50]])
def test_a_curve_begins_without_a_throttle_and_has_each_step_once(steps):
    with pytest.raises(ValidationError, match="one rate of each step for each number of cores"):
        MachineModel(throttles=[{"cores": 1, "step": step, "rate": "1 GB"} for step in steps])
