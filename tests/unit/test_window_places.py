"""Rows of windows found by whole numbers are those that a merge of names finds, whatever the names are stored as."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.statistics import window_values
from castmates.analysis.statistics.window_values import (
    Groups,
    Pairs,
    Values,
    WindowPlaces,
    codes_in,
    combinations,
    held_against,
)

COLUMNS = ["platform", "cohort", "launch", "window", "member"]
PLACES = st.lists(
    st.tuples(*map(st.sampled_from, ("pq", "abc", range(4), range(4), "xy"))),
    max_size=30,
)  # fmt: skip


def table(rows):
    kinds = {"platform": "str", "cohort": "str", "launch": "int64", "window": "int64", "member": "str"}
    return pd.DataFrame(rows, columns=COLUMNS).astype(kinds)


def coded(rows, extra="zz"):
    """With categories in a separate order, some of which nothing has."""
    names = [name for name in COLUMNS if rows[name].dtype.kind == "O"]
    return rows.assign(**{
        name: pd.Categorical(rows[name], [extra, *sorted(set(rows[name]), reverse=True)]) for name in names
    })  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(PLACES, PLACES)
def test_a_row_finds_the_window_that_a_merge_finds(windows, rows):
    known, asked = table(windows).drop_duplicates(ignore_index=True), table(rows)
    want = asked.merge(known.reset_index(), on=COLUMNS, how="left")["index"].fillna(-1).tolist()
    for one in (known, coded(known)):
        places = WindowPlaces.of(one, COLUMNS)
        assert places.find(asked).tolist() == want
        assert places.find(coded(asked)).tolist() == want


@settings(max_examples=12, deadline=None)
@given(PLACES)
def test_combinations_are_numbered_in_the_order_of_their_names(rows):
    whole = table(rows)
    number, found = combinations(whole, COLUMNS)
    pd.testing.assert_frame_equal(found, whole.drop_duplicates().sort_values(COLUMNS, ignore_index=True))
    pd.testing.assert_frame_equal(found.iloc[number].reset_index(drop=True), whole)
    again, same = combinations(coded(whole), COLUMNS)
    assert again.tolist() == number.tolist()
    pd.testing.assert_frame_equal(same, found)


def test_more_combinations_than_a_number_holds_are_numbered_all_the_same(monkeypatch):
    whole = table([("p", cohort, launch, 1, "x") for cohort in "abc" for launch in range(4)])
    usual = combinations(whole, COLUMNS)
    monkeypatch.setattr(window_values, "LARGEST", 8)
    assert combinations(whole, COLUMNS)[0].tolist() == usual[0].tolist()


def test_what_has_no_name_is_none_of_those_that_are_known():
    for names in (pd.Series(["a", None, "b"], dtype="str"), pd.Series(pd.Categorical(["a", None, "b"]))):
        assert codes_in(names, ["b", "a"]).tolist() == [1, -1, 0]
    assert codes_in(pd.Series([], dtype="str"), ["b"]).tolist() == []


def rounds():
    """Two rounds of two launches; the second launch has no `alone` in its second round."""
    rows = [(launch, turn, kind) for launch in (1, 2) for turn in (1, 2) for kind in ("alone", "corun")][:-2]
    rows += [(2, 2, "corun")]
    windows = pd.DataFrame(rows, columns=["launch", "round", "kind"])
    return windows.assign(platform="p", cohort="c", member="m", scene=windows["kind"], mix="x")


def test_pairs_lie_in_one_round_and_what_has_no_baseline_is_in_none():
    windows = rounds()
    groups = Groups.of(windows, ["mix"])
    alone, corun = (np.flatnonzero(windows["kind"] == kind) for kind in ("alone", "corun"))
    pairs = Pairs.of(windows, corun, alone, groups.number)
    assert list(zip(pairs.scene.tolist(), pairs.base.tolist(), strict=True)) == [(1, 0), (3, 2), (5, 4)]
    assert pairs.group.tolist() == [0, 0, 1]
    values = Values(np.array([0, 1, 3, 4, 5]), np.arange(10.0).reshape(5, 2))  # of row 2 nothing is known
    scene, base, group = pairs.inside(values)
    assert (scene.tolist(), base.tolist(), group.tolist()) == ([[2, 3], [8, 9]], [[0, 1], [6, 7]], [0, 1])
    contrasts = pd.DataFrame({"row": [4, 7], "cohort": "c", "scene": "corun", "member": "m", "baseline_scene": "alone"})
    both = [one.tolist() for one in held_against(windows, contrasts)]
    assert sorted(zip(*both, strict=True)) == [(s, b, row) for s, b in ((1, 0), (3, 2), (5, 4)) for row in (4, 7)]


def test_what_stands_twice_has_the_mean_and_what_stands_nowhere_is_not_known():
    found = Values.of(np.array([7, 2, 7]), np.array([0, 1, 0]), np.array([1.0, 5.0, 2.0]), metrics=2)
    assert found.rows.tolist() == [2, 7]
    assert found.values.tolist() == [
        [pytest.approx(np.nan, nan_ok=True), 5.0],
        [1.5, pytest.approx(np.nan, nan_ok=True)],
    ]
    nothing = Values.of(*(np.array([], dtype="int64") for _ in "ab"), np.array([]), metrics=2)
    assert (nothing.rows.tolist(), nothing.values.shape) == ([], (0, 2))
