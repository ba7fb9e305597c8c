"""The in-process interface: names of events, readings, statuses; synthetic readings."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.inside import open_counters
from castmates.inside.events import event_of
from castmates.inside.readings import MISSED, TRIES, Reading, difference, for_every_thread
from castmates.linux import event_names, perf_event

ORIGIN = Reading(1000, 5_000_000, 5_000_000)


def later(count, enabled, running):
    return Reading(ORIGIN.total + count, ORIGIN.enabled + enabled, ORIGIN.running + running)


def test_counted_zero_scaled_and_not_counted_are_four_things():
    zero = difference("page-faults", ORIGIN, later(0, 100, 100))
    assert (zero.value, zero.status, zero.running) == (0, "counted", 1.0)
    shared = difference("page-faults", ORIGIN, later(96, 1000, 960))
    assert (shared.value, shared.status) == (pytest.approx(100), "scaled")
    for counter in (later(90, 1000, 900), later(0, 1000, 0), later(0, 0, 0)):
        starved = difference("page-faults", ORIGIN, counter)
        assert (starved.value, starved.status) == (None, "not counted")
        assert starved.note
    for before, after in ((ORIGIN, Reading(None, 0, 0)), (Reading(None, 0, 0), ORIGIN)):
        broken = difference("page-faults", before, after)
        assert (broken.value, broken.status, broken.note) == (None, "not counted", "the kernel gave no count")


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.floats(0.951, 1.0))
def test_what_is_scaled_stays_near_the_truth(count, enabled, share):
    running = max(1, round(enabled * share))
    value = difference("x", ORIGIN, later(round(count * running / enabled), enabled, running))
    if value.status != "not counted":
        assert value.value == pytest.approx(count, rel=0.0011, abs=2)


def test_names_mean_what_they_mean_to_the_collector_of_windows():
    """One name, one event: inside a process and from outside."""
    for name, outside in event_names.TABLE.items():
        inside = event_of(name)
        assert (inside.kind, inside.config) == (outside.kind, outside.config), name


def test_modes_raw_codes_and_devices_are_understood(tmp_path):
    user = event_of("instructions:u")
    assert (user.kind, user.config, user.user, user.kernel) == (perf_event.HARDWARE, 1, True, False)
    assert event_of("r01c2").config == 0x01C2
    device = tmp_path / "sys/bus/event_source/devices/cpu"
    (device / "format").mkdir(parents=True)
    (device / "events").mkdir()
    (device / "type").write_text("4\n")
    (device / "format/event").write_text("config:0-7,32-35\n")
    (device / "format/umask").write_text("config:8-15\n")
    (device / "format/ldlat").write_text("config1:0-15\n")
    (device / "events/mem-loads").write_text("event=0xcd,umask=0x1,ldlat=3\n")
    found = event_of("cpu/event=0x1cd,umask=0x20,name=mine/k", tmp_path)
    assert (found.kind, found.config, found.user) == (4, 0x1_0000_20CD, False)
    assert event_of("cpu/mem-loads/", tmp_path).config1 == 3


@pytest.mark.parametrize("name", ["instruction", "", "cpu/nonsense=1/", "r", "instructions:x", "L9-loads", "a/b/c/"])
def test_an_unknown_event_is_a_sentence(name):
    with pytest.raises(CastmatesError, match="no event that can be counted"):
        event_of(name)


def test_an_unknown_method_is_a_sentence():
    with pytest.raises(CastmatesError, match="expected one of perf, papi"):
        open_counters(["page-faults"], method="likwid")


@given(st.lists(st.integers(0, TRIES), min_size=1, max_size=TRIES + 2))
def test_threads_that_come_meanwhile_are_caught_or_told(births):
    """Each look at the threads may find new ones; what was opened then is closed and opened anew."""
    count, open_now = 1, set()
    births = iter(births)

    def threads():
        nonlocal count
        count += next(births, 0)
        return list(range(count))

    def opened(tid):
        open_now.add(tid)
        return tid

    found, missed = for_every_thread(opened, lambda tids: open_now.difference_update(list(tids)), threads)
    assert open_now == set(found)
    assert missed in ("", MISSED)
    assert missed or found == list(range(count))


def test_nothing_but_the_standard_library_is_imported():
    code = "import sys, castmates.inside; print(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {"castmates"} | {name for name in done.stdout.split() if name.startswith("_")}
    assert set(done.stdout.split()) - ours - set(sys.stdlib_module_names) <= {"site", "sitecustomize", "usercustomize"}
    assert "pydantic" not in done.stdout
