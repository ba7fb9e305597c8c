"""More launches than the study's file has, asked for on the command line and remembered with the results."""

import pytest

from castmates.errors import CastmatesError
from castmates.results.asked import asked_blocks, remember_blocks
from castmates.results.folder import StudyFolder
from castmates.study.more_blocks import checked_blocks, with_blocks
from tests.unit.makers import plan, study


def of(**budget):
    return study(["x"], ["a"], budget={"blocks": 5} | budget)


@pytest.mark.parametrize("asked", ["twelve", "1.5", 4, 0, -3, 10_001, "", None, True])
def test_a_number_that_cannot_be_is_one_sentence(asked):
    sentence = f"^launches={asked}: expected a whole number of launches from 5, which s.yaml has, to 10000.$"
    with pytest.raises(CastmatesError, match=sentence):
        checked_blocks(asked, of(), "s.yaml")


def test_where_a_precision_decides_the_sentence_names_what_to_change():
    with pytest.raises(
        CastmatesError, match=r"^launches=12: s\.yaml has a 'precision', .* change 'precision' or 'most_blocks'"
    ):
        checked_blocks(12, of(precision="1%"), "s.yaml")


@pytest.mark.parametrize("asked", [12, "12", " 12 "])
def test_more_launches_are_added_to_those_that_were_measured(asked):
    few = plan(of(rounds=2))
    many = plan(with_blocks(of(rounds=2), checked_blocks(asked, of(), "s.yaml")), few.blocks)
    assert (len(few.blocks), len(many.blocks)) == (5, 12)
    assert {block.path: block for block in few.blocks}.items() < {block.path: block for block in many.blocks}.items()


def test_what_was_asked_for_holds_until_the_file_has_more(tmp_path):
    folder = StudyFolder(tmp_path / "new")
    assert asked_blocks(folder) == 0
    remember_blocks(folder, 12)
    assert with_blocks(of(), asked_blocks(folder)).budget.blocks == 12
    assert with_blocks(of(blocks=20), asked_blocks(folder)).budget.blocks == 20
    assert with_blocks(of(precision="1%"), asked_blocks(folder)).budget.blocks == 5
