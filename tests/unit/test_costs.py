"""What measuring costs: the statistic, and the table of the report."""

import math
import random
from contextlib import nullcontext

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.design.pilot import WIDE_PCT, costs, verdict
from castmates.report.results import Results
from castmates.report.text import costs as table
from castmates.runner.after_rounds.collector_costs import Part, measure_round, pairs_about
from tests.unit.snapshots import assert_as_before


def pairs(change_pct: float, noise: float, launches: int, each: int, seed: int = 1) -> pd.DataFrame:
    dice = random.Random(seed)
    about = {"collector": "it", "cohort": "a"}
    numbers = [launch for launch in range(launches) for _ in range(each)]
    noisy = [math.log1p(change_pct / 100) + dice.gauss(0, noise) for _ in numbers]
    rows = zip(numbers, noisy, strict=True)
    return pd.DataFrame([about | {"launch": launch, "difference": difference} for launch, difference in rows])


@given(st.floats(-50, 50), st.integers(1, 8), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_a_known_change_is_recovered_where_there_is_no_noise(change_pct, launches, each):
    (row,) = costs(pairs(change_pct, 0.0, launches, each)).to_dict("records")
    assert row["change_pct"] == pytest.approx(change_pct, abs=1e-6)
    assert row["pairs"] == launches * each
    if launches >= 3 or each > 1:
        assert (row["low"], row["high"]) == pytest.approx((change_pct, change_pct), abs=1e-6)
    else:
        assert math.isnan(row["low"])


@pytest.mark.parametrize("launches", [1, 6])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(launches):
    found = costs(pd.concat([pairs(-2.0, 0.03, launches, 4, seed).assign(collector=seed) for seed in range(200)]))
    assert set(found["between_launches"]) == {launches >= 3}
    assert 0.9 <= ((found["low"] <= -2.0) & (found["high"] >= -2.0)).mean() <= 0.99


def test_launches_are_the_units_where_there_are_enough():
    """Pairs of one launch agree better among themselves than launches do: only those between show what is to come."""
    launches = pd.concat([pairs(-1.0 + shift, 0.0005, 1, 10).assign(launch=shift) for shift in (-2, 0, 2)])
    (row,) = costs(launches).to_dict("records")
    assert row["change_pct"] == pytest.approx(-1.0, abs=0.1)
    assert row["low"] < -4
    assert row["verdict"] == "unresolved"


VERDICTS = [
    (-3.0, -1.0, "costs"), (0.5, 1.0, "speeds up"), (-0.4, 0.3, "none seen"), (-1.9, 0.05, "unresolved"),
    (-0.05, 1.9, "unresolved"), (-WIDE_PCT - 0.1, WIDE_PCT + 0.1, "unresolved"), (math.nan, math.nan, "too few pairs"),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high", "said"), VERDICTS)
def test_an_interval_says_what_it_can(low, high, said):
    assert verdict(low, high) == said


def test_a_record_of_no_pair_has_no_numbers_and_one_of_one_pair_no_interval():
    assert pairs_about([], 2) == {
        "pairs": 0, "change_pct": None, "low": None, "high": None, "of": "rate of the lead", "logs": [],
        "note": "2 pairs left out: a window of theirs was rejected",
    }  # fmt: skip
    one = pairs_about([math.log(0.9)])
    assert one["change_pct"] == pytest.approx(-10)
    assert one["low"] is None


@pytest.mark.parametrize("bad", ["", "a"])
def test_a_pair_with_a_window_that_does_not_count_is_left_out(bad):
    """Rates of 2 with everything on, of 4 without `a` and of 1 without `b`; one of these windows is rejected."""
    rates = {"": 2.0, "a": 4.0, "b": 1.0} | {bad: None}
    parts = [Part(name, lambda name=name: nullcontext(name)) for name in "ab"]
    measure_round(parts, "", lambda without, number: rates[without] if number == 7 else None, 7, random.Random(1))
    a, b = parts
    assert (a.logs, a.rejected) == ([], 1)
    assert (b.logs, b.rejected) == ([], 1) if bad == "" else ([pytest.approx(math.log(2))], 0)


def results(*costs_of_launches: dict) -> Results:
    records = [
        {"status": "measured", "spec": {"cohort": {"id": "a"}, "number": number}, "costs": one}
        for number, one in enumerate(costs_of_launches, start=1)
    ]
    return Results("study", recorded=tuple(records))


def test_the_table_pools_the_pairs_of_all_launches_and_tells_the_edges():
    edges = {"pairs": 0, "change_pct": None, "seconds": 0.002}
    launches = [
        {
            "perf": pairs_about([-0.020, -0.022]),
            "counters": pairs_about([0.04 * sign, -0.05 * sign]),
            "procstat": edges,
            "off": pairs_about([], 2),
        }
        for sign in (1, -1, 1)
    ]
    rows = {row["collector"]: row for row in table.rows(results(*launches, {}))}
    assert list(rows) == ["counters", "perf", "off", "procstat"]
    assert (rows["perf"]["pairs"], rows["perf"]["launches"]) == (6, 3)
    assert rows["perf"]["change_pct"] == pytest.approx(100 * math.expm1(-0.021))
    assert_as_before("costs", {name: row["said"] for name, row in rows.items()})


def test_of_one_launch_the_interval_is_marked_and_a_failed_launch_says_nothing():
    one = results({"perf": pairs_about([-0.020, -0.022, -0.021])})
    (row,) = table.rows(one)
    assert row["interval"].endswith(" within launch")
    failed = results({"perf": pairs_about([-0.020])})
    failed.recorded[0]["status"] = "failed"
    assert table.rows(failed) == []
