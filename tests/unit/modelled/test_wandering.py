"""A modelled machine that wanders, and a launch on it: what short slices resolve, and one long slice does not."""

import math

import numpy as np
import pandas as pd
import pytest

from castmates.runner.modelled.launch import processes
from castmates.runner.modelled.world import NANO, World
from castmates.study.modelled import Noise
from tests.unit.modelled.makers import STUDY, project_of
from tests.unit.modelled.test_launch import played

pytestmark = pytest.mark.simulation  # forty seconds, and the model it tests changes seldom

LAUNCHES, ROUNDS = 3, 20
LONG = 1.6  # seconds: one slice makes a window
PAIRS = (
    ("ranking@1", "alone", "corun:ranking+flood"),
    ("ranking@1", "alone", "placebo:2"),
    ("ranking@1", "alone", "alone-again"),
    ("flood@2", "antagonist-alone:flood@2", "corun:ranking+flood"),
)


def wandering(length):
    """A study of a machine that wanders, in slices of this length."""
    return f"""
name: example
platform: modelled
leads: [ranking]
antagonists: [flood]
controls: null
budget: {{launches: {LAUNCHES}, rounds: {ROUNDS}, window: 1.5, longest_launch: 3600, slice: {length}}}
model: {{noise: {{window: 20%, effect: 5%, memory: 1, scene: 0%, launch: 0%, drift: 0%}}}}
"""


def logs_of(windows):
    """Log rates by round; member and scene across."""
    found = windows.assign(log=lambda table: np.log(table["rate"]))
    return found.pivot_table(index="round", columns=["member", "scene"], values="log")


def contrasts(launches):
    """Of each pair of scenes and each launch: what was found, its standard error over rounds, and the truth."""
    found = []
    for _, record, windows, *_ in launches:
        logs = logs_of(windows)
        for member, base, scene in PAIRS:
            difference = logs[member, base] - logs[member, scene]
            true = (record["truth"][one][member]["rate"] for one in (base, scene))
            error = math.log(next(true) / next(true)) - difference.mean()
            found.append({"member": member, "scene": scene, "error": error, "standard_error": difference.sem()})
    return pd.DataFrame(found)


def typical(found):
    """The standard error of each contrast in a typical launch."""
    return found.groupby(["member", "scene"])["standard_error"].agg(lambda own: math.sqrt((own**2).mean()))


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    """The same wandering machine in launches, measured in slices as they are found, and in one long slice a round.

    Several launches, because the length that is found depends on the draw: the settle time is read from a machine
    that wanders.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        return {
            length: [
                played(tmp_path_factory.mktemp("launch"), monkeypatch, wandering(length), number)
                for number in range(1, LAUNCHES + 1)
            ]
            for length in ("auto", LONG)
        }


def test_effects_hold_the_truth_though_the_machine_wanders_by_a_fifth(launches):
    for _, record, windows, *_ in launches["auto"]:
        assert record["pace"]["slice"] < 0.25
        assert (windows["slices"] >= 8).all()
        assert windows["valid"].all()
    found = contrasts(launches["auto"])
    assert (found["error"].abs() < 4 * found["standard_error"]).all(), found
    assert (typical(found) < 0.015).all(), found


def test_one_long_slice_a_round_does_not_resolve_them(launches):
    short, long = (typical(contrasts(some)) for some in launches.values())
    assert all(set(windows["slices"]) == {1} for _, _, windows, *_ in launches[LONG])
    assert (long > 3 * short).all(), long / short
    over_eight_rounds = 2.365 * math.sqrt(ROUNDS / 8)  # standard error of these, to the half-width of a 95 % interval
    closely, roughly = (over_eight_rounds * side["ranking@1", "corun:ranking+flood"] for side in (short, long))
    assert closely < 0.06 < 0.15 < roughly


def test_no_step_spans_two_slices(launches):
    """Heartbeats of a slice lie between its edges, and what is beyond the settle time alone makes the rate."""
    _, record, windows, _, steps = launches["auto"][0]
    inside = steps.groupby(["slice", "member"]).agg(
        first=("t_ns", "min"), last=("t_ns", "max"), beats=("t_ns", "size"), done=("units", lambda u: u.max() - u.min())
    )
    lengths = (inside["last"] - inside["first"]) / 1e9
    assert lengths.max() < 2 * max(record["pace"]["slice"], record["pace"]["watch"])
    by_window = steps.drop_duplicates(["slice", "member"]).set_index(["slice", "member"])["window"]
    sums = pd.DataFrame({"window": by_window, "units": inside["done"].astype(float), "seconds": lengths})
    sums = sums.groupby(["window", "member"]).sum()
    rates = windows.set_index(["window", "member"])
    pd.testing.assert_series_equal(sums["units"], rates["units"], check_names=False, check_like=True)
    assert (sums["seconds"] - rates["progress_s"]).abs().max() < 1e-6
    assert (rates["rate"] * rates["progress_s"] - rates["units"]).abs().max() < 1e-6


def luck(world, names, gap, count):
    """The factor on the rate of the first of these, every so many seconds."""
    found = []
    for _ in range(count):
        world.let_run(names)
        found.append(math.log(world._luck(names[0], world.balance_of(names, {}).actors)))
        world.now_ns += int(gap * NANO)
    return np.array(found)


@pytest.mark.parametrize(("gap", "memory"), [(0.1, 1.0), (1.0, 1.0), (1.0, 0.25)])
@pytest.mark.parametrize(("alone", "spread"), [(True, 0.1), (False, math.hypot(0.1, 0.2))])
def test_a_rate_wanders_as_far_and_as_fast_as_the_model_states(tmp_path, gap, memory, alone, spread):
    launch = project_of(tmp_path, STUDY).plan().launches[0]
    noise = Noise(window=0.1, effect=0.2, memory=memory, scene=0.0, launch=0.0, drift=0.0)
    machine = launch.design.model.model_copy(update={"noise": noise})
    names = ["ranking@1"] if alone else ["ranking@1", "flood@2"]
    world = World(machine, processes(launch.cohort, ()), seed=3)
    found = luck(world, names, gap, 4000)
    kept = math.exp(-gap / memory)
    error = math.sqrt((1 + kept) / (1 - kept) / 4000)  # of a mean, in standard deviations
    assert abs(found.mean()) < 4 * spread * error
    assert found.std() == pytest.approx(spread, rel=4 * error)
    assert np.corrcoef(found[:-1], found[1:])[0, 1] == pytest.approx(kept, abs=0.07)
