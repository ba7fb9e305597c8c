"""What cache partitions give back, on the first screen: which curve, which point is marked, the knee, the headline."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from castmates.report.answer.answer import answer
from castmates.report.answer.drawing import curve_drawing
from castmates.results.columns.partitions import KNEES, RECOMMENDATIONS, SENSITIVITY
from tests.unit.partition_maker import alone, atoms, under
from tests.unit.test_figure_partitions import results as partitioned

MIX = {"mix": "dlrm+stream", "lead": "dlrm", "antagonists": "stream", "platform": "measured"}


@pytest.fixture(scope="module")
def swept():
    """Three points of `split` and two of `lead`, which overlap in ways."""
    groups = atoms(sensitivity=())
    return partitioned([*groups, *(under(groups[0], alone(ways)) for ways in (4, 6))])


def judged(results, partition, ways, platform="measured", aim="limit", **knee):
    """The results with a recommendation of this partition, and a knee."""
    curves = [{**MIX, "study": "sweep", "member": "dlrm@0", "curve": kind, "partition": f"{kind}-{count}",
               "lead_ways": count} for kind, counts in {"split": (2, 4, 8), "lead": (4, 6)}.items()
              for count in counts]  # fmt: skip
    numbers = {name: 20.0 for name, kind in RECOMMENDATIONS.items() if kind == "float64"}
    advice = {**MIX, **numbers, "verdict": "met", "partition": partition, "lead_ways": ways, "cache_ways": 12,
              "lead_bytes": 2.0**23, "limit_pct": 5.0 if aim == "knee" else 20.0, "aim": aim,
              "confirmation": "confirmed", "platform": platform}  # fmt: skip
    knees = [{**MIX, "curve": kind, "kept_pct": 95.0, "knee": 8, "knee_low": 4, "knee_high": None} | knee
             for kind in ("split", "lead")]  # fmt: skip
    tables = {"sensitivity": (curves, SENSITIVITY), "recommendations": ([advice], RECOMMENDATIONS),
              "knees": (knees, KNEES)}  # fmt: skip
    return replace(results, **{name: _table(rows, columns) for name, (rows, columns) in tables.items()})


def _table(rows, columns):
    return pd.DataFrame([{**dict.fromkeys(columns, None), **row} for row in rows])


@pytest.mark.parametrize(("partition", "ways", "marked"), [("lead-4", 4, (4, 6)), ("split-4", 4, (2, 4, 8))])
def test_the_curve_and_its_marked_point_are_of_the_recommended_kind(swept, partition, ways, marked):
    found = answer(judged(swept, partition, ways))
    assert found.headline.endswith("; 4 of the 12 cache ways keep it under 20 %.")
    (curve,) = found.curves
    assert tuple(point.ways for point in curve.points) == marked
    drawn = curve_drawing(curve)
    chosen = [point.partition for point, mark in zip(curve.points, drawn.marks, strict=True) if mark.chosen]
    assert chosen == [partition]
    assert f"4 of 12 ways ({partition}, 8 MiB) keep the loss within 20 %: 20.0 %" in curve.sentence
    assert "; stream then loses" in curve.sentence
    assert curve.knee is None, "one mask, and no other"


def test_advice_of_another_platform_is_none(swept):
    (curve,) = answer(judged(swept, "lead-4", 4, platform="modelled")).curves
    assert (curve.kind, curve.enough, curve.limit == curve.limit) == ("split", 0, False)


def test_the_knee_is_drawn_with_its_interval_where_it_is_advised(swept):
    found = answer(judged(swept, "split-8", 8, aim="knee"))
    (curve,) = found.curves
    assert found.headline.endswith("; 8 of the 12 cache ways keep 95 % of its speed.")
    assert math.isnan(curve.limit)
    drawn = curve_drawing(curve)
    places = {point.ways: mark.x for point, mark in zip(curve.points, drawn.marks, strict=True)}
    knee, low, high = drawn.knee
    assert (knee, low) == (places[8], places[4])
    assert high > knee, "it has no upper end"


def test_one_way_is_no_ways():
    groups = atoms(ways=(1,), sensitivity=())
    results = partitioned(groups)
    (curve,) = answer(results).curves
    assert curve.with_most.startswith("with 1 of the 12 cache ways, ")
    assert [mark.label.split(":")[0] for mark in curve_drawing(curve).marks] == ["1 way"]
    assert math.isnan(curve.limit)
