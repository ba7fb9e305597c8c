"""What other programs take of a member's CPUs: known answers, and what they leave of the loss."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.effects.effects import estimate_effects, taken
from castmates.study.spec import Partition, Share
from tests.unit import partition_maker as maker
from tests.unit.printed_intervals import assert_told
from tests.unit.windows_maker import cohort, mix, plan, written

LEAD, STREAM = "dlrm@0", "stream@1"
ONE = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=4)
OURS = ["loss_per_cpu_pct", "loss_per_cpu_low", "loss_per_cpu_high", "others_points", "others_low", "others_high"]
SHARES = st.floats(0, 0.9)
SPEEDS = st.floats(0.1, 1)


def read(windows, share, cpus=1, seconds=2.0):
    """The same with what its clocks show where others take this share of a busy member's CPUs, and its rate with it."""
    shares = windows["scene"].map(share)
    whole = cpus * seconds
    return windows.assign(
        rate=windows["rate"] * (1 - shares), read_s=seconds, cpu_s=whole * (1 - shares), waited_s=whole * shares
    )


def lead(windows, of=ONE, baseline="alone"):
    table = estimate_effects(of, windows, 0.02)
    return table[(table["member"] == LEAD) & (table["baseline"] == baseline)].iloc[0]


def shares(alone=0.0, corun=0.0):
    return lambda scene: corun if scene.startswith("corun") else alone


def speed(beside):
    return lambda _launch, _number, scene, _member: 100.0 * (beside if scene.startswith("corun") else 1.0)


@settings(max_examples=25, deadline=None)
@given(alone=SHARES, corun=SHARES, beside=SPEEDS)
def test_what_others_take_and_what_the_neighbour_does_make_up_the_loss(alone, corun, beside):
    found = lead(read(written(ONE, speed(beside)), shares(alone, corun)))
    assert found["others_points"] == pytest.approx(100 * (1 - (1 - corun) / (1 - alone)), abs=1e-9)
    assert found["loss_per_cpu_pct"] == pytest.approx(100 * (1 - beside), abs=1e-9)
    left = (1 - found["others_points"] / 100) * (1 - found["loss_per_cpu_pct"] / 100)
    assert found["loss_pct"] == pytest.approx(100 * (1 - left), abs=1e-9)


@pytest.mark.parametrize(
    ("cpus", "cpu_s", "waited_s", "expected"),
    [
        (1, 2.0, 0.0, 0.0),
        (1, 1.0, 1.0, 0.5),
        (1, 1.0, 0.0, 0.0),  # it slept
        (1, 1.0, 0.4, 0.2),  # it waited, and slept
        (2, 4.0, 8.0, 0.0),  # six threads on two CPUs wait for each other
        (2, 3.0, 8.0, 0.25),  # and for others, no longer than they lacked a CPU
        (1, 2.01, 0.002, 0.001),  # a clock that was late at the opening edge
        (1, 1.99, 0.002, 0.001),  # and at the closing edge
        (1, 1.0, 1.01, 0.505),
        (1, math.nan, 1.0, math.nan),
        (1, 1.0, math.nan, math.nan),
    ],
)
def test_the_share_of_others(cpus, cpu_s, waited_s, expected):
    windows = pd.DataFrame({"member": LEAD, "read_s": [2.0], "cpu_s": [cpu_s], "waited_s": [waited_s]})
    assert taken(windows, pd.Series([float(cpus)])).tolist() == pytest.approx([expected], nan_ok=True)


