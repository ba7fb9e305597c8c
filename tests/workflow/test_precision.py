"""A sweep adds launches until the wanted precision, or its budget, is reached, and ends by itself."""

import json

import pytest

from tests.workflow.sweeps import STUDY, TABLES, Sweeps

pytestmark = pytest.mark.quiet
QUICK = STUDY["budget"] | {"rounds": 1, "window": 0.05, "settle": 0.01, "longest_settle": 0.01}


def budget(precision: str, most: int, **changes: object) -> dict[str, object]:
    return {"budget": QUICK | {"launches": 4, "batch": 6, "precision": precision, "most_launches": most} | changes}


def looks(sweeps: Sweeps) -> list[dict]:
    files = sorted(sweeps.results.glob("looks/*.json"), key=lambda file: int(file.stem))
    return [json.loads(file.read_text()) for file in files]


def test_launches_are_added_until_the_precision_or_the_budget_is_reached(project):
    before = project.launches()
    project.write_study(budget("0.0001%", 10))  # out of reach
    project.sweep(TABLES)
    first = project.launches()
    assert before.items() <= first.items()
    assert len(first) == 10
    assert [one["reached"][0]["goes_on"] for one in looks(project)] == [True, False]
    assert (project.effects()["launches"] == 10).all()

    project.write_study(budget("90%", 14))  # reached at the first look, and confirmed six launches later
    done = project.sweep()
    assert "±90 % reached by 1 of 1 cohort." in done.stderr
    page = (project.results / "report/index.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "±90 % reached by 1 of 1 cohort." in page
    second = project.launches()
    assert first == second
    assert looks(project)[-1]["reached"][0]["enough"]
    assert (project.effects()["launches"] == 10).all()
    project.assert_finished()

    project.write_study(budget("95%", 14))  # less is wanted: another look, and nothing is measured
    again = project.run("--dry-run").stdout
    assert "measure_launch" not in again
    assert "analyse" in again, "it says which precision was reached"

    record = project.results / "launches" / next(iter(second)) / "launch.json"
    record.unlink()  # its windows are there: it is not whole
    assert "measure_launch" in project.run("--dry-run", "results/small/looks/1.json").stdout


def test_a_pilot_is_measured_once_and_gives_the_study_its_rounds(project):
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
