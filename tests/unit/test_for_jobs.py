"""What a sweep leaves for its jobs on other nodes is what the planning process knows itself."""

import json

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline import measure_launch
from castmates.pipeline.planned_sweep import PlannedSweep
from castmates.report.figures.index import figures_of
from castmates.results.for_jobs import written_sweep
from castmates.results.plans import read_plan, read_task
from castmates.study.plan_text import plan_text
from castmates.study.rounds import without_decisions
from castmates.workloads import environments
from castmates.workloads.native import build as native
from tests.unit.modelled.makers import STUDY, project_of


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = project_of(tmp_path, STUDY)
    return PlannedSweep(loaded, loaded.plan(), tmp_path / "cache", figures_of)


def test_a_job_sees_the_sweep_as_the_process_that_planned_it(sweep):
    sweep.found([])
    sweep.leave_for_jobs()
    seen = written_sweep(sweep.project.study_file)
    assert seen.terms == sweep.terms
    assert {path: seen.launch(path) for path in sweep.paths} == {path: sweep.launch(path) for path in sweep.paths}
    assert seen.launches == tuple(sweep.paths) == sweep.found([])
    with pytest.raises(CastmatesError, match="cannot be read on this node"):
        seen.launch("nobody/1")


def test_what_is_found_out_later_is_told_at_once(sweep):
    sweep.leave_for_jobs()
    sweep.found([["one"]])
    assert len(written_sweep(sweep.project.study_file).looks) == 1


def test_a_job_that_reads_the_study_or_plans_would_notice_nothing_of_an_edit(sweep):
    sweep.leave_for_jobs()
    sweep.project.study_file.write_text("name: [")
    assert written_sweep(sweep.project.study_file).terms == sweep.terms


def test_a_cache_that_a_node_does_not_see_is_one_sentence(sweep, tmp_path):
    sweep.leave_for_jobs()
    (terms,) = (tmp_path / "results/.jobs").glob("*.json")
    terms.write_text(json.dumps(json.loads(terms.read_text()) | {"modelled": False, "cache": "/nowhere"}))
    with pytest.raises(CastmatesError, match=r"does not see the cache /nowhere .*set CASTMATES_CACHE to a folder on"):
        written_sweep(sweep.project.study_file)


def test_a_launch_reads_its_own_launch_of_the_plan(sweep, tmp_path):
    file = tmp_path / "results" / sweep.terms.study / "plan.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(plan_text(without_decisions(sweep.plan)))
    plan = read_plan(file)
    for launch in plan.launches:
        assert read_task(file, launch.path) == (launch, plan.memory, list(plan.machines))
    assert read_task(file, "nobody/1") is None
    file.write_text("{}")
    with pytest.raises(CastmatesError, match="this is not a plan"):
        read_task(file, "nobody/1")


def test_kernels_are_built_for_the_processor_of_the_node(sweep, tmp_path, monkeypatch):
    """Another processor, the same sources: built anew beside the others; with other sources the launch is refused."""
    launch = sweep.plan.launches[0]
    real = launch.model_copy(
        update={
            "design": launch.design.model_copy(update={"model": None}),
            "cohort": launch.cohort.model_copy(update={"native_key": "0" * 12}),
        }
    )
    planned = environments.ready_file(environments.place_of(environments.NATIVE, "0" * 12, tmp_path))
    built = []
    monkeypatch.setattr(environments, "build", lambda name, *_: built.append(name))
    assert measure_launch.built_for_us(real, tmp_path) == real  # which is refused, because it is not built
    planned.parent.mkdir(parents=True)
    planned.write_text(json.dumps({"sources": native.sources()}))
    ours = environments.key(environments.NATIVE, measure_launch.shipped.environments())
    assert measure_launch.built_for_us(real, tmp_path).cohort.native_key == ours
    assert built == [environments.NATIVE]
    planned.write_text(json.dumps({"sources": "others"}))
    with pytest.raises(CastmatesError, match="no longer those that this launch was planned with"):
        measure_launch.built_for_us(real, tmp_path)
