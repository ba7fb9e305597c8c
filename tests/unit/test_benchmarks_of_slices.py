"""What the benchmarks read from slices, and how they charge for them."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import launches, perturbation
from benchmarks.launches import Measured, control_seconds
from benchmarks.machine import ROOT
from castmates.runner.rounds.pace import Steps, pace_of
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.unit.windows_maker import DESIGN

NS = 10**9


def slice_table(rows):
    """Slices in order of time: (round, stretch, cycle, kind, member, counted, watched, switch, close) in seconds."""
    names = ["round", "stretch", "cycle", "kind", "member", "counted", "watched", "switch_ns", "close_ns"]
    table = pd.DataFrame(rows, columns=names)
    table[["switch_ns", "close_ns"]] = (table[["switch_ns", "close_ns"]] * NS).round().astype("int64")
    table["slice"] = range(1, len(table) + 1)
    return table.assign(role=np.where(table["member"] == "lead", "lead", "antagonist"))


def test_a_benchmarks_own_study_keeps_the_limits_of_the_one_it_is_from():
    known = launches.study_of(ROOT / "config" / "config.yaml", 7, rounds=9)
    again = read_keys(Study, launches.text_of(known, "chase", ["compute", "gups"]), "the text")
    assert (again.margin, again.seed, again.budget.rounds) == (known.margin, 7, 9)
    assert (again.leads, again.antagonists) == (["chase"], ["compute", "gups"])
    assert (again.budget.launches, again.budget.precision) == (1, None)


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
