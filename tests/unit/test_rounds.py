"""`rounds: auto`: what the plan shows before and after a cohort's first launches decide, and how they do."""

import json
import math

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline.looks import decide_rounds, decision_text
from castmates.pipeline.measure_launch import measure_launch
from castmates.results.folder import StudyFolder
from castmates.results.looks import decided_rounds, read_decisions
from castmates.results.plans import read_plan
from castmates.study.plan_text import plan_text as plan_text
from castmates.study.rounds import (
    UNDECIDED,
    USUAL_RATIO,
    Cost,
    Spread,
    best_rounds,
    first_rounds,
    guessed_cost,
    undecided,
    with_decisions,
    without_decisions,
)
from tests.unit.makers import plan, study, workloads
from tests.unit.windows_maker import written

COSTS = {"total": 22.0, "measure": 12.0, "launch": 8.0}
LONG = 10_000.0


def rounds(one):
    return [launch.design.rounds for launch in one.launches]


def test_the_first_two_launches_have_rounds_and_the_others_wait():
    one = study(["x"], ["a"])
    made = plan(one)
    first = first_rounds(made.cohorts[0], one.budget)
    assert rounds(made) == [first, first, UNDECIDED, UNDECIDED, UNDECIDED]
    assert undecided(made.launches)
    assert [launch.design.decided for launch in made.launches] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("environment", "window", "first"), [("native", 1.0, 3), ("tfmodels", 1.0, 5), ("tfmodels", 2.0, 3)]
)
def test_a_costly_launch_has_more_rounds_from_the_first(environment, window, first):
    programs = {name: one.model_copy(update={"environment": environment}) for name, one in workloads("x", "a").items()}
    one = study(["x"], ["a"], budget={"window": window, "settle": 0.1})
    # sqrt(7.5 / 6.25 / 0.05) = 4.9 with five scenes; a launch of 7.5 s is a fifth of a launch with 2.4 rounds of 12.5 s
    assert rounds(plan(one, programs=programs))[0] == first
    short = study(["x"], ["a"], budget={"window": window, "settle": 0.1, "longest_launch": 1})
    assert rounds(plan(short, programs=programs))[0] == 3


def test_a_decision_holds_for_the_launches_to_come_and_for_no_other():
    one = study(["x"], ["a"])
    before = plan(one)
    cohort = before.cohorts[0].id
    after = plan(one, measured=before.launches[:2], decided={cohort: 9})
    assert rounds(after)[2:] == [9, 9, 9]
    assert after == with_decisions(before, {cohort: 9})
    assert with_decisions(before, {"another": 9}) == before
    larger = plan(study(["x"], ["a"], budget={"launches": 6}), measured=after.launches, decided={cohort: 9})
    assert larger.launches[:5] == after.launches
    assert rounds(larger)[5] == 9


def test_a_decision_changes_neither_the_text_of_the_plan_nor_what_is_measured_again():
    one = study(["x", "y"], ["a"], budget={"launches": 4})
    before = plan(one)
    decided = {cohort.id: number for number, cohort in enumerate(before.cohorts, start=4)}
    for measured in (before.launches[:2], with_decisions(before, decided).launches):
        after = plan(one, measured=measured, decided=decided)
        assert without_decisions(after) == before
        assert plan_text(without_decisions(after)) == plan_text(before)
        texts = [[launch.fingerprint() for launch in without_decisions(each).launches] for each in (before, after)]
        assert texts[0] == texts[1]


def test_a_launch_from_before_says_what_it_said():
    one = plan(study(["x"], ["a"], budget={"rounds": 3}))
    assert "decided" not in one.launches[0].canonical()
    assert without_decisions(one).launches[0] is one.launches[0]


def test_measured_launches_of_a_fixed_number_keep_it():
    fixed = plan(study(["x"], ["a"], budget={"rounds": 5, "launches": 4}))
    cohort = fixed.cohorts[0].id
    more = study(["x"], ["a"], budget={"launches": 6})
    assert rounds(plan(more, measured=fixed.launches, decided={cohort: 9})) == [5, 5, 5, 5, 9, 9]
    assert rounds(without_decisions(plan(more, measured=fixed.launches, decided={cohort: 9}))) == [5, 5, 5, 5, 0, 0]


def test_controls_are_not_asked():
    control = {"positive": {"lead": "y", "antagonists": ["b"]}, "negative": None}
    made = plan(study(["x"], ["a"], controls=control), programs=workloads("x", "y", "a", "b"))
    assert {launch.design.rounds for launch in made.launches if launch.path.startswith("y")} == {3}


def test_undecided_launches_are_not_measured(tmp_path):
    made = plan(study(["x"], ["a"]))
    with pytest.raises(CastmatesError, match="is decided after the first 2 launches of its cohort: run the sweep"):
        measure_launch(made, made.launches[2].path, tmp_path, tmp_path)


