"""How long launches in which steps are traced will take: as those took that were made, else a guess that says so."""

import json
from logging import makeLogRecord
from pathlib import Path

import pytest

from castmates.project import Project
from castmates.results.columns.operations import PROFILE_RECORD
from castmates.results.folder import StudyFolder
from castmates.study.profile_launches import traces_of
from castmates.terminal.display import Display
from castmates.terminal.preview.profiles import LAUNCH, TRACE, tracing_time
from tests.unit.makers import study
from tests.unit.test_profile_launches import planned


def made(folder, path, lead, *, total, trace, traces, status="measured"):
    place = folder.profile(path)
    place.mkdir(parents=True)
    record = {"status": status, "lead": lead, "seconds": {"total": total, "trace": trace}, "traces": [{}] * traces}
    (place / PROFILE_RECORD).write_text(json.dumps(record))


def test_launches_take_as_long_as_those_of_their_lead_took(tmp_path):
    folder = StudyFolder(tmp_path)
    launches = planned(profile={"launches": 2, "times": 2}).profiles
    assert [traces_of(each) for each in launches] == [6, 6]
    made(folder, "job/1", "job", total=9000, trace=0, traces=0, status="failed")
    assert tracing_time(launches, folder).endswith(" where steps are short"), "a launch that failed tells nothing"
    assert 2 * (LAUNCH + 6 * TRACE) == 42
    assert tracing_time(launches, folder).startswith("about 42 s")
    made(folder, "other/1", "other", total=160, trace=60, traces=3)
    assert tracing_time(launches[:1], folder) == "about 4 min"  # 100 s, and 6 traces of 20 s
    made(folder, "job/2", "job", total=30, trace=20, traces=4)
    assert tracing_time(launches, folder) == "about 80 s", "twice 10 s, and 6 traces of 5 s"


@pytest.mark.parametrize(
    ("rules", "first", "second"),
    [
        (["profile_launch", "measure_launch", "analyse"], "10 launches, about ", "and 2 launches in which steps"),
        (["profile_launch", "estimate_operations"], "2 launches in which steps are traced, about ", ""),
        (["measure_launch", "analyse"], "10 launches, about ", ""),
        (["write_plan"], "no launch is needed", ""),
    ],
)
def test_a_sweep_begins_with_the_launches_that_it_makes(rules, first, second, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made_plan = planned(profile={"launches": 2})
    project = Project(Path("study.yaml"), study(["job"], ["stream"]), {}, "")
    display = Display(project, made_plan, lambda: 1, progress=True)
    for event in ({"event": "workflow_started"}, {"event": "run_info", "stats": dict.fromkeys(rules, 1)}):
        display.emit(makeLogRecord(event))
    display.emit(makeLogRecord({"event": "job_started"}))
    display.close()
    head, under, *_ = capsys.readouterr().err.splitlines()
    assert head.split("   ")[2].startswith(first)
    assert under.strip().startswith(second)
    assert bool(under) == bool(second)
