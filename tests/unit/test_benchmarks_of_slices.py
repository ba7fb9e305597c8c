"""What the benchmarks read from slices, and how they charge for them."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import edges, perturbation, share
from benchmarks.launches import Measured, control_seconds
from castmates.runner.rounds.pace import Steps, pace_of
from tests.unit.windows_maker import DESIGN

NS = 10**9


def slice_table(rows):
    """Slices in order of time: (round, stretch, cycle, kind, member, counted, watched, switch, close) in seconds."""
    names = ["round", "stretch", "cycle", "kind", "member", "counted", "watched", "switch_ns", "close_ns"]
    table = pd.DataFrame(rows, columns=names)
    table[["switch_ns", "close_ns"]] = (table[["switch_ns", "close_ns"]] * NS).round().astype("int64")
    table["open_ns"] = table["switch_ns"] + NS // 100
    table["first_ns"] = table["open_ns"] + NS // 1000
    table["slice"] = range(1, len(table) + 1)
    return table.assign(role=np.where(table["member"] == "lead", "lead", "antagonist"))


def test_the_breakdown_of_a_launch_adds_up_to_its_time_after_the_barrier():
    # 0.1 s slices with 0.01 s to settle, 0.02 s for the lead and 0.05 s for the other; edges of 0.02 s.
    table = slice_table(
        [
            (1, 1, 1, "alone", "lead", True, False, 1.00, 1.10),
            (1, 1, 1, "antagonist-alone", "other", True, False, 1.12, 1.22),
            (1, 1, 2, "alone", "lead", False, False, 1.24, 1.34),
            (1, 1, 2, "antagonist-alone", "other", False, False, 1.36, 1.46),
            (1, 1, 3, "alone", "lead", False, True, 1.48, 1.78),
            (1, 2, 1, "alone", "lead", True, False, 2.00, 2.10),
            (2, 1, 1, "corun", "lead", True, False, 3.00, 3.10),
        ]
    )
    beside = table[table["kind"] == "corun"].assign(member="other", role="antagonist", counted=False)
    table = pd.concat([beside, table]).assign(reasons="")  # who does not end the slice decides nothing
    table.loc[table["slice"] == 3, "reasons"] = "steal: 5 %"
    after = {"rounds": 4.0, "cost windows": 0.3, "dismissal": 0.2, "clean-up": 0.1, "record": 9.0}
    # What is left out is each slice's own: found late, it is less of those that were measured before.
    table["steady_s"] = np.where(table["member"] == "other", 0.05, np.where(table["round"] == 2, 0.03, 0.02))
    parts = share.breakdown(table, after)
    assert sum(parts.values()) == pytest.approx(4.6)
    assert (parts["counted"], parts["settle"]) == pytest.approx((2 * 0.08 + 0.07 + 0.05, 2 * 0.02 + 0.03 + 0.05))
    assert (parts["rejected"], parts["dropped"], parts["watched"]) == pytest.approx((0.1, 0.1, 0.3))
    assert (parts["edges"], parts["stretches"], parts["rounds"]) == pytest.approx((0.08, 0.22, 0.9))
    assert parts["warm-up"] == pytest.approx(4.0 - 2.1)


def test_controls_are_charged_from_their_switch_to_the_next_ones():
    table = slice_table(
        [
            (1, 1, 1, "alone", "lead", True, False, 1.00, 1.10),
            (1, 1, 1, "antagonist-alone", "other", True, False, 1.12, 1.22),
            (1, 1, 1, "corun", "lead", True, False, 1.25, 1.35),
            (1, 1, 2, "placebo", "lead", True, False, 1.36, 1.46),
            (2, 1, 1, "alone-again", "lead", True, False, 3.00, 3.10),
            (2, 1, 1, "alone", "lead", True, False, 3.15, 3.25),
        ]
    )
    measured = Measured(None, {}, None, 5.0, False, table)
    assert control_seconds(measured) == pytest.approx(0.13 + 0.10 + 0.15)


def test_edges_lie_between_slices_of_a_stretch_that_are_not_watched():
    table = slice_table(
        [
            (1, 1, 1, "alone", "lead", True, False, 1.000, 1.100),
            (1, 1, 1, "antagonist-alone", "other", True, False, 1.102, 1.200),
            (1, 1, 2, "alone", "lead", True, True, 1.250, 1.400),
            (1, 1, 3, "alone", "lead", True, False, 1.450, 1.500),
            (1, 2, 1, "alone", "lead", True, False, 1.600, 1.700),
            (1, 2, 1, "corun", "lead", True, False, 1.703, 1.800),
        ]
    )
    both = pd.concat([table, table.assign(member="other", role="antagonist")])
    assert edges.edges(both) == pytest.approx([2.0, 3.0])
    later = table.assign(cycle=[1, 2, 2, 3, 1, 1])
    assert edges.edges(later, between_cycles=True) == pytest.approx([2.0])
    assert edges.first_steps(table, "lead") == pytest.approx([11.0] * 4)
    beating = table.assign(beats=6, last_ns=table["first_ns"] + NS // 100)
    assert edges.steps(beating, "lead") == pytest.approx([2.0] * 4)


def test_noise_alone_is_no_perturbation_in_either_direction():
    turns = perturbation.Turns("", share=0.4)
    rng = np.random.default_rng(8)
    for arm in perturbation.Arm:
        turns.rates[arm] += np.exp(rng.normal(0, 0.2, 20_000)).tolist()
    assert turns.loss() == pytest.approx(0.0, abs=0.006)


def test_a_launch_loses_by_both_kinds_of_slices_as_often_as_it_has_them():
    turns = perturbation.Turns("", share=0.25)
    for arm, rate in zip(perturbation.Arm, (1.0, 0.99, 0.9), strict=True):
        turns.rates[arm] += [rate] * 3
    assert turns.loss() == pytest.approx(-0.75 * np.log(0.99) - 0.25 * np.log(0.9))


@pytest.mark.parametrize(
    ("length", "watch", "slow", "share"),
    [(0.12, 0.0, [], 1 / 5), (0.12, 0.3, [], 1 / 6), (0.12, 0.0, ["a"], 1 / 6), (0.52, 0.3, [], 1.0)],
)
def test_the_share_of_watched_slices_is_that_of_a_launch(length, watch, slow, share):
    steps = Steps({"alone": 0.001}, {"lead": 0.001, "a": 0.2 if slow else 0.001}, 0.0001)
    design = DESIGN.model_copy(update={"slice": length, "window": 0.5, "steps": 10})
    pace = pace_of(design, steps, "lead", 0.02, watch)
    assert perturbation.watched_share(pace) == pytest.approx(share)
