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


@pytest.mark.parametrize(
    ("ask", "given", "sentence"),
    [
        (arithmetic_mean, Ratios(TABLE, ["over"]), "an arithmetic mean of Ratios means nothing; .*geometric_mean"),
        (arithmetic_mean, Rates(TABLE, "miles", "hours"), "an arithmetic mean of Rates means nothing; .*mean_rate"),
        (mean_rate, Costs(TABLE, ["hours"]), "a mean rate of Costs means nothing; .*arithmetic_mean"),
        (mean_rate, Ratios(TABLE, ["over"]), "a mean rate of Ratios means nothing"),
        (geometric_mean, Costs(TABLE, ["hours"]), "a geometric mean of Costs means nothing"),
        (arithmetic_mean, TABLE, "first state which kind it is"),
    ],
)
def test_a_wrong_average_cannot_be_had(ask, given, sentence):
    with pytest.raises(WrongAverage, match=sentence):
        ask(given, ["trip"])


def test_the_arithmetic_mean_of_ratios_depends_on_who_is_the_baseline():
    """The argument of Fleming and Wallace (CACM 1986), by hand: 20 and 40 s on one machine, 40 and 20 s on another."""
    table = pd.DataFrame({"machine": "b", "over_a": [40 / 20, 20 / 40], "over_b": [20 / 40, 40 / 20]})
    wrong = table[["over_a", "over_b"]].mean()
    assert (wrong == 1.25).all()  # each machine is a quarter slower than the other
    right = geometric_mean(Ratios(table, ["over_a", "over_b"]), ["machine"])
    assert np.allclose(right, 1.0)
