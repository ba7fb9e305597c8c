"""Another order of the tests is another order, the same for the same seed, and keeps each file together."""

from itertools import pairwise
from types import SimpleNamespace

from tests.plugins.order import pytest_collection_modifyitems as shuffle
from tests.seeds import SEED, chance

TESTS = [f"tests/unit/test_{file}.py::test_{number}" for file in "abcd" for number in range(5)]


def shuffled(seed):
    items = [SimpleNamespace(nodeid=test) for test in TESTS]
    shuffle(SimpleNamespace(getoption=lambda _: seed), items)
    return [item.nodeid for item in items]


def test_without_a_seed_the_order_stays():
    assert shuffled(None) == TESTS


def test_a_seed_is_an_order_in_which_files_stay_together():
    assert shuffled(3) == shuffled(3) != shuffled(4)
    assert sorted(shuffled(3)) == sorted(TESTS)
    files = [test.partition("::")[0] for test in shuffled(3)]
    assert sum(one != other for one, other in pairwise(files)) == 3


def test_the_seed_of_a_run_tells_courses_apart(capsys):
    assert chance("kills").random() == chance("kills").random() != chance("crashes").random()
    assert f"CASTMATES_SEED={SEED}" in capsys.readouterr().out
