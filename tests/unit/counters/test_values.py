"""Counted, scaled, not counted and not supported are four things, and a zero is none of the last two."""

from hypothesis import given
from hypothesis import strategies as st

from castmates.counters.events.groups import FULL, Reading, add_up, between, without
from castmates.linux.perf_event import Target
from castmates.protocols import Refusal

ORIGIN = Reading(1000, 5_000, 5_000)


def later(count, enabled, running):
    return Reading(ORIGIN.count + count, ORIGIN.enabled + enabled, ORIGIN.running + running)


def test_a_zero_is_a_value_only_where_it_was_counted():
    assert between(ORIGIN, later(0, 100, 100))[:3] == (0.0, "counted", 1.0)
    assert between(ORIGIN, ORIGIN)[:3] == (None, "not counted", None)
    assert between(ORIGIN, later(0, 100, 0))[:3] == (None, "not counted", 0.0)
    assert between(None, ORIGIN)[:2] == (None, "not counted")
    assert without(Refusal("not supported", "no counter")) == (None, "not supported", None, "no counter")


@given(count=st.integers(0, 2**60), enabled=st.integers(1, 2**50), share=st.floats(0, 1))
def test_a_count_of_part_of_the_time_is_scaled_and_says_so(count, enabled, share):
    running = int(enabled * share)
    value = between(ORIGIN, later(count, enabled, running))
    if not running:
        assert value.status == "not counted"
        return
    assert value.status == ("scaled" if running / enabled < FULL else "counted")
    assert value.value >= count * 0.9999999
    assert 0 < value.running <= 1
    assert bool(value.note) == (value.status == "scaled")


def test_threads_and_cpus_add_up_and_kinds_of_cores_are_wanted_once():
    one, other = Target(1), Target(2)
    # A thread on a P-core: its events of E-cores are wanted for as long, and never count.
    readings = [(one, {"cycles": Reading(70, 10, 10)}), (one, {"cycles": Reading(0, 10, 0)}),
                (other, {"cycles": Reading(0, 6, 0)}), (other, {"cycles": Reading(5, 6, 3)})]  # fmt: skip
    assert add_up(readings) == {"cycles": Reading(75, 16, 13)}
