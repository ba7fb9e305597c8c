"""How long slices are: each wish decides once, a number of the study fixes it, and slow members are found."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.runner.rounds.pace import FEWEST_BEATS, SETTLES, SHORTEST, STEPS, SWITCHES, Steps, pace_of
from tests.unit.rounds.makers import BESIDE, LEAD, scene_of
from tests.unit.windows_maker import DESIGN

AUTO = DESIGN.model_copy(update={"slice": None, "window": 0.55, "steps": 10, "longest_window": 5.0})


def pace(step=0.001, switch=0.0005, settle=0.005, design=AUTO, beside=0.001, watch=0.3):
    steps = Steps({"alone": step, "corun:m": step}, {LEAD: step, BESIDE: beside}, switch)
    return pace_of(design, steps, LEAD, settle, watch)


@pytest.mark.parametrize(
    ("given_", "why", "length"),
    [
        ({}, "the shortest that is sensible", SHORTEST),
        ({"step": 0.02}, "5 steps of the lead", 0.005 + 6 * 0.02),
        ({"switch": 0.01}, "10 times a change of scene", 0.1),
        ({"settle": 0.1}, "4 settle times", 0.4),
    ],
)
def test_each_wish_decides_where_it_asks_for_most(given_, why, length):
    found = pace(**given_)
    assert (found.why, found.length_s) == (why, pytest.approx(length))


def test_a_number_of_the_study_fixes_the_length_whatever_was_seen():
    design = AUTO.model_copy(update={"slice": 0.2})
    found = pace(step=0.9, switch=0.5, design=design)
    assert (found.length_s, found.why) == (0.2, "the study; too short for 5 steps of the lead")


@pytest.mark.parametrize(("settle", "length"), [(0.05, 0.2), (0.0501, 0.2004), (0.3, 1.2)])
def test_of_a_fixed_length_a_quarter_is_left_out_and_no_more(settle, length):
    found = pace(settle=settle, design=AUTO.model_copy(update={"slice": 0.2}))
    assert found.length_s == pytest.approx(length)
    assert found.why == ("the study" if settle == 0.05 else "4 settle times, more than the study's 200 ms")


def test_a_fixed_length_that_is_short_of_steps_is_reported():
    """The study decides; whoever reads the record or the log learns what it costs."""
    found = pace(step=0.05, design=AUTO.model_copy(update={"slice": 0.2}))
    assert (found.length_s, found.why) == (0.2, "the study; too short for 5 steps of the lead")


def test_no_slice_measures_longer_than_the_longest_window():
    assert pace(step=3.0).length_s == pytest.approx(5.005)
    assert pace(design=AUTO.model_copy(update={"slice": 100.0})).length_s == pytest.approx(5.005)


@given(st.floats(1e-4, 0.5), st.floats(1e-5, 0.05), st.floats(0, 1))
def test_every_wish_is_kept(step, switch, settle):
    found = pace(step=step, switch=switch, settle=settle)
    measured = found.length_s - found.settle_s
    assert measured >= STEPS * step * (1 - 1e-9)
    assert found.length_s >= max(SWITCHES * switch, SETTLES * settle, SHORTEST) * (1 - 1e-9)
    assert found.length_ns - found.settle_ns == pytest.approx(1e9 * measured, abs=2)


@pytest.mark.parametrize(("share", "slow"), [(0.99, set()), (1.01, {BESIDE})])
def test_who_makes_too_few_steps_in_a_slice_is_slow(share, slow):
    measured = SHORTEST - 0.005
    assert pace(beside=share * measured / FEWEST_BEATS).slow == slow


def test_who_was_seen_to_make_no_step_is_slow_however_long_slices_are():
    found = pace(beside=math.inf, design=AUTO.model_copy(update={"slice": 4.0}))
    assert found.slow == {BESIDE}
    assert found.about()["steps"] == {LEAD: 0.001, BESIDE: None}, "JSON has no infinity"


def test_the_lead_is_never_slow():
    assert pace(step=4.0, beside=4.0, design=AUTO.model_copy(update={"slice": 0.1})).slow == {BESIDE}


@pytest.mark.parametrize(
    ("window", "step", "cycles"),
    [(0.5, 0.001, 9), (0.55, 0.001, 10), (0.551, 0.001, 10), (0.6, 0.001, 11), (0.01, 0.001, 1), (0.01, 0.02, 2)],
)
def test_a_window_has_as_many_slices_as_its_length_and_the_leads_steps_need(window, step, cycles):
    """55 ms of each of the shortest are measured; a lead of 20 ms a step makes five of its ten in each."""
    design = AUTO.model_copy(update={"window": window})
    found = pace(step=step, design=design)
    assert found.cycles == cycles


@given(st.floats(0.01, 5.0), st.floats(1e-4, 0.05), st.floats(0, 0.1))
def test_slices_of_a_window_make_its_length_and_hardly_more(window, step, settle):
    """They are lengthened until a whole number of them does: a third beyond it at most, where there are two or more."""
    design = AUTO.model_copy(update={"window": window})
    found = pace(step=step, settle=settle, design=design)
    wanted, measured = max(window, design.steps * step), found.length_s - found.settle_s
    assert found.cycles * measured >= wanted * (1 - 1e-3)
    if found.cycles > 1:
        assert found.cycles * measured <= wanted * 4 / 3 + 1e-9


def test_somebody_elses_long_steps_do_not_stretch_the_windows_of_all():
    """A command that is run again and again is alone in one scene, whose steps are its runs."""
    steps = Steps({"alone": 0.001, "antagonist-alone:x": 4.0}, {LEAD: 0.001, BESIDE: 4.0}, 0.0005)
    assert pace_of(AUTO, steps, LEAD, 0.005, 0.3).cycles == pace().cycles


def test_what_is_known_of_a_scene_says_when_its_slices_end():
    steps = Steps({"alone": 0.01, "corun:m": 0.04, "antagonist-alone:x": 0.0}, {LEAD: 0.04}, 0.001)
    found = pace_of(AUTO, steps, LEAD, 0.005, 0.0)
    assert [found.step_of(scene_of(name)) for name in ("alone", "corun:m", "antagonist-alone:x", "new")] == [
        0.01,
        0.04,
        0.04,
        0.04,
    ]


def test_single_slices_have_their_own_length_and_nobody_is_slow_in_them():
    found = pace(beside=1.0).of_length(0.2, settle_s=0.01)
    assert (found.length_s, found.settle_s, found.watch_s, found.slow) == (pytest.approx(0.21), 0.01, 0.0, set())


def test_the_record_has_what_decided():
    about = pace(beside=1.0).about()
    assert (about["slice"], about["because"], about["slow"]) == (SHORTEST, "the shortest that is sensible", [BESIDE])
