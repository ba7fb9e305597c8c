"""Primitives, use of instructions and the roofline: what was put in comes out."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.operations.per_trace import Traces
from castmates.analysis.operations.primitives import Roofs, isa_use, roofline
from castmates.report.page.page import page, shown
from castmates.report.text.primitives import context
from castmates.results.columns.registry import TABLES
from castmates.study.model import Workload
from tests.unit.makers import plan, study, workloads
from tests.unit.primitives_maker import ALONE_MS, FLAGS, FLOPS, LOSS, MOVED, launches, results, tables
from tests.unit.printed_intervals import assert_told
from tests.unit.snapshots import assert_as_before

MADE = tables(*launches(4, np.random.default_rng(1), between=0.0))
STEP = 11.0  # ms


def one(table, **wanted):
    for name, value in wanted.items():
        table = table[table[name] == value]
    assert len(table) == 1, wanted
    return table.iloc[0]


def test_all_tables_have_the_columns_of_the_data_contract():
    for name, table in MADE.items():
        assert set(TABLES[name]) <= set(table.columns), name


def test_primitives_take_of_a_step_what_they_took():
    row = one(MADE["primitive_summary"], kind="corun", primitive="matmul")
    assert (row["calls"], row["launches"]) == (1, 4)
    assert row["ms"] == pytest.approx(ALONE_MS * (1 + LOSS))
    assert row["share"] == pytest.approx(ALONE_MS * (1 + LOSS) / STEP)
    assert (row["flops"], row["bytes"]) == (FLOPS, MOVED)
    assert row["gflops"] == pytest.approx(FLOPS / (ALONE_MS * (1 + LOSS)) / 1e6)
    assert math.isnan(one(MADE["primitive_summary"], kind="alone", primitive="softmax")["flops"])


def test_of_the_time_that_could_only_what_is_shown_counts_as_use():
    """Of 11 ms: 4 of a product whose code names nothing, 0.75 of 1 in a softmax that does, 2 of Eigen; 3 cannot."""
    row = one(MADE["isa_use"], kind="alone", extension="AVX-512", type="all operations")
    assert row["eligible_ms"] == pytest.approx(7.0)
    assert row["eligible_share"] == pytest.approx(7 / STEP)
    assert row["used_share"] == pytest.approx(0.75 / 7)
    assert row["unknown_share"] == pytest.approx(6.25 / 7)
    assert (row["answer"], row["processor"]) == ("partly used", "has it")
    narrow = one(MADE["isa_use"], kind="alone", extension="AVX2", type="Softmax")
    assert (narrow["answer"], narrow["wider_share"]) == ("wider ones in its place", pytest.approx(0.75))
    eigen = one(MADE["isa_use"], kind="alone", extension="AVX-512", type="Relu")
    assert (eigen["answer"], eigen["unknown_share"]) == ("unknown", 1.0)
    amx = one(MADE["isa_use"], kind="alone", extension="AMX", type="all operations")
    assert (amx["answer"], amx["processor"]) == ("nothing eligible", "lacks it")
    assert not (MADE["isa_use"]["type"] == "GatherV2").any(), "what cannot is not in the table"


def test_use_beside_others_is_compared_once_for_each_trace_that_can_be():
    traces, rows = launches(3, np.random.default_rng(1))
    ends = ["difference", "difference_low", "difference_high"]
    eligible = isa_use(traces, rows, FLAGS).query("eligible_ms > 0 and extension != 'AMX'")
    alone, beside = (eligible[eligible["kind"] == kind] for kind in ("alone", "corun"))
    assert alone[ends].isna().all(axis=None), "it is not compared with itself"
    assert beside[ends].notna().all(axis=None)
    traces.steps.loc[(traces.steps["kind"] == "corun") & (traces.steps["launch"] == 101), "threads_intra"] = 2
    changed = Traces(traces.operations, traces.steps, traces.pools)
    fewer = isa_use(changed, rows, FLAGS).query("kind == 'corun' and eligible_ms > 0")
    assert fewer["difference"].notna().any()
    assert fewer["difference_low"].isna().all(), "two launches have no interval"


def test_points_sink_under_the_roofs():
    alone, beside = (one(MADE["roofline"], kind=kind) for kind in ("alone", "corun"))
    assert alone["intensity"] == beside["intensity"] == pytest.approx(FLOPS / MOVED)
    assert alone["gflops"] == pytest.approx(FLOPS / ALONE_MS / 1e6)
    assert alone["gflops"] / beside["gflops"] == pytest.approx(1 + LOSS)
    assert alone["compute_gflops"] == pytest.approx(120.0), "a vector holds twice as many floats as doubles"
    assert alone["attainable_gflops"] == pytest.approx(120.0), "59 operations per byte are 1,180 at 20 GB/s"
    assert (alone["roof"], alone["roof_share"]) == ("compute or memory", pytest.approx(alone["gflops"] / 120.0))


def test_without_a_measured_roof_nothing_is_attainable():
    traces, rows = launches(3, np.random.default_rng(1))
    both = traces.compared
    none = roofline(
        rows,
        traces.steps,
        traces.compared,
        {"lead@0": Roofs.of([{"memory_gbs": None}, {}]), "other@1": Roofs(9.0, 9.0)},
    )
    assert none["attainable_gflops"].isna().all()
    assert set(none["roof"]) == {""}
    slow = roofline(rows, traces.steps, both, {"lead@0": Roofs(memory_gbs=1.0, compute_gflops_f64=60.0)})
    assert set(slow["roof"]) == {"memory"}
    assert slow["attainable_gflops"].iloc[0] == pytest.approx(FLOPS / MOVED)
    short = roofline(
        rows.assign(data_types="src:bf16 wei:bf16 dst:bf16"),
        traces.steps,
        traces.compared,
        {"lead@0": Roofs(20.0, 60.0)},
    )
    assert short["compute_gflops"].isna().all(), "no roof was measured for such numbers"


@pytest.mark.simulation
def test_intervals_between_launches_hold_the_truth():
    studies, count = 3000, 4
    dice = np.random.default_rng(1)
    about = {"scene": "alone", "kind": "alone", "mix": "", "partition": "unmanaged", "member": "lead@0"}
    about |= {"platform": "measured", "cohort": "c", "round": 1, "operation": "model/MatMul", "type": "MatMul"}
    about |= {"primitive": "matmul", "shapes": "256x384:384x512", "data_types": "src:f32 wei:f32 dst:f32", "calls": 1.0}
    rows = pd.DataFrame([about] * (studies * count)).assign(
        study=np.repeat([f"s{number}" for number in range(studies)], count),
        launch=np.tile(np.arange(101, 101 + count), studies),
        ms=ALONE_MS * np.exp(dice.normal(0, 0.05, studies * count)),
    )
    table = roofline(rows, rows.assign(step_ms=STEP), rows[:0], {})
    truth = FLOPS / ALONE_MS / 1e6
    held = ((table["gflops_low"] < truth) & (truth < table["gflops_high"])).mean()
    assert_told("roofline", "gflops_low", float(held))


def test_the_page_has_primitives_instructions_and_the_roofline(tmp_path):
    asked = study(["job"], ["stream"], profile={"launches": 3, "primitives": True})
    job = Workload(command="python -m castmates.workloads.tfmodels --model dlrm", progress="heartbeat", unit="step")
    made = replace(results(tmp_path / "study", 4), study=asked, plan=plan(asked, programs=workloads("stream", job=job)))
    assert {"operations", "roofline"} <= set(shown(made))
    html = (
        page(made, dict.fromkeys(shown(made), "<svg></svg>")).partition('id="operations"')[2].partition("</section>")[0]
    )
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "AVX-512 in 10.7 % of the time that could" in text
    assert_as_before("primitives", {"page": re.split(r"(?<=[.:]) ", text)})
    usual = replace(made, plan=plan(study(["job"], ["stream"], profile={}), programs=workloads("stream", job=job)))
    rest = re.sub(
        r"<[^>]+>", " ", page(replace(usual, **_without_log(usual)), dict.fromkeys(shown(usual), "<svg></svg>"))
    )
    assert "Roofline, operation by operation" in rest, "of which work is estimated in launches without the log"
    assert "Use of instruction sets" not in rest
    assert context(replace(usual, plan=plan(study(["job"], ["stream"]), programs=workloads("stream", job=job)))) == {}


def _without_log(made):
    """The tables of primitives as they are without launches under the log; work is estimated."""
    return {
        "primitive_summary": made.primitive_summary.iloc[:0],
        "isa_use": made.isa_use.iloc[:0],
        "roofline": made.roofline.assign(source="estimated"),
    }
