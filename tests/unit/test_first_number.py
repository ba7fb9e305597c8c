"""First numbers count for the result, and control launches of another study count like those of one's own."""

import itertools
import json
import platform
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from castmates.analysis.effects.reused import CHANGED, difference_of_reused
from castmates.errors import CastmatesError
from castmates.linux.owner import boot_id
from castmates.pipeline.busy import busy_words
from castmates.pipeline.first_number import AFTERWARDS, LONGEST, Quick, first_number
from castmates.pipeline.measure_launch import measure_launch, refuse_busy_machine
from castmates.pipeline.own_study import budget_of
from castmates.pipeline.reused_controls import is_same, sweep_with_reused
from castmates.pipeline.snakemake import hold_sweep_lock
from castmates.project import load
from castmates.report.answer.first_number import first_lines
from castmates.results.columns.launch import SAMPLES, SLICES
from castmates.results.columns.parquet import write_rows
from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read, read_windows
from castmates.results.records import REUSED, read_record
from castmates.results.reused import copy_launch
from castmates.runner.record import versions
from tests.house import ROOT
from tests.unit.sweep_in_process import Sweep

STUDY = {
    "budget": {"launches": 4, "rounds": 3, "window": 0.1, "steps": 10, "settle": 0.02},
    "controls": {"reuse": True},
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("castmates.pipeline.first_number.hold_sweep_lock", lambda _: None)  # held as long as we live
    monkeypatch.setattr("castmates.pipeline.first_number.age", lambda: 0.0)
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.landing
@pytest.mark.parametrize(("window", "launches"), [(0.1, 2), (10.0, 1)])
def test_a_first_number_is_stamped_and_its_launches_count(monkeypatch, window, launches):
    """Also where they had to be shorter than those of the study: what is missing then has the study's length."""
    seconds = itertools.count(0, 5)  # modelled launches take none: five between two looks at the clock
    monkeypatch.setattr("castmates.pipeline.first_number.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    budget = STUDY["budget"] | {"window": window, "longest_window": 80.0}
    Sweep(STUDY | {"budget": budget})  # writes the study
    found = first_number(load("study.yaml"), print)
    lines = first_lines(found)
    many = "2 launches" if launches == 2 else "1 launch"
    assert lines[0].startswith(f"FIRST NUMBER, not a result: {many} of 4, no controls")
    (loss,) = found.losses
    assert (loss.lead, loss.beside, loss.low < loss.loss < loss.high) == ("chase", "stream", True)
    assert any(f"beside stream  {loss.loss:.1f} %" in line.replace("−", "-") for line in lines)
    assert any("no verdict" in line for line in lines)
    sweep = Sweep(STUDY | {"budget": budget}).run()
    assert [path.partition("/")[2] for path in sweep.played if path.startswith("chase")] == ["2", "3", "4"][
        launches - 1 :
    ]
    designs = [record["spec"]["design"] for path, record in sweep.records.items() if path.startswith("chase")]
    assert [each["window"] for each in designs[launches:]] == [window] * (4 - launches)
    assert (designs[0]["window"] < window, designs[0]["rounds"]) == ((False, 3) if launches == 2 else (True, 2))


@pytest.mark.landing
@pytest.mark.parametrize("run", [0.1, 0.3, 1.5])
def test_a_first_number_takes_as_long_as_is_said(run):
    """In the model's own time, from the first scene of the warm-up on: the minute is kept, or what is said instead."""
    own = {
        "command": ["sort"],
        "progress": "runs",
        "model": {"compute": run, "accesses": 1, "parallel": 1, "reuse": []},
    }
    budget = yaml.safe_load("\n".join(budget_of(run, 6)))
    Sweep({"workloads": {"mine": own}, "leads": ["mine"], "antagonists": ["stream", "chase"]} | budget)
    project, said = load("study.yaml"), []
    (first, *_) = Quick.of(project, LONGEST - AFTERWARDS).launches
    first_number(project, said.append)
    slices = read([project.results.launch(first.path)], "slices")
    warm_up = read_record(project.results.launch(first.path) / "launch.json")["seconds"]["warm_up"]
    took = warm_up + (slices["close_ns"].max() - slices["switch_ns"].min()) / 1e9
    expected = Quick.of(project, LONGEST - AFTERWARDS).expected
    assert 0.6 * expected < took < expected
    assert (expected > LONGEST, bool(said)) == ((True, True) if run > 1 else (False, False))


@pytest.mark.landing
def test_a_second_launch_that_gives_nothing_takes_nothing_from_the_first(monkeypatch):
    def spoiling(plan, path, place, cache):
        measure_launch(plan, path, place, cache)
        if path.endswith("/2"):
            record = read_record(place / "launch.json") | {"rounds": 0}
            (place / "launch.json").write_text(json.dumps(record))

    monkeypatch.setattr("castmates.pipeline.first_number.measure_launch", spoiling)
    Sweep(STUDY)
    said = []
    found = first_number(load("study.yaml"), said.append)
    assert (found.stamp, found.launches, found.planned) == ("FIRST NUMBER, not a result", 1, 4)
    assert "/2 gave nothing (no clean round)" in said[-1]


NOW = datetime.now(UTC)


@pytest.mark.landing
def test_controls_are_reused_only_where_all_that_defines_them_is_the_same():
    sweep = Sweep(STUDY).run()
    (launch,) = [each for each in sweep.plan.launches if each.number == 2 and each.cohort.lead.workload == "taxed"]
    usual = sweep.records[launch.path] | {"boot_id": boot_id(), "host": platform.node(), "versions": versions()}
    usual |= {"started": (NOW - timedelta(hours=23)).isoformat(), "spec": usual["spec"] | {"study": "another"}}
    assert is_same(usual, launch)
    others = [
        {"boot_id": "before"}, {"host": "elsewhere"}, {"versions": versions() | {"kernel": "6.0"}}, {"rounds": 0},
        {"started": (NOW - timedelta(hours=25)).isoformat()}, {REUSED: {"study": "a third"}}, {"status": "failed"},
        {"spec": usual["spec"] | {"seed": usual["spec"]["seed"] + 1}},
    ]  # fmt: skip
    assert [other for other in others if is_same(usual | other, launch)] == []


def test_controls_are_not_reused_into_results_that_are_being_written():
    Sweep(STUDY)
    hold_sweep_lock(StudyFolder.of("small"))
    with pytest.raises(CastmatesError, match=r"another sweep \(process \d+\) is writing to"):
        sweep_with_reused(Path("study.yaml"), "all", print, None, [])


@pytest.mark.landing
def test_controls_that_are_shared_do_not_depend_on_the_program_and_the_study_calls_none_changed():
    long = STUDY | {"budget": STUDY["budget"] | {"window": 7.0, "longest_window": 14.0}}
    sweep, other = Sweep(long).run(), Sweep(STUDY)
    controls = {launch.path: launch for launch in other.plan.launches if launch.cohort.lead.workload != "chase"}
    assert controls
    for path, launch in controls.items():
        assert sweep.records[path]["spec"] == launch.model_dump(mode="json")
    Sweep(long)
    assert not [each for each in load("study.yaml").plan().notes if "measured with" in each.text]


@pytest.mark.landing
def test_a_launch_that_is_copied_is_one_of_its_new_study_and_says_where_it_comes_from(folder):
    sweep = Sweep(STUDY).run()
    shutil.copytree("results/small", "kept")
    path = next(path for path in sweep.records if not path.startswith("chase"))
    copy_launch(sweep.folder.launch(path), StudyFolder.of("other").launch(path), "other")
    (folder / "study.yaml").write_text((folder / "study.yaml").read_text().replace("name: small", "name: other"))
    found = load("study.yaml").found()
    assert not found.torn
    assert [launch.path for launch in found.measured] == [path]
    record = read_record(StudyFolder.of("other").launch(path) / "launch.json")
    assert record[REUSED]["study"] == "small"
    for name in ("windows", "slices", "samples", "steps"):
        had = read([sweep.folder.launch(path)], name).drop(columns="study")
        now = read([StudyFolder.of("other").launch(path)], name)
        assert set(now["study"]) <= {"other"}
        pd.testing.assert_frame_equal(now.drop(columns="study"), had)


@pytest.mark.landing
@pytest.mark.parametrize(("factor", "changed"), [(1.0, False), (0.8, True)])
def test_a_machine_that_has_changed_since_is_seen_in_the_controls(factor, changed):
    sweep = Sweep(STUDY | {"model": {"noise": {"window": "0.1%", "scene": "0.1%", "launch": "0.1%", "drift": 0}}}).run()
    project = load("study.yaml")
    plan = project.plan()
    windows = read_windows(project.results.places(plan))
    controls = [launch for launch in plan.launches if launch.cohort.lead.workload != "chase"]
    fresh = (windows["launch"] == 1) & (windows["kind"] == "corun") & (windows["role"] == "lead")
    windows["rate"] = windows["rate"] * np.where(fresh, factor, 1.0)
    p = difference_of_reused(plan, windows, [launch.path for launch in controls if launch.number > 1])
    assert p is not None
    assert (p < CHANGED) == changed
    assert difference_of_reused(plan, windows, []) is None
    assert sweep.records


def spoilt(place: Path, rejected: int, who: dict[str, float]) -> None:
    """A launch of ten slices of a second, of which so many were rejected because others ran."""
    place.mkdir(parents=True)
    ledger = {"slices": {"alone": 10}, "slices_rejected": {"alone": rejected},
              "slices_because": {"foreign load": {"alone": rejected}}}  # fmt: skip
    (place / "launch.json").write_text(json.dumps({"status": "measured", "rounds": 0, "ledger": ledger}))
    about = {"study": "s", "cohort": "c", "launch": int(place.name), "window": 1, "platform": "measured"}
    texts = {name: "" for name, kind in SLICES.items() if kind == "str"}
    slices = [
        dict.fromkeys(SLICES, 0)
        | texts
        | about
        | {"slice": number, "open_ns": number * 10**9, "close_ns": (number + 1) * 10**9}
        for number in range(10)
    ]
    write_rows(slices, dict(SLICES), place / "slices.parquet")
    samples = [
        about
        | {"t_ns": 0, "source": "culprits", "subject": subject, "metric": "foreign_s", "value": seconds, "note": name}
        for name, seconds in who.items()
        for subject in ("cpu0", "llc0")
    ]
    write_rows(samples, dict(SAMPLES), place / "samples.parquet")


def test_a_sweep_on_a_busy_machine_ends_after_its_first_launch_and_names_who_took_how_much(tmp_path):
    who = {"clang (pid 7)": 6.0, "children of clang (pid 8)": 3.0, "bash (pid 9)": 0.5, "init (pid 1)": 0.01}
    spoilt(tmp_path / "launches/c-1/1", 10, who)
    assert busy_words([tmp_path / "launches/c-1/1"]) == "clang (90 % of a CPU) and bash (5 % of a CPU)"
    with pytest.raises(
        CastmatesError, match=r"nothing of the first launch counts, .* clang \(90 % of a CPU\) and bash"
    ):
        refuse_busy_machine(StudyFolder(tmp_path))
    shutil.rmtree(tmp_path / "launches")
    spoilt(tmp_path / "launches/c-1/1", 6, who)
    refuse_busy_machine(StudyFolder(tmp_path))  # the next launch may be better
    spoilt(tmp_path / "launches/c-1/2", 6, who)
    with pytest.raises(CastmatesError, match=r"nothing of the first 2 launches counts"):
        refuse_busy_machine(StudyFolder(tmp_path))
