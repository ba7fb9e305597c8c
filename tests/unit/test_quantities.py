"""Averages by hand, and the ones that cannot be had."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.effects.system import (
    Costs,
    Rates,
    Ratios,
    WrongAverage,
    arithmetic_mean,
    geometric_mean,
    mean_rate,
)
from tests.unit.snapshots import assert_as_before

# A mile at 30 an hour and one at 60: the mean speed is 40, as total miles over total hours, not 45.
TABLE = pd.DataFrame({"trip": ["a", "a"], "miles": [1.0, 1.0], "hours": [1 / 30, 1 / 60], "over": [0.5, 2.0]})


def test_each_kind_has_its_mean():
    assert arithmetic_mean(Costs(TABLE, ["hours"]), ["trip"])["hours"].tolist() == pytest.approx([0.025])
    assert mean_rate(Rates(TABLE, "miles", "hours"), ["trip"]).tolist() == pytest.approx([40.0])
    assert geometric_mean(Ratios(TABLE, ["over"]), ["trip"])["over"].tolist() == pytest.approx([1.0])


def test_groups_stay_apart_and_several_columns_go_at_once():
    table = pd.concat([TABLE, TABLE.assign(trip="b", hours=TABLE["hours"] * 2, over=3.0)])
    found = arithmetic_mean(Costs(table, ["hours", "miles"]), ["trip"])
    assert found["hours"].to_dict() == pytest.approx({"a": 0.025, "b": 0.05})
    assert found["miles"].to_dict() == {"a": 1.0, "b": 1.0}
    assert mean_rate(Rates(table, "miles", "hours"), ["trip"]).to_dict() == pytest.approx({"a": 40.0, "b": 20.0})
    assert geometric_mean(Ratios(table, ["over"]), ["trip"])["over"].to_dict() == pytest.approx({"a": 1.0, "b": 3.0})


def test_a_wrong_average_cannot_be_had():
    of = {"costs": Costs(TABLE, ["hours"]), "rates": Rates(TABLE, "miles", "hours"), "ratios": Ratios(TABLE, ["over"])}
    wrong = [(arithmetic_mean, "ratios"), (arithmetic_mean, "rates"), (mean_rate, "costs"), (mean_rate, "ratios"),
             (geometric_mean, "costs"), (arithmetic_mean, "a table")]  # fmt: skip

    def said(mean, kind):
        with pytest.raises(WrongAverage) as refused:
            mean(of.get(kind, TABLE), ["trip"])
        return str(refused.value)

    assert_as_before("averages", {f"{mean.__name__} of {kind}": said(mean, kind) for mean, kind in wrong})


def test_the_arithmetic_mean_of_ratios_depends_on_who_is_the_baseline():
    """The argument of Fleming and Wallace (CACM 1986), by hand: 20 and 40 s on one machine, 40 and 20 s on another."""
    table = pd.DataFrame({"machine": "b", "over_a": [40 / 20, 20 / 40], "over_b": [20 / 40, 40 / 20]})
    wrong = table[["over_a", "over_b"]].mean()
    assert (wrong == 1.25).all()  # each machine is a quarter slower than the other
    right = geometric_mean(Ratios(table, ["over_a", "over_b"]), ["machine"])
    assert np.allclose(right, 1.0)