def test_late_clocks_make_no_share_smaller():
    """Of who never rests, in slices of 60 ms with clocks that are late by up to 4 ms."""
    rng = np.random.default_rng(5)
    late = rng.uniform(0, 0.004, (2, 5000))
    share = rng.uniform(0, 0.02, 5000)
    windows = pd.DataFrame({"member": LEAD, "read_s": 0.06, "waited_s": 0.06 * share})
    windows["cpu_s"] = 0.06 * (1 - share) + late[0] - late[1]
    assert taken(windows, pd.Series(np.ones(5000))).mean() == pytest.approx(share.mean(), rel=1e-9)
    others = windows.assign(waited_s=3 * 0.06 - windows["cpu_s"], member=STREAM)  # three threads
    both = pd.concat([windows, others], ignore_index=True)
    found = taken(both, pd.Series(np.ones(10_000))).groupby(both["member"]).mean()
    assert found[STREAM] == pytest.approx(share.mean(), abs=0.002)
    assert found[LEAD] == pytest.approx(share.mean(), rel=1e-9)


@pytest.mark.parametrize(("corun", "seen"), [(0.02, True), (0.004, False), (0.0, False)])
def test_only_a_difference_that_is_proven_and_matters_is_a_caution(corun, seen):
    rng = np.random.default_rng(4)
    windows = read(written(ONE, speed(0.9)), lambda scene: 0.05 + shares(0, corun)(scene))
    waited = windows["waited_s"] * rng.uniform(0.999, 1.001, len(windows))
    assert bool(lead(windows.assign(waited_s=waited))["others_seen"]) is seen
    noisy = windows["waited_s"] * rng.uniform(0, 2, len(windows))
    assert not lead(windows.assign(waited_s=noisy))["others_seen"]
    few = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=2)
    assert not lead(read(written(few, speed(0.9)), shares(0, corun)), few)["others_seen"]


def test_launches_from_before_and_those_who_wait_for_their_own_mix_have_no_figure():
    windows = written(ONE, speed(0.9))
    assert lead(windows)[OURS].isna().all()
    same = plan([cohort("dlrm-1", mix(LEAD, "stream@0"))], launches=4)
    found = lead(read(written(same, speed(0.9)), shares(0, 0.5)), same)
    assert found[["others_points", "others_low"]].isna().all()
    assert found["loss_per_cpu_pct"] == pytest.approx(10)
    one = mix(LEAD, STREAM)
    slow = Partition(name="slow", shares=(Share(member=LEAD, quota=50),))
    both = maker.made([one, maker.under(one, slow)])
    table = estimate_effects(both, read(written(both, speed(0.9)), shares(0, 0.5)), 0.02)
    rows = table[(table["member"] == LEAD) & (table["baseline"] == "alone")].set_index("partition")
    assert rows["others_points"].isna().to_dict() == {"unmanaged": False, "slow": True}


def test_the_intervals_cover_what_others_took_and_what_is_lost_in_a_second_of_cpu():
    """Launches differ in both, and windows too; some of others' load is there alone."""
    studies = plan([cohort(f"c-{number}", mix(LEAD, f"beside{number}@1")) for number in range(400)], launches=6)
    windows, rng = written(studies, speed(1.0)), np.random.default_rng(7)
    launches = windows.groupby(["cohort", "launch"]).ngroup().to_numpy()
    beside = windows["scene"].str.startswith("corun").to_numpy()

    def logs(alone, corun, spread):
        of_launch = np.where(beside, rng.normal(0, spread, launches.max() + 1)[launches], 0.0)
        return np.where(beside, corun, alone) + of_launch + rng.normal(0, spread, len(windows))

    left = np.exp(-logs(0.04, 0.07, 0.008))
    assert left.max() < 1
    windows["rate"] = left * np.exp(-logs(0.0, 0.1, 0.02))
    windows = windows.assign(read_s=2.0, cpu_s=2 * left, waited_s=2 * (1 - left))
    found = estimate_effects(studies, windows, 0.02)
    found = found[(found["role"] == "lead") & (found["baseline"] == "alone")]
    for name, log in (("others", 0.03), ("loss_per_cpu", 0.1)):
        true = -100 * math.expm1(-log)
        covers = ((found[f"{name}_low"] < true) & (true < found[f"{name}_high"])).mean()
        assert_told("effects", f"{name}_low", covers)
