"""What a sweep knows of launches that are over: in results that were copied, or without their cache, they stay so."""

import json

import pytest

from castmates.pipeline.planned_sweep import PlannedSweep
from castmates.report.figures.index import figures_of
from castmates.results.columns.launch import RECORD
from castmates.results.columns.operations import PROFILE_RECORD
from castmates.results.records import TABLES
from castmates.study.profile_launches import identity_of
from tests.unit.modelled.makers import STUDY, project_of


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A study with two launches of each cohort, each a profile launch too."""
    monkeypatch.chdir(tmp_path)
    loaded = project_of(tmp_path, STUDY)
    plan = loaded.plan()
    return PlannedSweep(loaded, plan.model_copy(update={"profiles": plan.launches}), tmp_path / "cache", figures_of)


def measured(sweep, launch, **changes):
    """Leave a launch as its launch would."""
    place = sweep.project.results.launch(launch.path)
    place.mkdir(parents=True)
    for table in TABLES:
        (place / table).touch()
    (place / RECORD).write_text(json.dumps({"spec": launch.model_dump(mode="json") | changes}))


def traced(sweep, launch, identity):
    place = sweep.project.results.profile(launch.path)
    place.mkdir(parents=True)
    (place / PROFILE_RECORD).write_text(json.dumps({"identity": identity}))


def test_only_launches_that_are_to_come_wait_for_what_is_not_there(sweep, tmp_path):
    """Snakemake would measure one again that waits for an environment which has to be built first."""
    over, otherwise, torn, to_come = sweep.plan.launches[:4]
    measured(sweep, over)
    measured(sweep, otherwise, seed=otherwise.seed + 1)
    measured(sweep, torn)
    (sweep.project.results.launch(torn.path) / min(TABLES)).unlink()
    traced(sweep, over, identity_of(over))
    traced(sweep, otherwise, "planned otherwise")
    there = tmp_path / "built"
    there.touch()
    files = [str(there), "not/there"]
    for of in ("", "profiles/"):
        assert sweep.waits_for(of + over.path, files) == [str(there)]
        for launch in (otherwise, torn, to_come):
            assert sweep.waits_for(of + launch.path, files) == files
