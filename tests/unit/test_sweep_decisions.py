"""What a sweep decides from what it has measured so far, and what an edit of the study has it measure."""

import json
import shutil
from contextlib import chdir

import pytest

from castmates.results.launch_tables import read_windows
from castmates.study.curves import measured_later
from castmates.study.rounds import Cost, best_rounds, expected_ratio
from tests.house import ROOT
from tests.unit.sweep_in_process import Sweep

pytestmark = pytest.mark.landing  # half a minute

NOISY = {"noise": {"window": "20%", "scene": "0.1%", "launch": "0.1%", "drift": 0}}
AUTO = {"launches": 4, "rounds": "auto", "window": 0.1, "settle": 0.02}
# With this seed the first launches decide on another number than the one that they had.
DECIDING = {"seed": 4, "model": NOISY, "budget": AUTO}
FIXED = {"launches": 4, "rounds": 1, "window": 0.1, "settle": 0.02, "longest_launch": 3600}
ADAPTIVE = {"model": {"ways": 8}, "cache": {"monitor": 0, "sweeps": [{"split": "all"}]},
            "recommend": {"lead_loss": "20%"},
            "budget": FIXED | {"adaptive": True, "batch": 4, "most_launches": 8, "mixes_per_launch": 64}}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def swept(study, place):
    """The results of a sweep in a folder, to be copied."""
    (place / "envs").symlink_to(ROOT / "envs")
    with chdir(place):
        Sweep(study).run()
    return place / "results"


@pytest.fixture(scope="module")
def deciding(tmp_path_factory):
    return swept(DECIDING, tmp_path_factory.mktemp("deciding"))


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory):
    return swept(ADAPTIVE, tmp_path_factory.mktemp("adaptive"))


@pytest.fixture
def decided(deciding, folder):
    """A sweep whose first launches have decided how many rounds the others have: its cohort, and what was decided."""
    shutil.copytree(deciding, "results")
    sweep = Sweep(DECIDING)
    ((file, text),) = sweep.texts("rounds").items()
    return sweep, file.removesuffix(".json"), json.loads(text)


def test_the_first_launches_decide_how_many_rounds_the_others_have(decided):
    sweep, cohort, decision = decided
    first, second, *others = sweep.rounds[cohort]
    assert first == second != decision["rounds"]
    assert others == [decision["rounds"]] * 2
    assert (decision["launches"], decision["within"] > 0.05) == (2, True)
    ratio = expected_ratio(decision["between"] ** 2, decision["within"] ** 2, freedom=1)
    assert decision["rounds"] == best_rounds(ratio, Cost(decision["launch"], decision["round"]), fitting=1000)
    assert sweep.run().played == []


@pytest.mark.parametrize("lost", ["decision", "first launch"])
def test_a_decision_stays_whatever_is_lost_and_is_asked_of_new_cohorts(decided, lost):
    before, cohort, decision = decided
    if lost == "decision":
        before.folder.rounds_file(cohort).unlink()
    elif lost == "first launch":
        shutil.rmtree(before.folder.launch(f"{cohort}/1"))
    had, text = before.rounds, before.texts("rounds")
    after = Sweep(DECIDING | {"budget": AUTO | {"launches": 5}, "antagonists": ["stream", "compute"]}).run()
    own = [path for path in after.played if path.startswith(cohort)]
    assert own == [f"{cohort}/1"] * (lost == "first launch") + [f"{cohort}/5"]
    assert after.rounds[cohort][-1] == decision["rounds"]
    assert after.texts("rounds").items() >= text.items()
    if lost == "decision":
        assert json.loads(after.folder.rounds_file(cohort).read_text())["launches"] == 0, "that of launches with it"
    (added,) = after.rounds.keys() - had.keys()
    assert after.rounds[added][2:] == [json.loads(after.folder.rounds_file(added).read_text())["rounds"]] * 3


def test_a_fixed_number_holds_for_what_is_still_to_come(decided):
    before, cohort, _ = decided
    had = before.rounds[cohort]
    assert Sweep(DECIDING | {"budget": AUTO | {"launches": 5, "rounds": 3}}).run().rounds == {cohort: [*had, 3]}


def test_looks_at_the_precision_come_after_the_decision(decided):
    budget = AUTO | {"precision": "100%", "batch": 6, "most_launches": 12}
    sweep = Sweep(DECIDING | {"budget": budget}).run()
    (numbers,) = sweep.rounds.values()
    assert len(numbers) == 10
    assert Sweep(DECIDING | {"budget": budget}).run().played == []


def test_launches_are_added_until_the_precision_or_the_budget_is_reached():
    def wants(precision, most):
        return {"budget": FIXED | {"batch": 6, "precision": precision, "most_launches": most}}

    def reached(sweep):
        return [json.loads(text)["reached"][0] for text in sweep.texts("looks").values()]

    first = Sweep(wants("0.0001%", 10)).run()  # out of reach
    assert len(first.played) == 10
    assert [one["goes_on"] for one in reached(first)] == [True, False]
    second = Sweep(wants("90%", 14)).run()  # reached at the first look, and confirmed six launches later
    assert second.played == []
    assert reached(second)[-1]["enough"]
    assert Sweep(wants("95%", 14)).run().played == [], "less is wanted: another look, and nothing is measured"


@pytest.mark.parametrize("more", [{"precision": "1%"}, {"adaptive": True}])
def test_looks_ask_for_no_more_launches_of_a_lead_that_is_compared_with_nothing(more):
    sweep = Sweep({"antagonists": [], "budget": FIXED | {"launches": 4, "batch": 3, "most_launches": 12} | more}).run()
    assert [path.partition("/")[2] for path in sweep.played] == ["1", "2", "3", "4"]
    assert sweep.texts("looks")


def test_looks_of_an_adaptive_study_decide_what_launches_measure_and_the_full_grid_can_follow(adaptive):
    shutil.copytree(adaptive, "results")
    sweep = Sweep(ADAPTIVE)
    assert len(json.loads(sweep.texts("looks")["1.json"])["cells"]) < 8, "not all of the grid"
    assert sweep.plan.later == measured_later(sweep.plan.mixes)
    had = sweep.records
    for path, record in had.items():
        assert set(read_windows([sweep.folder.launch(path)])["scene"]) == set(record["scenes"])
    assert sweep.run().played == []
    whole = Sweep(ADAPTIVE | {"budget": ADAPTIVE["budget"] | {"adaptive": False, "launches": 8}})
    assert had.keys() <= whole.planned.measured
    added = [launch for launch in whole.plan.launches if launch.path not in had]
    assert added
    for mix in whole.plan.mixes:
        measured = sum(
            mix in launch.cohort.mixes and mix.identity not in launch.skipped for launch in whole.plan.launches
        )
        assert measured >= 8, "the full grid is completed"


def test_a_sweep_that_was_killed_anywhere_decides_the_same_again(adaptive):
    shutil.copytree(adaptive, "results")
    before = Sweep(ADAPTIVE)
    decided, launches = before.texts("looks"), sorted(before.records)
    for file in before.folder.path.glob("looks/*.json"):
        file.unlink()
    for path in launches[1::3]:
        shutil.rmtree(before.folder.launch(path))
    again = Sweep(ADAPTIVE).run()
    assert again.texts("looks") == decided
    assert (sorted(again.records), sorted(again.played)) == (launches, launches[1::3])
