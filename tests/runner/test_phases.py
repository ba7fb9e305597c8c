"""A launch whose members report their phases: what the tables show of them."""

import json

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.inside import open_counters
from castmates.results.columns.launch import STEPS
from tests.runner.stage import counter, measured, plan_of, python_job

pytestmark = pytest.mark.needs("two-cpus")


def counts_here(event: str) -> bool:
    """Whether a process can count this event of itself."""
    try:
        counters = open_counters([event])
    except CastmatesError:
        return False
    known = event in counters.names
    counters.close()
    return known


def test_phases_of_a_step_are_columns_and_add_up_to_it(shared_launch):
    steps = pd.read_parquet(shared_launch / "steps.parquet")
    phases = ["input_s", "forward_s", "optimizer_s"]
    assert list(steps)[: len(STEPS)] == list(STEPS)
    assert set(list(steps)[len(STEPS) :]) == {*phases, "forward/attention_s"}
    assert steps[~steps["member"].str.startswith("lead@")][["begin_ns", *phases]].isna().all(axis=None)
    lead = steps[steps["member"].str.startswith("lead@")].dropna(subset="begin_ns")
    assert len(lead) > 20
    assert (lead["begin_ns"] < lead["t_ns"]).all()
    whole = (lead["t_ns"] - lead["begin_ns"].astype("int64")) / 1e9
    assert (lead[phases].sum(axis=1) <= whole).all()
    assert (lead[phases].sum(axis=1) / whole).median() > 0.9
    assert (lead["forward_s"] >= lead["forward/attention_s"]).all()
    assert (lead["forward/attention_s"] >= 0.002).all()


def test_what_the_job_counts_at_the_edges_of_its_phases_is_a_row_each(shared_launch):
    counts = pd.read_parquet(shared_launch / "counters.parquet")
    inside = counts[counts["source"] == "in-process"]
    assert set(inside["phase"]) == {"input", "forward", "forward/attention", "optimizer"}
    assert set(inside["scope"]) == {"process"}
    faults = inside[(inside["event"] == "page-faults") & (inside["phase"] == "forward")]
    if not counts_here("page-faults"):
        pytest.skip("page faults cannot be counted here")
    assert set(faults["status"]) == {"counted"}
    in_phases = faults["note"].str.extract(r"in (\d+) phases")[0].astype(int)
    assert (faults["value"] >= 100 * in_phases).all()
    elsewhere = inside[(inside["event"] == "page-faults") & (inside["phase"] == "input")]
    assert (elsewhere["value"] < 10 * in_phases.max()).all()
    instructions = inside[inside["event"] == "instructions"]
    assert set(instructions["phase"]) == set(inside["phase"])
    assert ((instructions["status"] == "counted") == instructions["value"].notna()).all()


def test_the_record_says_what_was_reported(shared_launch):
    members = json.loads((shared_launch / "launch.json").read_text())["members"]
    lead, other = (next(one for name, one in members.items() if name.startswith(who)) for who in ("lead", "finite"))
    assert "phases" not in other
    assert lead["phases"]["names"] == ["input", "forward", "forward/attention", "optimizer"]
    assert lead["phases"]["lost"] == lead["phases"]["not_recorded"] == 0
    assert set(lead["phases"]["counters"]) == {"page-faults", "instructions"}
    assert (lead["phases"]["counters"]["page-faults"] == "counted") == counts_here("page-faults")


SPOILER = """
import os, time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.phases import phase
beat = Writer.from_environment()
beat.ready()
while True:
    with phase("work"):
        time.sleep(0.001)
    beat.beat()
    os.truncate(os.environ["CASTMATES_PHASES"], 10)
    break
while True:
    time.sleep(0.001)
    beat.beat()
"""


def test_a_job_that_cuts_its_phases_file_is_measured_without_phases(cache, tmp_path):
    plan = plan_of({"lead": python_job(SPOILER), "other": counter()}, ["other"], cache, rounds=1)
    record = measured(plan, tmp_path, cache)
    assert record["status"] == "measured", record["reason"]
    lead = next(one for name, one in record["members"].items() if name.startswith("lead"))
    assert lead["phases"]["trouble"] == "the phases file was removed, replaced or cut"
    assert pd.read_parquet(tmp_path / "steps.parquet")["begin_ns"].isna().all()
