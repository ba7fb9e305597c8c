"""Ranges that members annotate: in the tables of a launch and of a profile launch."""

import json
from pathlib import Path

import pytest

from castmates.results.columns.ranges import OPERATION_RANGES, PROFILE_RANGES, RANGES
from tests.runner.stage import counter, measured, plan_of, python_job, tables
from tests.runner.test_profile_launch import JOB as TRACED
from tests.runner.test_profile_launch import STEPS, launched

pytestmark = pytest.mark.needs("two-cpus")

LEAD = """
import time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.phases import end, epoch, instant, phase, start
beat = Writer.from_environment()
beat.ready()
step = 0
for number in range(10**6):
    with epoch(number):
        for _ in range(50):
            load = start("load", step, domain="input", payload={"step": step})
            with phase("forward", step=step), phase("attention"):
                time.sleep(0.001)
                instant("seen")
            end(load)
            beat.beat()
            step += 1
"""


def test_a_launch_keeps_every_range_of_its_members_with_the_slice_it_ended_in(cache, tmp_path):
    plan = plan_of({"lead": python_job(LEAD), "other": counter()}, ["other"], cache, counters={"ranges": 400}, rounds=1)
    record = measured(plan, tmp_path, cache)
    assert record["status"] == "measured", record["reason"]
    ranges, slices, steps = tables(tmp_path, "ranges", "slices", "steps")
    assert list(ranges) == list(RANGES)
    lead = ranges[ranges["member"].str.startswith("lead")]
    about = next(member["phases"] for name, member in record["members"].items() if name.startswith("lead"))
    assert about["names"] == ["forward", "forward/attention"]
    assert about["ranges_left_out"] > 0
    assert len(lead) == 400
    assert set(zip(lead["type"], lead["path"], lead["domain"], lead["depth"], strict=True)) - {
        ("epoch", "epoch", "", 0)
    } == {
        ("phase", "forward", "", 0),
        ("phase", "forward/attention", "", 1),
        ("range", "load", "input", 0),
        ("instant", "forward/attention/seen", "", 2),
    }
    loads = lead[(lead["type"] == "range") & lead["window"].notna()]
    assert (
        loads["payload"] == [json.dumps({"step": int(step)}, separators=(",", ":")) for step in loads["step"]]
    ).all()
    assert (lead.loc[lead["type"] != "epoch", "epoch"] == lead["step"].dropna() // 50).all()
    assert lead["thread"].nunique() == 1
    assert set(lead.loc[lead["window"].isna(), "type"]) <= {"range", "epoch"}
    placed = ranges.dropna(subset="window").merge(slices, on=["slice", "member"], suffixes=("", "_of_slice"))
    assert len(placed) == ranges["window"].notna().sum()
    assert (placed["scene"] == placed["scene_of_slice"]).all()
    assert placed["end_ns"].between(placed["switch_ns"], placed["close_ns"]).all()
    assert ((placed["begin_ns"] >= placed["switch_ns"]) == placed["whole"]).all()
    own = slices[slices["member"].str.startswith("lead")]
    assert placed["window"].nunique() == own["window"].nunique(), "each window keeps its part"
    assert steps["forward_s"].notna().any()
    assert "load_s" not in steps


def test_a_launch_without_the_key_keeps_no_ranges(shared_launch):
    assert not (shared_launch / "ranges.parquet").exists()
    assert json.loads((shared_launch / "launch.json").read_text())["spec"]["design"]["counters"]["ranges"] == 0


def test_a_profile_launch_joins_operations_to_the_ranges_they_begin_in(cache, tmp_path):
    usual = TRACED[TRACED.index("            begins.append") : TRACED.index("        ends =")]
    inside = "            with phase('forward', payload='traced'), phase('dense', domain='layers'):\n"
    inside += "                time.sleep(0.001)\n" + "".join(f"    {line}\n" for line in usual.splitlines())
    imports = "from castmates.workloads.phases import phase\n"
    code = imports + TRACED.replace(usual, inside)
    assert "payload='traced'" in code
    lead = counter(variables={"PYTHONPATH": str(Path.cwd())}, phases=True)
    lead = lead.model_copy(update={"command": [lead.command[0], "-c", code, "well"]})
    record = launched("well", tmp_path, cache, lead=lead, ranges=100)
    assert (record["status"], record["reason"]) == ("measured", "")
    ranges, joined, calls = tables(tmp_path, "profile_ranges", "operation_ranges", "operations")
    assert list(ranges) == list(PROFILE_RANGES)
    assert list(joined) == list(OPERATION_RANGES)
    traces = {(scene, times) for scene in ("alone", "corun:lead+beside") for times in (1, 2)}
    for trace, own in ranges.groupby(["scene", "round"]):
        traces.remove(trace)
        assert list(own["path"]) == ["dense", "forward"] * STEPS
        assert set(own["part"]) == {"traced"}
    assert not traces
    for (domain, path), own in joined.groupby(["domain", "path"]):
        assert (domain, path) in {("", "forward"), ("layers", "dense")}
        assert set(own["operation"]) == {"model/dense/MatMul"}
        assert (own["calls"] == STEPS).all()
        assert own["shared_ns"].sum() == pytest.approx(calls["shared_ns"].sum())
        assert own["own_ns"].sum() == pytest.approx(calls["own_ns"].sum(), abs=len(calls))
