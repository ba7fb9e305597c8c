"""With `rounds: auto` the first two launches of each cohort decide how many rounds its others have, once for all."""

import json
import shutil

import pytest

from castmates.study.rounds import Cost, best_rounds, expected_ratio
from tests.workflow.sweeps import TABLES, Sweeps

BUDGET = {"launches": 4, "rounds": "auto", "window": 0.1, "settle": 0.02}
# With this seed the first launches decide on another number than the one that they had.
STUDY = {"seed": 4, "platform": "modelled", "antagonists": ["stream"], "budget": BUDGET}
NOISY = {"noise": {"window": "20%", "scene": "0.1%", "launch": "0.1%", "drift": 0}}


def parted(launch: str) -> list[str]:
    return launch.split("/")


def rounds(sweeps: Sweeps) -> dict[str, list[int]]:
    """The rounds of each cohort's measured launches, in their order."""
    found: dict[str, list[int]] = {}
    for cohort, number in sorted((cohort, int(number)) for cohort, number in map(parted, sweeps.launches())):
        found.setdefault(cohort, []).append(sweeps.record(f"{cohort}/{number}")["spec"]["design"]["rounds"])
    return found


def decisions(sweeps: Sweeps) -> dict[str, str]:
    return {file.stem: file.read_text() for file in sweeps.results.glob("rounds/*.json")}


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """A modelled study whose first launches have decided, from an empty folder to its page."""
    folder = tmp_path_factory.mktemp("rounds")
    sweeps = Sweeps.make(folder / "project", folder / "cache")
    sweeps.write_study(STUDY | {"model": NOISY})
    said = sweeps.castmates("plan", "--all")
    assert "the first 2 launches decide how many rounds the others have" in " ".join(said.split())
    sweeps.sweep()
    return sweeps


def test_the_first_launches_decide_and_everything_shows_it(decided):
    ((cohort, text),) = decisions(decided).items()
    decision = json.loads(text)
    first, second, *others = rounds(decided)[cohort]
    assert first == second
    assert others == [decision["rounds"]] * 2
    assert decision["launches"] == 2
    assert decision["within"] > 0.05
    ratio = expected_ratio(decision["between"] ** 2, decision["within"] ** 2, freedom=1)
    assert decision["rounds"] == best_rounds(ratio, Cost(decision["launch"], decision["round"]), fitting=1000) != first
    decided.assert_finished()
    words = f"{decision['rounds']} rounds in each launch after the first ones: in the first 2 the loss varies by"
    assert words in " ".join(decided.castmates("plan", "--all").split())
    assert words in (decided.results / "report/index.html").read_text()
    plan = json.loads((decided.results / "plan.json").read_text())
    assert sorted(design["rounds"] for design in plan["designs"].values()) == [0, first]


def test_a_larger_budget_and_a_new_antagonist_change_no_decision_and_measure_nothing_again(decided, tmp_path):
    sweeps = decided.copy(tmp_path / "project")
    before, ((cohort, text),) = sweeps.launches(), decisions(sweeps).items()
    budget = BUDGET | {"launches": 5}
    sweeps.write_study(STUDY | {"model": NOISY, "budget": budget, "antagonists": ["stream", "compute"]})
    sweeps.sweep(TABLES)
    after = sweeps.launches()
    assert before.items() <= after.items()
    assert decisions(sweeps)[cohort] == text
    assert rounds(sweeps)[cohort] == [*rounds(decided)[cohort], json.loads(text)["rounds"]]
    (added,) = decisions(sweeps).keys() - {cohort}
    assert len(rounds(sweeps)[added]) == 5
    assert rounds(sweeps)[added][2:] == [json.loads(decisions(sweeps)[added])["rounds"]] * 3
    sweeps.assert_finished(TABLES)


def test_a_fixed_number_holds_for_what_is_still_to_come(decided, tmp_path):
    sweeps = decided.copy(tmp_path / "project")
    before, had = sweeps.launches(), rounds(sweeps)
    sweeps.write_study(STUDY | {"model": NOISY, "budget": BUDGET | {"launches": 5, "rounds": 3}})
    sweeps.sweep(TABLES)
    assert before.items() <= sweeps.launches().items()
    assert rounds(sweeps) == {cohort: [*numbers, 3] for cohort, numbers in had.items()}


def test_a_decision_that_is_lost_is_that_of_the_launches_that_were_measured_with_it(decided, tmp_path):
    sweeps = decided.copy(tmp_path / "project")
    before, had = sweeps.launches(), rounds(sweeps)
    (file,) = sweeps.results.glob("rounds/*.json")
    file.unlink()
    sweeps.write_study(STUDY | {"model": NOISY, "budget": BUDGET | {"launches": 5}})
    sweeps.sweep(TABLES)
    assert before.items() <= sweeps.launches().items()
    assert rounds(sweeps) == {cohort: [*numbers, numbers[-1]] for cohort, numbers in had.items()}
    assert json.loads(file.read_text())["launches"] == 0


def test_a_first_launch_that_is_measured_again_changes_no_decision(decided, tmp_path):
    sweeps = decided.copy(tmp_path / "project")
    before, ((cohort, text),) = sweeps.launches(), decisions(sweeps).items()
    shutil.rmtree(sweeps.results / "launches" / cohort / "1")
    sweeps.write_study(STUDY | {"model": NOISY, "budget": BUDGET | {"launches": 5}})
    sweeps.sweep(TABLES)
    after = sweeps.launches()
    assert {launch for launch in before if after[launch] != before[launch]} == {f"{cohort}/1"}
    assert rounds(sweeps)[cohort][-1] == json.loads(text)["rounds"]
    assert decisions(sweeps) == {cohort: text}


def test_looks_at_the_precision_come_after_the_decision(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    budget = BUDGET | {"launches": 4, "precision": "100%", "batch": 6, "most_launches": 12}
    sweeps.write_study(STUDY | {"budget": budget})
    sweeps.sweep(TABLES)
    (numbers,) = rounds(sweeps).values()
    assert len(numbers) == 10
    sweeps.assert_finished(TABLES)
