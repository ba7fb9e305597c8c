"""More launches than the study's file has, asked for on the command line and remembered with the results."""

import pytest

from castmates.errors import CastmatesError
from castmates.results.asked import asked_launches, remember_launches
from castmates.results.folder import StudyFolder
from castmates.study.rounds import checked_launches, with_launches
from tests.unit.makers import plan, study


def of(**budget):
    return study(["x"], ["a"], budget={"launches": 5} | budget)


@pytest.mark.parametrize("asked", ["twelve", "1.5", 4, 0, -3, 10_001, "", None, True])
def test_a_number_that_cannot_be_is_one_sentence(asked):
    sentence = f"^launches={asked}: expected a whole number of launches from 5, which s.yaml has, to 10000.$"
    with pytest.raises(CastmatesError, match=sentence):
        checked_launches(asked, of(), "s.yaml")


def test_where_a_precision_decides_the_sentence_names_what_to_change():
    with pytest.raises(
        CastmatesError, match=r"^launches=12: s\.yaml has a 'precision', .* change 'precision' or 'most_launches'"
    ):
        checked_launches(12, of(precision="1%"), "s.yaml")


@pytest.mark.parametrize("asked", [12, "12", " 12 "])
def test_more_launches_are_added_to_those_that_were_measured(asked):
    few = plan(of(rounds=2))
    many = plan(with_launches(of(rounds=2), checked_launches(asked, of(), "s.yaml")), few.launches)
    assert (len(few.launches), len(many.launches)) == (5, 12)
    assert {launch.path: launch for launch in few.launches}.items() < {
        launch.path: launch for launch in many.launches
    }.items()


def test_what_was_asked_for_holds_until_the_file_has_more(tmp_path):
    folder = StudyFolder(tmp_path / "new")
    assert asked_launches(folder) == 0
    remember_launches(folder, 12)
    assert with_launches(of(), asked_launches(folder)).budget.launches == 12
    assert with_launches(of(launches=20), asked_launches(folder)).budget.launches == 20
    assert with_launches(of(precision="1%"), asked_launches(folder)).budget.launches == 5
