"""What steps of the throttle do, by curves that were measured on real processors (GB/s of eight streams)."""

from contextlib import nullcontext

import pytest

from castmates.study.cache import Bandwidth
from castmates.study.rdt_trial import WORDS
from castmates.trials.rdt.throttles import (
    AGREEMENT,
    RULE,
    SENTENCES,
    agreement,
    curve,
    curves_together,
    equal_steps,
    figures,
    groups,
    in_words,
    judge,
    steps_of,
)
from tests.unit.caches import PERCENT
from tests.unit.trials.rdt.simulated import Throttle

# Of a Xeon Platinum 8462Y+ under 100, 90, 50, 30, 20 and 10 %; what lies between two equal ones is as they are.
SAPPHIRE_RAPIDS = {
    100: 23.51,
    90: 23.51,
    80: 23.51,
    70: 23.51,
    60: 23.51,
    50: 23.51,
    40: 23.5,
    30: 23.5,
    20: 21.83,
    10: 12.42,
}
EMERALD_RAPIDS = {100: 28.66, 30: 23.95, 20: 15.54, 10: 8.67}  # Xeon Platinum 8592+
NOTHING = dict.fromkeys(SAPPHIRE_RAPIDS, 23.5)  # a Gold 6226R, as a user reported
SKYLAKE = {step: 10.0 * {70: 90, 80: 90}.get(step, step) for step in range(100, 0, -10)}


def tried(*machines):
    return [curve(Throttle(rates), cores, list(rates)) for cores, rates in zip((1, 4, 8), machines, strict=False)]


@pytest.mark.parametrize(
    ("machines", "verdict", "same", "becomes"),
    [
        ([SAPPHIRE_RAPIDS] * 2, "some steps are equal", [[100, 90, 80, 70, 60, 50, 40, 30], [20], [10]],
         {90: 100, 80: 100, 70: 100, 60: 100, 50: 100, 40: 100, 30: 100}),
        ([EMERALD_RAPIDS], "works", [[100], [30], [20], [10]], {}),
        ([NOTHING] * 3, "no effect", [list(NOTHING)], dict.fromkeys(range(10, 100, 10), 100)),
        ([SKYLAKE], "some steps are equal", [[100], [90, 80, 70], [60], [50], [40], [30], [20], [10]],
         {80: 90, 70: 90}),
        # What some number of cores tells apart is not one step.
        ([NOTHING, SKYLAKE], "some steps are equal", [[100], [90, 80, 70], [60], [50], [40], [30], [20], [10]],
         {80: 90, 70: 90}),
    ],
)  # fmt: skip
def test_steps_that_do_the_same_are_one(machines, verdict, same, becomes):
    curves = tried(*machines)
    assert judge(curves) == verdict
    assert [list(each) for each in groups(curves)] == same
    assert dict(equal_steps(curves)) == becomes


def test_what_the_noise_hides_is_not_called_equal():
    curves = [curve(Throttle(NOTHING, noise=0.3), 8, list(NOTHING))]
    assert judge(curves) == "undecided"
    assert equal_steps(curves) == ()


def together(noise, seed):
    machines = {
        cores: Throttle(rates, noise, seed=seed + cores) for cores, rates in ((1, SKYLAKE), (8, SAPPHIRE_RAPIDS))
    }
    return curves_together(lambda cores: nullcontext(machines[cores]), list(machines), list(SKYLAKE))


def test_pairs_that_only_all_curves_together_compare_are_decided_too():
    """One core tells 90 and 60 % apart, so eight, which stopped without that pair, are asked for it as well."""
    assert {judge(together(0.01, seed)) for seed in range(60)} == {"some steps are equal"}


def test_what_stays_open_has_had_every_look():
    left = [curves for seed in range(20) if judge(curves := together(0.03, seed)) == "undecided"]
    assert left
    assert all(max(len(each.windows[100]) for each in curves) == RULE.looks[-1] for curves in left)


def test_intervals_hold_the_truth():
    """Of all steps, looks and numbers of cores together, and so of one more often than it is said."""
    held = 0
    for seed in range(400):
        found = figures(curve(Throttle({100: 20.0, 50: 12.0, 10: 3.0}, noise=0.02, seed=seed), 8, [100, 50, 10]))
        held += all(
            point["low"] <= percent <= point["high"]
            for point, percent in zip(found["curve"], (100, 60, 15), strict=True)
        )
    assert held >= 388  # 99 % are 396; the binomial's 99.9 % bound


def test_the_curve_is_in_shares_of_the_unthrottled_rate_with_intervals():
    found = figures(tried(EMERALD_RAPIDS)[0])
    points = {point["step"]: point for point in found["curve"]}
    assert points[30]["percent"] == pytest.approx(100 * 23.95 / 28.66, rel=0.01)
    assert points[30]["low"] < 100 * 23.95 / 28.66 < points[30]["high"]
    assert points[30]["low"] < points[30]["percent"] < points[30]["high"]
    assert points[10]["bytes_per_s"] == pytest.approx(8.67e9, rel=0.01)
    assert found["cores"] == 1


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [(1.02, "agrees"), (1.0, "agrees"), (0.5, "differs"), (2.0, "differs"), (0.0, "differs"), (None, "not counted")],
)
def test_what_the_monitor_counts_is_compared_with_the_programs_own_count(counts, verdict):
    curves = [curve(Throttle({100: 20.0}, counts=counts), 1, [100])]
    assert agreement(curves) == verdict
    assert set(AGREEMENT) == set(WORDS["traffic"])


@pytest.mark.parametrize(
    ("bandwidth", "steps"),
    [
        (PERCENT, [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]),
        (Bandwidth(unit="%", least=20, step=20, most=100), [100, 80, 60, 40, 20]),
        (Bandwidth(unit="%", least=1, step=1, most=100), [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]),
        (Bandwidth(unit="1/8 GB/s", least=1, step=1, most=4096), [4096, 1024, 512, 256, 128, 64, 32, 16, 8]),
        (Bandwidth(unit="MiB/s", least=10, step=10, most=4294967200), [4294967200]),  # the kernel regulates these
        (None, []),
    ],
)
def test_steps_to_try(bandwidth, steps):
    assert steps_of(bandwidth) == steps


def test_every_word_has_a_sentence():
    assert set(SENTENCES) == set(WORDS["throttles"])
    said = in_words(tried(SAPPHIRE_RAPIDS), "%")
    assert "30 to 100 %" in said
    assert said.endswith(".")


def test_eighths_of_a_gb_per_s_are_said_in_gb_per_s():
    said = in_words(tried({2048: 30.0, 64: 30.0, 8: 1.0}), "1/8 GB/s")
    assert "The same are 8 to 256 GB/s." in said
    assert "8 GB/s: 100, 1 GB/s: 3." in said
    assert "1/8" not in said
