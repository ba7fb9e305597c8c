from collections.abc import Mapping, Sequence

import pytest

from castmates.protocols import Held
from castmates.runner.rounds.hardware import CHANGED, MISPLACED, SCHEMATA, MaskWitness, number_of_ways
from castmates.study.spec import Share


class Book:
    """An allocator that writes down what it is given; others may write in it too."""

    name = "book"

    def __init__(self) -> None:
        self.says = {"lead@0": "L3:0=ff", "stream@1": "L3:0=ff"}
        self.strays: list[str] = []

    def prepare(self, members: Mapping[str, Held]) -> None: ...

    def apply(self, shares: Sequence[Share]) -> bool:
        for share in shares:
            self.says[share.member] = f"L3:0={share.ways:x}"
        return True

    def read_back(self) -> dict[str, str]:
        return dict(self.says)

    def misplaced(self) -> list[str]:
        return self.strays

    def restore(self) -> None: ...

    def about(self) -> dict[str, str]:
        return {}


@pytest.fixture
def book():
    return Book()


@pytest.fixture
def witness(book):
    witness = MaskWitness(book)
    witness.attach({"lead@0": 1, "stream@1": 2, "placebo:1": 3})
    return witness


def _told(samples, metric):
    return {one.subject: one.note for one in samples if one.metric == metric}


def test_what_was_given_and_stayed_is_told_and_nothing_else(book, witness):
    book.apply([Share(member="lead@0", ways=0xF)])
    witness.remember()
    witness.start(["lead@0"])
    samples = witness.stop()
    assert _told(samples, SCHEMATA) == {"lead@0": "L3:0=f", "stream@1": "L3:0=ff"}
    assert not _told(samples, CHANGED)
    assert not _told(samples, MISPLACED)


@pytest.mark.parametrize("when", ["settling", "inside", "inside and back at the close"])
def test_a_mask_that_somebody_else_changes_is_seen(book, witness, when):
    witness.remember()
    if when == "settling":
        book.says["stream@1"] = "L3:0=3"
    witness.start(["lead@0"])
    if when == "inside":
        book.says["stream@1"] = "L3:0=3"
    elif when.startswith("inside and"):  # seen where the opening edge saw it
        witness = MaskWitness(book)
        witness.remember()
        book.says["stream@1"] = "L3:0=3"
        witness.start([])
        book.says["stream@1"] = "L3:0=ff"
    assert _told(witness.stop(), CHANGED) == {"stream@1": "'L3:0=ff' was 'L3:0=3'"}


def test_a_group_that_vanished_and_threads_elsewhere_are_seen(book, witness):
    witness.start([])
    del book.says["stream@1"]
    book.strays = ["thread 7 of stream@1 is in the default group"]
    samples = witness.stop()
    assert _told(samples, CHANGED) == {"stream@1": "'L3:0=ff' was ''"}
    assert _told(samples, MISPLACED) == {"host": "thread 7 of stream@1 is in the default group"}


@pytest.mark.parametrize(
    ("schemata", "ways"),
    [
        ("L3:0=f", 4),
        ("L3:0=f;1=ff MB:0=100", 4),
        ("L3CODE:0=8 L3DATA:0=7", 4),
        ("L3CODE:0=1;1=ff L3DATA:0=7;1=ff", 3),
        ("MB:0=50", None),
        ("", None),
    ],
)
def test_ways_are_counted_where_code_and_data_together_have_fewest(schemata, ways):
    assert number_of_ways(schemata) == ways
