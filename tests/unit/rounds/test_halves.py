"""The halves of slices, and how long is left out before anything was seen."""

import pytest

from castmates.runner.rounds.pace import LONGEST_FIRST, SETTLE_STEPS, Steps, first_settle
from castmates.study.reasons import Reason, ReasonKind
from tests.unit.rounds.makers import LEAD, MS, slice_of, window_of
from tests.unit.rounds.test_pace import AUTO


def test_halves_share_the_step_that_ends_past_the_middle():
    each = slice_of(0, step=10, length=100, settle=20)
    early, late = each.halves(LEAD)
    assert [t // MS for t, _ in early.records] == [20, 30, 40, 50, 60]
    assert [t // MS for t, _ in late.records] == [60, 70, 80, 90, 100]
    assert early.units + late.units == each.progress(LEAD).units


def test_a_rate_that_falls_within_slices_is_below_one_in_their_later_halves():
    slowing = slice_of(0, length=100, settle=20)
    steps = [20, 30, 40, 50, 60, 80, 100]
    slowing.since_switch[LEAD] = [(t * MS, number) for number, t in enumerate(steps)]
    rejected = slice_of(200)
    rejected.reasons = [Reason(ReasonKind.STEAL, "much")]
    assert window_of([slowing, rejected]).later(LEAD) == pytest.approx(0.5)
    assert window_of([slice_of(0), slice_of(200)]).later(LEAD) == pytest.approx(1)


def test_what_has_too_few_steps_has_no_halves():
    short = slice_of(0, step=70, length=100, settle=20)
    assert window_of([short]).later(LEAD) != window_of([short]).later(LEAD)


@pytest.mark.parametrize(
    ("step", "settle", "longest", "expected"),
    [
        (0.001, 0.005, 2.0, 0.005),
        (0.010, 0.005, 2.0, SETTLE_STEPS * 0.010),
        (0.500, 0.005, 2.0, LONGEST_FIRST),
        (0.500, 0.200, 2.0, 0.200),
        (0.010, 0.005, 0.0, 0.005),
    ],
)
def test_a_launch_begins_with_a_few_steps_of_the_lead(step, settle, longest, expected):
    design = AUTO.model_copy(update={"settle": settle, "longest_settle": longest})
    assert first_settle(design, Steps({}, {LEAD: step}, 0.0), LEAD) == pytest.approx(expected)
