"""The work of operations: by their primitives, else estimated from the graph; never 0 where it is not known."""

import math

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.operations.primitives import (
    Roofs,
    estimated_roofline,
    estimated_work,
    known_work,
    logged_work,
    operation_summary,
    roofline,
)
from castmates.report.figures.roofline import draw
from castmates.results.columns.operations import OPERATION_SUMMARY
from castmates.results.columns.primitives import ROOFLINE
from tests.unit import operations_maker, primitives_maker

LEAD = {"study": "s", "member": "lead@0"}
GATHER = {"operation": "model/embed_1/Gather", "type": "ResourceGather"}
PRODUCT = {"operation": "model/dense/MatMul", "type": "MatMul", "inputs": "float32[8,4]; float32[4,2]"}
GRADIENT = {"operation": "gradient_tape/model/dense/MatMul/MatMul", "type": "MatMul", "inputs": "float32*[8,2]"}
NODES = pd.DataFrame([
    LEAD | PRODUCT | {"flops": 6e6, "bytes": 3e6},
    LEAD | GRADIENT | {"flops": 9e6, "bytes": 3e6},
    LEAD | GATHER | {"flops": 0.0, "bytes": 1e6, "inputs": "resource"},
    LEAD | {"operation": "twice", "type": "Add", "flops": 1.0, "bytes": 8.0, "inputs": ""},
    LEAD | {"operation": "twice", "type": "Add", "flops": 2.0, "bytes": 8.0, "inputs": ""},
    LEAD | {"operation": "nobody", "type": "Secret", "flops": math.nan, "bytes": math.nan, "inputs": "?"},
])  # fmt: skip
BESIDE = {"model/dense/MatMul:MatMul": 0.25}


@pytest.fixture(scope="module")
def usual():
    return operations_maker.launches(3, BESIDE, np.random.default_rng(1), between=0.0)


@pytest.fixture(scope="module")
def work():
    logged = logged_work(*reversed(primitives_maker.launches(3, np.random.default_rng(1))))
    return known_work(logged, estimated_work(NODES))


def of(table, operation):
    return table[table["operation"] == operation].iloc[0]


def test_primitives_go_before_estimates_and_what_several_nodes_do_is_known_where_they_agree(work):
    assert of(work, PRODUCT["operation"])[["flops", "bytes", "source"]].tolist() == [
        primitives_maker.FLOPS, primitives_maker.MOVED, "primitives",
    ]  # fmt: skip
    assert of(work, GRADIENT["operation"])["source"] == "estimated"
    twice = of(work, "twice")
    assert math.isnan(twice["flops"])
    assert twice["bytes"] == 8.0
    assert "nobody" not in set(work["operation"])


def test_the_summary_has_the_work_of_all_calls_and_nothing_where_none_is_known(usual, work):
    table = operation_summary(usual, work)
    assert set(OPERATION_SUMMARY) <= set(table.columns)
    alone = table[table["kind"] == "alone"]
    gradient = of(alone, GRADIENT["operation"])
    assert (gradient["flops"], gradient["source"]) == (9e6 * gradient["calls"], "estimated")
    assert gradient["gflops"] == pytest.approx(gradient["flops"] / gradient["own_ms"] / 1e6)
    gather = of(alone, GATHER["operation"])
    assert gather["flops"] == 0.0
    assert math.isnan(gather["gflops"])
    unknown = of(alone, "model/tiny/Add")
    assert unknown["source"] == ""
    assert math.isnan(unknown["flops"])


def test_estimated_operations_join_the_roofline_and_say_so(usual, work, tmp_path):
    roofs = {"lead@0": Roofs(20.0, 60.0)}
    table = estimated_roofline(usual, work, usual.compared, roofs)
    assert set(ROOFLINE) <= set(table.columns)
    assert set(table["operation"]) == {GRADIENT["operation"]}, "primitives show the work of the other product"
    row = table[table["kind"] == "alone"].iloc[0]
    assert (row["source"], row["intensity"], row["attainable_gflops"]) == ("estimated", 3.0, 60.0)
    assert row["gflops"] == pytest.approx(3.0, rel=0.02), "9 million in 3 ms"
    traces, rows = primitives_maker.launches(3, np.random.default_rng(1))
    both = pd.concat([roofline(rows, traces.steps, traces.compared, roofs), table], ignore_index=True)
    made = operations_maker.results(tmp_path / "study", 3)
    object.__setattr__(made, "roofline", both)
    (axes,) = draw(made)[0].axes
    points = [line for line in axes.lines if line.get_marker() not in ("", "None", None)]
    filled = [line for line in points if line.get_markerfacecolor() != "white"]
    assert (len(points), len(filled)) == (4, 1), "alone and beside of two operations; the estimated ones are hollow"
    assert [text.get_text() for text in axes.texts if text.get_text() in ("≈1", "≈2")]
