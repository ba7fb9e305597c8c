"""Heartbeats become steps, and steps become quantiles of launches: by hand, and against numpy for any numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.explanations.evolution import Launches, fewest_steps, launch_quantiles, quantiles
from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.study import frame
from tests.unit.windows_maker import one_slice

MS = 10**6


def windows(*rows):
    """(cohort, launch, window, scene, member, valid) of each."""
    names = ("cohort", "launch", "window", "scene", "member", "valid")
    usual = {"platform": "measured", "kind": "alone", "round": 1, "position": 1, "open_ns": 0, "close_ns": 1}
    usual |= {"beats": 9, "units": 1.0} | one_slice(True)
    return frame([usual | dict(zip(names, row, strict=True)) for row in rows], WINDOWS)


def beats(*rows):
    """(cohort, launch, window, member, milliseconds, units so far) of each; a window has one slice."""
    table = pd.DataFrame(rows, columns=["cohort", "launch", "window", "member", "t_ns", "units"])
    return table.assign(t_ns=(table["t_ns"] * MS).astype("int64"), slice=table["window"])


def found(made, heartbeats, shares=(0.5,)):
    launches = Launches.of(made)
    table = launch_quantiles(heartbeats, launches, shares)
    return launches.table.loc[table["group"]].reset_index(drop=True).join(table.drop(columns="group"))


def test_the_least_steps_for_each_quantile():
    """As in the literature on order statistics: 6, 72 and 368 for a two-sided 95 % interval."""
    assert [fewest_steps(share) for share in (0.5, 0.95, 0.99)] == [6, 72, 368]


def test_a_step_lies_between_two_beats_of_one_valid_window():
    made = windows(
        ("c", 1, 1, "alone", "a@0", True), ("c", 1, 2, "alone", "a@0", True), ("c", 1, 3, "alone", "a@0", False),
        ("c", 1, 4, "corun:m", "a@0", True), ("c", 1, 4, "corun:m", "b@1", True),
    )  # fmt: skip
    table = found(
        made,
        beats(
            ("c", 1, 1, "a@0", 0, 1), ("c", 1, 1, "a@0", 10, 2), ("c", 1, 1, "a@0", 30, 3),
            ("c", 1, 2, "a@0", 999, 4), ("c", 1, 2, "a@0", 1002, 5),  # the pause before it is no step
            ("c", 1, 3, "a@0", 2000, 6), ("c", 1, 3, "a@0", 2500, 7),  # rejected
            ("c", 1, 4, "a@0", 3000, 8), ("c", 1, 4, "a@0", 3040, 9),
            ("c", 1, 4, "b@1", 3001, 100), ("c", 1, 4, "b@1", 3006, 200),
            ("c", 1, 5, "a@0", 4000, 10), ("c", 1, 5, "a@0", 4001, 11),  # in no window
            ("c", 2, 1, "a@0", 5000, 12), ("c", 2, 1, "a@0", 5001, 13),
            ("d", 1, 1, "a@0", 6000, 12), ("d", 1, 1, "a@0", 6001, 13),
        ),
    )  # fmt: skip
    said = table.set_index(["scene", "member"])[["steps", "units", "0.5"]].T.to_dict("list")
    assert said == {("alone", "a@0"): [3, 1, 10.0], ("corun:m", "a@0"): [1, 1, 40.0], ("corun:m", "b@1"): [1, 100, 5.0]}


def test_no_step_spans_two_slices_of_a_window():
    made = windows(("c", 1, 1, "alone", "a@0", True))
    times = (0, 10, 20, 500, 510, 900, 1300)
    table = beats(*(("c", 1, 1, "a@0", t, number) for number, t in enumerate(times)))
    told = found(made, table.assign(slice=[1, 1, 1, 4, 4, 7, 9]), (0.0, 1.0))
    assert told[["steps", "0.0", "1.0"]].to_numpy().tolist() == [[3, 10.0, 10.0]]


def test_a_step_with_another_number_of_units_is_left_out_and_counted():
    made = windows(("c", 1, 1, "alone", "a@0", True))
    table = found(made, beats(*(("c", 1, 1, "a@0", t, u) for t, u in ((0, 0), (30, 3), (40, 4), (50, 5), (60, 6)))))
    assert (table["steps"][0], table["odd"][0], table["units"][0], table["0.5"][0]) == (3, 1, 1, 10.0)


def test_without_windows_or_beats_there_is_nothing():
    made = windows(("c", 1, 1, "alone", "a@0", True))
    assert found(made, beats()).empty
    assert found(made, beats(("c", 1, 1, "a@0", 1, 1))).empty
    assert found(windows(), beats(("c", 1, 1, "a@0", 1, 1), ("c", 1, 1, "a@0", 2, 2))).empty


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**40)), max_size=60), st.integers(0, 60))
def test_quantiles_are_numpys_also_where_numbers_are_too_large_to_pack(drawn, shift):
    group, values = (np.array([one[at] for one in drawn], dtype=np.int64) for at in (0, 1))
    values, shares = values << min(shift, 20), (0.5, 0.95, 0.99)
    got = quantiles(values, group, np.bincount(group, minlength=5), shares)
    for name in range(5):
        own = values[group == name]
        want = np.quantile(own, shares) if len(own) else np.full(3, np.nan)
        assert got[name] == pytest.approx(want, nan_ok=True)


def test_names_may_be_categories_in_any_order():
    made = windows(
        ("c", 1, 1, "alone", "b@0", True), ("c", 1, 1, "alone", "a@1", True), ("d", 1, 1, "alone", "a@1", True)
    )
    told = beats(
        ("c", 1, 1, "b@0", 0, 1), ("c", 1, 1, "b@0", 10, 2), ("c", 1, 1, "a@1", 20, 1), ("c", 1, 1, "a@1", 50, 2),
        ("d", 1, 1, "a@1", 60, 1), ("d", 1, 1, "a@1", 65, 2), ("d", 1, 1, "x@2", 70, 1), ("d", 1, 1, "x@2", 75, 2),
    )  # fmt: skip
    coded = told.assign(
        cohort=pd.Categorical(told["cohort"], ["z", "d", "c"]),
        member=pd.Categorical(told["member"], ["x@2", "a@1", "b@0"]),
    )
    plain = found(made, told)
    assert plain["0.5"].tolist() == [10.0, 30.0, 5.0]
    pd.testing.assert_frame_equal(found(made, coded), plain, check_exact=True)
