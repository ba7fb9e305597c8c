"""After an edit of the YAML only what is new is measured, and nothing measured is thrown away."""

import itertools
import json
import re

import pandas as pd
import pytest
import yaml

from castmates import project as projects
from castmates.workloads import inputs
from tests.unit.caches import cache as cache_of
from tests.workflow.sweeps import ROOT, STUDY, TABLES, Sweeps

READER = {"command": ["sh", "-c", "cat {inputs}/* > /dev/null"], "inputs": "xml"}
WIDE = {
    "title": "Another <title>",
    "workloads": {"reader": READER, "bad": {"command": "false"}},
    "leads": ["chase", "bad"],
    "antagonists": ["stream", "reader"],
}


def unchanged(before: dict, after: dict) -> bool:
    return all(after.get(launch) == written for launch, written in before.items())


def page_example() -> dict:
    """The five lines that docs/add-a-workload.md asks a user to write."""
    text = (ROOT / "docs/add-a-workload.md").read_text()
    found = re.search(r"<!-- a workload -->\s*```yaml\n(.*?)```", text, re.DOTALL)
    assert found, "the page shows no workload"
    assert len(found[1].strip().splitlines()) <= 6  # the `workloads:` line, and five more
    return yaml.safe_load(found[1])["workloads"]


@pytest.fixture(scope="module")
def wide(finished, tmp_path_factory):
    """The finished study with another title, an antagonist that reads a data set, and a lead that fails."""
    sweeps = finished.copy(tmp_path_factory.mktemp("wide") / "project")
    sweeps.write_study(WIDE)
    done = sweeps.sweep()
    return sweeps, done.stderr


def test_a_workload_is_added_as_its_page_shows_and_never_are_two_launches_measured_at_a_time(project):
    """Though the plan and the facts of the machine have to be made first, as where results were copied without them."""
    (name, workload), *none = page_example().items()
    assert not none
    before = project.launches()
    (project.results / "plan.json").unlink()
    (project.results / "machine.json").unlink()
    budget = STUDY["budget"] | {"launches": 3}
    project.write_study({"workloads": {name: workload}, "antagonists": ["stream", name], "budget": budget})
    project.sweep("-j", "4", TABLES)
    after = project.launches()
    assert unchanged(before, after)
    assert len(after) == len(before) + 1 + 3
    assert all(project.record(launch)["status"] == "measured" for launch in after)
    assert set(project.effects()["mix"]) == {"chase+stream", f"chase+{name}"}
    project.assert_finished(TABLES)
    windows = [pd.read_parquet(project.results / "launches" / launch / "windows.parquet") for launch in after]
    spans = sorted((each["open_ns"].min(), each["close_ns"].max()) for each in windows)
    assert all(first[1] < second[0] for first, second in itertools.pairwise(spans))


def test_a_new_title_reaches_the_report_and_measures_nothing(finished, wide, project):
    project.write_study({"title": WIDE["title"]})
    jobs = project.run("--dry-run").stdout
    assert "analyse" in jobs
    assert "measure_launch" not in jobs
    assert '<p class="name">Another &lt;title&gt;</p>' in (wide[0].results / "report/index.html").read_text()


def test_removed_workloads_leave_the_tables_and_nothing_is_measured(wide, tmp_path):
    project = wide[0].copy(tmp_path / "project")
    assert {"chase+stream", "chase+reader"} <= set(project.effects()["mix"])
    before = project.launches()
    project.write_study({})
    project.sweep(TABLES)
    assert project.launches() == before
    assert set(project.effects()["mix"]) == {"chase+stream"}


def test_a_failed_launch_is_told_and_costs_the_others_nothing(finished, wide, tmp_path):
    project, told = wide[0].copy(tmp_path / "project"), wide[1]
    assert unchanged(finished.launches(), project.launches())
    page = (project.results / "report/index.html").read_text()
    assert "false ended with status 1" in page
    assert "2 of 6 launches: failed" in told
    assert "castmates sweep --retry" in told
    project.assert_finished()
    said = project.discard()
    assert said.count("discarded (failed)") == 2, "others may be too, where this machine was busy"
    assert "measure_launch" in project.run("--dry-run").stdout, "the report is there, but discarded launches are not"


def test_inputs_are_made_once_and_read_by_what_is_measured(finished, wide, tmp_path):
    project = wide[0].copy(tmp_path / "project")
    (place,) = project.cache.glob("inputs/xml-*")
    assert place.name == f"xml-{inputs.key('xml', ROOT / 'envs')}"
    made = inputs.ready_file(place).stat().st_mtime_ns

    before, first = finished.launches(), project.launches()
    assert unchanged(before, first)
    new = [project.record(launch) for launch in first if launch not in before]
    records = [record for record in new if record["status"] == "measured"]
    assert len(records) == 2
    assert {record["inputs"]["xml"]["key"] for record in records} == {place.name.removeprefix("xml-")}
    commands = [one["command"] for name, one in records[0]["members"].items() if name.startswith("reader@")]
    assert commands[0][-1] == f"cat {place}/* > /dev/null"

    again = {"like": "reader", "title": "another reader", "variables": {"WHERE": "{inputs}"}}
    workloads = WIDE["workloads"] | {"again": again}
    project.write_study(WIDE | {"workloads": workloads, "antagonists": ["stream", "reader", "again"]})
    jobs = project.run("--dry-run").stdout
    assert "measure_launch" in jobs
    assert "build_inputs" not in jobs
    assert inputs.ready_file(place).stat().st_mtime_ns == made


def test_a_plan_that_is_made_anew_still_knows_what_could_be_shared_out(tmp_path, cache):
    places = {cpu.llc for cpu in projects.layout_of(projects.read_topology()).cpus}
    if projects.read_cache() is not None or None in places:
        pytest.skip("needs a machine that shares nothing out, with last-level caches that are known")
    sweeps = Sweeps.make(tmp_path / "project", cache)
    sweeps.write_study({"cache": {"sweeps": [{"split": 4}]}})
    file = sweeps.results / "plan.json"
    file.parent.mkdir(parents=True)
    known = cache_of(domains=sorted(places)).model_dump(mode="json")
    file.write_text(json.dumps({"cache": known}))
    done = sweeps.run("--force", "results/small/plan.json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(file.read_text())
    assert plan["cache"] == known
    assert any(mix["partitions"] for mix in plan["mixes"])
