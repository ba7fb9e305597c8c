"""Where a test is decides its kind; every folder of tests has one."""

import itertools
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.kinds import KINDS, kind_of
from tests.tiers import TIERS

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("test", "kind"),
    [
        ("tests/unit/test_words.py::test_x[a/b]", "pure"),
        ("tests/unit/rdt/test_places.py::test_x", "pure"),
        ("tests/real/test_child.py::test_x", "real"),
        ("tests/lab/test_sweep.py", "lab"),
    ],
)
def test_the_folder_is_the_kind(test, kind):
    assert kind_of(test) == kind


def test_every_folder_with_tests_has_a_kind():
    assert {file.relative_to(HERE).parts[0] for file in HERE.rglob("test_*.py")} == set(KINDS)


def test_every_folder_is_part_of_a_landing():
    folders = {folder for part in TIERS["all"] for folder in part.folders}
    assert folders == set(KINDS) - {"slurm"}  # make test-slurm


def test_no_test_is_lost_between_the_parts_of_a_landing():
    parts = [Expression.compile(part.marks) for part in TIERS["all"] if part.marks]
    for quiet, nightly, lab in itertools.product([False, True], repeat=3):
        given = {"quiet": quiet, "nightly": nightly, "lab": lab}
        run = [marks for marks in parts if marks.evaluate(lambda name, given=given, **_: given.get(name, False))]
        assert len(run) == (not nightly) or (quiet and lab)  # a machine of its own is quiet