@pytest.fixture
def folder(tmp_path):
    return StudyFolder(tmp_path / "results/test")


def measure(folder, made, swing, within=0.05, status="measured"):
    """Write these launches: losses that differ by twice `swing` from launch to launch, and by `within` inside them."""

    def rate(launch, number, scene, member):
        if not scene.startswith("corun"):
            return 1.0
        return math.exp(swing * (-1) ** launch.number + within * (-1) ** number)

    for launch in made.launches:
        place = folder.launch(launch.path)
        place.mkdir(parents=True)
        number = launch.design.rounds
        record = {"status": status, "windows": number * len(launch.cohort.scenes), "seconds": COSTS}
        folder.record_file(launch).write_text(json.dumps(record | {"spec": launch.model_dump(mode="json")}))
        windows = written(made.model_copy(update={"launches": (launch,)}), rate, rounds=number)
        (windows[:0] if status == "failed" else windows).to_parquet(place / "windows.parquet", index=False)


def first_two(made):
    return made.model_copy(update={"launches": made.launches[:2]})


def test_launches_that_differ_are_worth_more_than_rounds(folder):
    made = plan(study(["x"], ["a", "b"]))
    cohort = made.cohorts[0].id
    measure(folder, first_two(made), swing=0.0)
    alike = decide_rounds(made, cohort, folder, LONG)
    assert (alike.cohort, alike.launches, alike.launch) == (cohort, 2, 10.0)
    assert alike.round == pytest.approx(12 / rounds(made)[0])
    assert alike.within == pytest.approx(0.05, rel=0.3)
    assert alike.rounds == best_rounds(0.05 / 2, Cost(10.0, alike.round), LONG)

    measure(other := StudyFolder(folder.path.parent / "other"), first_two(made), swing=0.1)
    differing = decide_rounds(made, cohort, other, LONG)
    assert differing.between > 0.1
    assert differing.rounds == 2 < alike.rounds
    assert decide_rounds(made, cohort, folder, longest_launch=10.0 + 3 * alike.round).rounds == 3


def test_a_decision_once_written_stays_and_is_told_with_its_reason(folder):
    made = plan(study(["x"], ["a"]))
    cohort = made.cohorts[0].id
    measure(folder, first_two(made), swing=0.0)
    decision = decide_rounds(made, cohort, folder, LONG)
    file = folder.rounds_file(cohort)
    file.parent.mkdir()
    file.write_text(decision_text(decision))
    assert read_decisions(folder) == [decision]
    assert decide_rounds(made, cohort, folder, longest_launch=1.0) == decision
    assert f"{cohort}: {decision.rounds} rounds in each launch after the first ones: in the first 2" in decision.words
    folder.plan_file.write_text(plan_text(made))
    assert rounds(read_plan(folder.plan_file))[2:] == [decision.rounds] * 3

    file.write_text(json.dumps(json.loads(decision_text(decision)) | {"protocol": 0}))
    assert decided_rounds(folder) == {}, "it was decided for another way of measuring"
    file.write_text("{}")
    with pytest.raises(CastmatesError, match="this is not what decides on rounds"):
        decided_rounds(folder)


def test_what_is_usual_decides_where_nothing_is_seen(folder):
    made = plan(study(["x"], ["a"]))
    cohort = made.cohorts[0].id
    measure(folder, first_two(made), swing=0.0, status="failed")
    decision = decide_rounds(made, cohort, folder, LONG)
    guess = guessed_cost(made.cohorts[0], study(["x"], ["a"]).budget.window)
    assert (decision.launch, decision.round) == pytest.approx((guess.launch, guess.round))
    assert decision.rounds == best_rounds(USUAL_RATIO, guess, LONG)
    assert "how launches differ is not known" in decision.words


def test_a_lost_decision_is_that_of_the_launches_measured_with_it(folder):
    made = plan(study(["x"], ["a"]))
    cohort = made.cohorts[0].id
    whole = with_decisions(made, {cohort: 7})
    measure(folder, whole.model_copy(update={"launches": whole.launches[:3]}), swing=0.1)
    again = decide_rounds(made, cohort, folder, LONG)
    assert (again.rounds, again.launches) == (7, 0)
    assert again.words.endswith("7 rounds in each launch after the first ones, as in those that are measured already.")


def test_launches_of_different_rounds_are_foreseen_by_their_own():
    spread = Spread("x+a", 0.0, of_means=0.0003, within=0.0008, between=0.0001, launches=4, rounds=4.0)
    assert spread.foreseen(4, had=4) == pytest.approx(0.0003)
    assert spread.foreseen(8, had=4) == pytest.approx(0.0002)
