"""Counts in the phases of a step: per step, whatever part of the stays was counted; alone and beside others, paired."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.explanations.counted_metrics import IPC
from castmates.analysis.explanations.phases import PHASE_COUNTS, better_source
from castmates.results.columns.launch import COUNTERS
from castmates.results.columns.study import frame
from tests.unit.phases.by_phase import phase_counts
from tests.unit.phases.test_losses import known, tables

# Per step alone and beside: of each phase instructions, cycles and misses.
ALONE = {"input": (1e6, 2e6, 1e3), "forward": (8e6, 4e6, 4e3)}
BESIDE = {"input": (1e6, 2e6, 1e3), "forward": (8e6, 8e6, 12e3)}
EVENTS = ("instructions", "cycles", "LLC-load-misses")
IN_STEP = {"input": (0.010, 0.010), "forward": (0.040, 0.050)}  # seconds of a step, as `known` has them


def counts(windows, source="in-process", covered=lambda _: 3.0, spoil=lambda row: row):
    """What was counted in the phases of these windows, of so many steps; nothing here was measured."""
    rows = []
    for window in windows.to_dict("records"):
        beside = window["kind"] == "corun"
        launch = 1 + 0.1 * window["launch"]
        for phase, values in (BESIDE if beside else ALONE).items():
            for event, value in zip(EVENTS, values, strict=True):
                steps = covered(window)
                same = {
                    name: window[name] for name in ("study", "cohort", "launch", "window", "round", "scene", "member")
                }
                row = same | {"platform": "measured", "event": event, "set": "phases", "value": steps * value,
                              "status": "counted" if source == "in-process" else "scaled", "running": np.nan,
                              "scope": "process", "source": source, "phase": phase, "note": "",
                              "seconds": steps * launch * IN_STEP[phase][beside]}  # fmt: skip
                if row := spoil(row):
                    rows.append(row)
    return frame(rows, COUNTERS)


def found(launches=3, rounds=2, **more):
    steps, windows = tables(launches, rounds, known)
    return phase_counts([steps], [counts(windows, **more)], windows)


def test_each_phase_has_its_own_counts_per_step_and_their_change():
    table = found()
    assert list(table.columns) == list(PHASE_COUNTS)
    assert list(table["phase"].unique()) == ["input", "forward"]
    own = table.set_index(["phase", "metric"])
    assert own.loc[("forward", "LLC-load-misses"), ["alone", "corun", "ratio"]].tolist() == pytest.approx(
        [4e3, 12e3, 3]
    )
    assert own.loc[("forward", IPC), ["alone", "corun", "ratio"]].tolist() == pytest.approx([2, 1, 0.5])
    assert own.loc[("forward", "LLC-load-misses per 1000 instructions"), "ratio"] == pytest.approx(3)
    assert own.loc["input", "ratio"].tolist() == pytest.approx([1] * 5)
    assert own.loc[("forward", "cycles"), "unit"] == "step"
    assert own.loc[("forward", IPC), "unit"] == ""
    assert set(table["launches"]) == {3}
    assert set(table["rounds"]) == {6}
    assert (table["ratio_low"] <= table["ratio"]).all()
    assert found(launches=2)["ratio_low"].isna().all()


def test_slices_that_cut_off_more_steps_beside_others_change_nothing():
    """Beside others fewer stays lie wholly in a slice: counts over the window's steps would fall with them."""
    usual, cut = found(), found(covered=lambda window: 1.5 if window["kind"] == "corun" else 3.0)
    assert cut["ratio"].tolist() == pytest.approx(usual["ratio"].tolist())


def test_a_count_without_its_seconds_is_in_none():
    assert found(spoil=lambda row: row | {"seconds": np.nan}).empty
    assert found(spoil=lambda row: row | {"value": np.nan, "status": "not counted"}).empty
    assert found(spoil=lambda row: row | {"phase": ""}).empty


def test_both_ways_of_counting_stand_apart_and_the_jobs_own_is_preferred():
    steps, windows = tables(3, 2, known)
    by_time = counts(windows, "by time", spoil=lambda row: row | {"value": 2 * row["value"]})
    own = counts(windows, spoil=lambda row: row if row["event"] != "LLC-load-misses" else None)
    table = phase_counts([steps], [pd.concat([by_time, own], ignore_index=True)], windows)
    assert set(table["source"]) == {"in-process", "by time"}
    best = better_source(table).set_index(["phase", "metric"])
    assert best.loc[("forward", "instructions"), "source"] == "in-process"
    assert best.loc[("forward", "LLC-load-misses"), "source"] == "by time"
    assert best.index.is_unique


def test_rejected_windows_and_other_launches_parts_are_as_everywhere():
    steps, windows = tables(3, 2, known, valid=lambda _, turn, scene: (turn, scene) != (1, "alone"))
    assert set(phase_counts([steps], [counts(windows)], windows)["rounds"]) == {3}
    steps, windows = tables(3, 2, known)
    whole, both = counts(windows), [counts(windows[windows["launch"] == number]) for number in (1, 2, 3)]
    parts = phase_counts([steps[steps["launch"] == number] for number in (1, 2, 3)], both, windows)
    pd.testing.assert_frame_equal(parts, phase_counts([steps], [whole], windows))


def test_without_pairs_or_counts_there_is_an_empty_table():
    steps, windows = tables(3, 2, known)
    assert phase_counts([steps], [], windows).empty
    assert phase_counts([steps], [counts(windows)], windows[windows["kind"] == "alone"]).empty
