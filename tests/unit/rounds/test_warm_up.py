"""What a moment of each scene shows: how long steps are, and of whom that is not known."""

import math

import pytest

from castmates.runner.rounds.round import step_of
from tests.unit.rounds.makers import beats


@pytest.mark.parametrize(("records", "step"), [(beats(0, 50, 10), 0.01), (beats(0, 40, 40), 0.04)])
def test_a_step_is_what_usually_lies_between_two_heartbeats(records, step):
    assert step_of(records, math.inf) == step


@pytest.mark.parametrize("records", [[], beats(50, 50, 1)])
def test_who_was_not_seen_to_make_a_step_may_need_any_time_for_one(records):
    """Not the tenth of a second that was looked at: long slices would then pass for long enough."""
    assert step_of(records, math.inf) == math.inf
