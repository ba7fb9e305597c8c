"""The arithmetic of perf readings and the sentences for what cannot be counted."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.counters.events.migrations import EVENTS, FULLY_COUNTED, Reading, difference, explain, running_share

ORIGIN = Reading(1000, 5_000_000, 5_000_000)


def later(count: int, enabled: int, running: int) -> Reading:
    return Reading(ORIGIN.total + count, ORIGIN.enabled + enabled, ORIGIN.running + running)


def test_zero_not_counted_and_not_supported_are_three_things():
    assert difference(ORIGIN, later(0, 100, 100)) == (0.0, "")
    assert difference(None, None) == (None, "not supported")
    assert difference(ORIGIN, None) == (None, "not supported")
    value, note = difference(ORIGIN, ORIGIN)
    assert value is None
    assert note.startswith("not counted: the member was on no processor")
    value, note = difference(ORIGIN, later(0, 100, 0))
    assert value is None
    assert note.startswith("not counted: other events")


def test_a_shared_counter_is_scaled_and_says_so():
    assert difference(ORIGIN, later(96, 1000, 960)) == (100.0, "scaled: counted for 96.0% of the member's time")


def test_a_counter_that_ran_for_less_than_nearly_all_of_the_time_counted_nothing():
    assert difference(ORIGIN, later(95, 1000, 950))[0] == 100.0
    value, note = difference(ORIGIN, later(94, 1000, 949))
    assert (value, note) == (None, "not counted: the counters were lent for only 94.9% of the member's time")


def test_the_share_of_the_time_is_kept_beside_the_counts():
    assert running_share(ORIGIN, later(10, 1000, 250)) == 0.25
    assert running_share(ORIGIN, later(0, 1000, 1000)) == 1.0
    assert running_share(ORIGIN, ORIGIN) is None
    assert running_share(None, ORIGIN) is None


@given(
    count=st.integers(0, 2**40),
    enabled=st.integers(1, 2**40),
    share=st.floats(0, 1),
)
def test_scaling_never_lessens_a_count(count, enabled, share):
    running = max(1, int(enabled * share))
    value, note = difference(ORIGIN, later(count, enabled, running))
    if running < enabled * FULLY_COUNTED:
        assert value is None
    else:
        assert value >= count
    assert bool(note) == (running < enabled * 0.999)


@pytest.mark.parametrize(
    ("code", "start"),
    [
        (errno.ENOENT, "not supported: "),
        (errno.EOPNOTSUPP, "not supported: "),
        (errno.EACCES, "perf is refused "),
        (errno.EPERM, "perf is refused "),
        (errno.ENOSYS, "perf is missing: "),
        (errno.EMFILE, "perf failed "),
    ],
)
def test_every_refusal_has_its_sentence(code, start):
    for event in EVENTS:
        assert explain(event, OSError(code, os.strerror(code))).startswith(start)
