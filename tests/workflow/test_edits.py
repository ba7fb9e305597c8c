"""After an edit of the YAML only what is new is measured, and nothing measured is thrown away."""

import json
import re

import pytest
import yaml

from castmates import project as projects
from tests.unit.caches import cache as cache_of
from tests.workflow.sweeps import ROOT, STUDY, Sweeps


def unchanged(before: dict, after: dict) -> bool:
    return all(after.get(block) == written for block, written in before.items())


def readme_example() -> dict:
    """The five lines that the README tells a user to write."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"<!-- a workload -->\s*```yaml\n(.*?)```", text, re.DOTALL)
    assert found, "the README shows no workload"
    assert len(found[1].strip().splitlines()) <= 6  # the `workloads:` line, and five more
    return yaml.safe_load(found[1])["workloads"]


def test_a_workload_is_added_as_the_readme_shows(project):
    (name, workload), *none = readme_example().items()
    assert not none
    before = project.blocks()
    project.write_study({"workloads": {name: workload}, "antagonists": ["stream", name]})
    done = project.run()
    assert done.returncode == 0, done.stderr
    after = project.blocks()
    assert unchanged(before, after)
    assert len(after) == len(before) + 2
    assert all(project.record(block)["status"] == "measured" for block in after)
    assert set(project.effects()["mix"]) == {"chase+stream", f"chase+{name}"}
    assert "Nothing to be done" in project.run("--dry-run").stdout


def test_a_larger_budget_measures_only_more_blocks(project):
    before = project.blocks()
    project.write_study({"budget": STUDY["budget"] | {"blocks": 3, "rounds": 3}})
    assert project.run().returncode == 0
    after = project.blocks()
    assert unchanged(before, after)
    assert len(after) == 3
    effects = project.effects()
    assert (effects["blocks"] == 3).all()
    assert effects["slowdown_low"].notna().all()


def test_a_removed_workload_leaves_the_tables_and_nothing_is_measured(project):
    project.write_study({"antagonists": ["stream", "compute"]})
    assert project.run().returncode == 0
    before = project.blocks()
    project.write_study({})
    assert project.run().returncode == 0
    assert project.blocks() == before
    assert set(project.effects()["mix"]) == {"chase+stream"}


def test_a_failed_block_is_told_and_costs_the_others_nothing(project):
    before = project.blocks()
    bad = {"command": "false"}
    project.write_study({"workloads": {"bad": bad}, "antagonists": ["stream", "bad"]})
    done = project.run()
    assert done.returncode == 0, done.stderr
    assert unchanged(before, project.blocks())
    page = (project.results / "report/index.html").read_text()
    assert "false ended with status 1" in page
    assert "2 of 4 blocks: failed" in done.stderr
    assert "castmates retry" in done.stderr
    assert "Nothing to be done" in project.run("--dry-run").stdout
    assert "2 blocks forgotten" in project.castmates("retry")
    assert "measure_block" in project.run("--dry-run").stdout, "the report is there, but forgotten blocks are not"


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
