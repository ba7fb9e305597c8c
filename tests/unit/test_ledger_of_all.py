"""A limit of 1 lets others take all of a window: late readings that make more than all of it reject nothing."""

from dataclasses import replace

import pytest

from castmates.study.budget_keys import Limits
from tests.unit import test_ledger
from tests.unit.test_ledger import AROUND, DESIGN, SECONDS, Case

ALL = Limits(steal=1, foreign=1, neighbours=1)


@pytest.mark.parametrize(
    ("key", "seconds"),
    [(("cpu3", "user_s"), SECONDS), (("cpu3", "steal_s"), SECONDS), ((AROUND.name, "neighbours_busy_s"), 8 * SECONDS)],
    ids=["foreign", "steal", "neighbours"],
)
def test_more_than_all_is_all(monkeypatch, key, seconds):
    case = Case(values={key: 1.1 * seconds})
    (reason,) = case.reasons()
    assert "took 100%" in reason or "took 100.0%" in reason
    monkeypatch.setattr(test_ledger, "DESIGN", DESIGN.model_copy(update={"limits": ALL}))
    assert case.reasons() == []
    assert replace(case, lost={"lead@0": 1}).reasons() != []
