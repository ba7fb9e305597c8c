"""The studies that come with Castmates are planned on a server, each with the figures that it is there for."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates import project
from castmates.cli.main import app
from castmates.machine.capture.capture import record
from castmates.report.figures.index import figures_of
from tests.unit import machines, sysfs

ROOT = Path(__file__).parents[2]
STUDIES = [ROOT / "config/config.yaml", *sorted((ROOT / "config/studies").glob("*.yaml"))]


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_shipped_study_is_planned_on_a_server(file, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    theirs = tmp_path / "server.tar.gz"
    record(theirs, sysfs.build(tmp_path / "root", machines.xeon()))
    loaded = project.load(str(file.relative_to(ROOT)))
    # A modelled study brings its machine along.
    there = [] if loaded.modelled else ["--machine", str(theirs)]
    done = CliRunner().invoke(app, ["plan", str(file.relative_to(ROOT)), *there])
    assert done.exit_code == 0, done.output
    assert all(lead in done.output for lead in loaded.study.leads)


def test_the_study_of_phases_has_phases_counts_slots_and_layers(monkeypatch):
    monkeypatch.chdir(ROOT)
    loaded = project.load("config/studies/phases.yaml")
    (lead,) = loaded.study.leads
    assert loaded.workloads[lead].phases
    assert loaded.study.counters.profile > 0
    names = figures_of(loaded.plan(), loaded.results)
    assert {"phases", "phase_counts", "topdown_phases", "layers", "counters_evolution", "evolution"} <= set(names)
