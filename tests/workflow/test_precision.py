"""A sweep adds launches until the wanted precision is reached, and ends by itself; a pilot proposes rounds.

When it goes on, and when not, is tested without Snakemake (tests/unit/test_sweep_decisions.py).
"""

import json

import pytest

from tests.workflow.sweeps import STUDY, Sweeps

BUDGET = {
    "launches": 4,
    "batch": 6,
    "most_launches": 14,
    "precision": "90%",
    "rounds": 1,
    "window": 0.1,
    "settle": 0.02,
}


@pytest.mark.nightly
def test_launches_are_added_until_the_precision_is_reached(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    sweeps.write_study({"platform": "modelled", "budget": BUDGET})
    done = sweeps.sweep()  # reached at the first look, and confirmed six launches later
    looks = [json.loads((sweeps.results / f"looks/{number}.json").read_text())["reached"][0] for number in (1, 2)]
    assert [look["goes_on"] for look in looks] == [True, False]
    assert looks[-1]["enough"]
    assert len(sweeps.launches()) == 10
    assert (sweeps.effects()["launches"] == 10).all()
    assert "±90 % reached by 1 of 1 cohort." in done.stderr
    page = (sweeps.results / "report/index.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "±90 % reached by 1 of 1 cohort." in page
    sweeps.assert_finished()

    sweeps.write_study({"platform": "modelled", "budget": BUDGET | {"precision": "95%"}})
    again = sweeps.run("--dry-run").stdout  # less is wanted: another look, and nothing is measured
    assert "model_launch" not in again
    assert "analyse" in again, "it says which precision was reached"

    record = sweeps.results / "launches" / next(iter(sweeps.launches())) / "launch.json"
    record.unlink()  # its windows are there: it is not whole
    assert "model_launch" in sweeps.run("--dry-run", "results/small/looks/1.json").stdout


@pytest.mark.quiet
def test_a_pilot_is_measured_once_and_gives_the_study_its_rounds(cache, tmp_path):
    project = Sweeps.make(tmp_path / "project", cache)
    said = project.castmates("plan", "--pilot", "--launches", "2")
    assert "budget:\n  # " in said
    folder = project.folder / "results/small-pilot"
    records = {file: file.stat().st_mtime_ns for file in folder.glob("launches/*/*/launch.json")}
    assert len(records) == 2
    rounds = json.loads((folder / "pilot.json").read_text())["rounds"]
    assert project.castmates("plan", "--pilot", "--launches", "2") == said
    assert {file: file.stat().st_mtime_ns for file in records} == records
    project.write_study({"budget": STUDY["budget"] | {"rounds": "pilot", "launches": 3}})
    assert str(rounds) in project.castmates("plan", "--all")
