"""The arithmetic of perf readings and the sentences for what cannot be counted."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.counters.perf_event import EVENTS, Reading, difference, explain

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
    assert difference(ORIGIN, later(10, 1000, 250)) == (40.0, "scaled: counted for 25.0% of the member's time")


@given(
    count=st.integers(0, 2**40),
    enabled=st.integers(1, 2**40),
    share=st.floats(0.01, 1),
)
def test_scaling_never_lessens_a_count(count, enabled, share):
    running = max(1, int(enabled * share))
    value, note = difference(ORIGIN, later(count, enabled, running))
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
