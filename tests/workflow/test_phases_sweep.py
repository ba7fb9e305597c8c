"""A real sweep of a job that reports phases and counts in them: its tables by phase and over the rounds are drawn."""

import pandas as pd
import pytest

from castmates.inside import open_counters
from tests.needs import insist
from tests.runner.stage import JOB, PYTHON
from tests.workflow.sweeps import STUDY, Sweeps

pytestmark = pytest.mark.quiet
LEAD = {
    "command": [PYTHON, "-c", JOB],
    "progress": "heartbeat",
    "unit": "step",
    "phases": True,
    "variables": {"CASTMATES_PHASE_COUNTERS": "page-faults,task-clock"},
}
PARTS = {"input", "forward", "optimizer"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    insist("two-cpus", "events")
    folder = tmp_path_factory.mktemp("phases")
    sweeps = Sweeps.make(folder / "project", folder / "cache")
    budget = STUDY["budget"] | {"launches": 3, "rounds": 3}
    counters = STUDY["counters"] | {"events": ["basic", "faults", "sources"]}
    sweeps.write_study({"leads": ["job"], "workloads": {"job": LEAD}, "budget": budget, "counters": counters})
    sweeps.sweep()
    return sweeps


def figure(swept, name):
    return pd.read_csv(swept.results / f"figures/{name}.csv")


def test_counts_of_phases_are_compared_where_they_were_made(swept):
    if "page-faults" not in open_counters(["page-faults"]).names:
        pytest.skip("page faults cannot be counted here")
    found = figure(swept, "phase_counts")
    faults = found[(found["metric"] == "page-faults") & (found["source"] == "in-process")].set_index("phase")
    # `forward` touches a hundred fresh pages in every step, alone and beside others; the other phases none.
    assert faults.loc["forward", "alone"] == pytest.approx(100, rel=0.1)
    assert faults.loc["forward", "ratio"] == pytest.approx(1, abs=0.1)
    assert set(found["phase"]) <= PARTS | {"forward/attention"}
    assert set(faults["launches"]) == {3}


def test_counts_go_on_over_the_rounds_by_iteration(swept):
    found = figure(swept, "counters_evolution")
    assert set(found["round"]) == {1, 2, 3}
    alone = found[(found["metric"] == "page-faults") & (found["kind"] == "alone")].set_index("round")
    assert alone["iteration"].is_monotonic_increasing
    assert alone["value"].tolist() == pytest.approx([100] * 3, rel=0.1)


def test_a_set_that_the_processor_has_nothing_of_is_a_row_with_its_reason(swept):
    counts = pd.concat([pd.read_parquet(file) for file in swept.results.glob("launches/*/*/counters.parquet")])
    own = counts[(counts["set"] == "sources") & (counts["phase"] == "")]
    assert len(own)
    lacking = own[own["event"] == "sources"]
    assert lacking.empty or set(lacking["status"]) == {"not supported"}
    assert lacking.empty or lacking["note"].str.contains("perf").all()
    assert "sources" in (swept.results / "report/index.html").read_text()
