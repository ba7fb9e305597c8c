"""Counters at the edges of phases: when they are looked at, and what is reported of them."""

import pytest

from castmates.inside import Reading
from castmates.runner.processes.launch import Start, WorkloadFailed, _phase_log
from castmates.workloads import phase_counts
from castmates.workloads.phase_counts import LOOK_EVERY, PhaseCounts
from castmates.workloads.phase_file import (
    BY_PAPI,
    COUNTED,
    METHOD_VARIABLE,
    NOT_COUNTED,
    SOME_THREADS,
    USER_ONLY,
    Reader,
    create,
)
from castmates.workloads.phase_writer import Writer
from tests.unit.phases.written_ranges import phases_of


class Synthetic:
    """Two counters, made up, the second of which others share from some reading on."""

    names, refused = ("cycles", "page-faults"), {}
    notes, misses = {"cycles": "user mode only"}, "threads were started while the counters were opened"
    source = "perf_event_open"

    def __init__(self, shared_from: int) -> None:
        self.reads, self._from = 0, shared_from

    def read(self):
        self.reads += 1
        return (100 * self.reads, 10 * self.reads)

    def readings(self):
        running = 500 if self.reads >= self._from else 1000
        return (Reading(1, 1000, 1000), Reading(1, 1000, running))


@pytest.fixture
def synthetic(monkeypatch):
    def opened(shared_from):
        monkeypatch.setattr(phase_counts, "open_counters", lambda *_: Synthetic(shared_from))
        told = []
        return PhaseCounts(["cycles", "page-faults"], lambda *said: told.append(said)), told

    return opened


@pytest.mark.parametrize("shared_from", [0, 3, 40, 5 * LOOK_EVERY])
def test_a_shared_counter_is_given_up_before_twice_its_reads_or_the_next_look(synthetic, shared_from):
    counts, told = synthetic(shared_from)
    until = shared_from + min(shared_from, LOOK_EVERY) + 2
    found = [counts.read() for _ in range(until)]
    assert told[2:] == [(1, NOT_COUNTED, 0)]
    assert found[-1] == [100 * until, None]


def test_what_the_numbers_lack_is_told_with_the_status(synthetic):
    _, told = synthetic(10**9)
    assert told == [(0, COUNTED, USER_ONLY | SOME_THREADS), (1, COUNTED, SOME_THREADS)]


def test_flags_reach_the_file_and_a_count_that_goes_back_is_none(tmp_path, monkeypatch):
    counters = Synthetic(10**9)
    monkeypatch.setattr(phase_counts, "open_counters", lambda *_: counters)
    create(tmp_path / "file", Synthetic.names)
    writer, reader = Writer(tmp_path / "file"), Reader(tmp_path / "file")
    writer.begin("a")
    counters.reads = -5
    writer.end()
    assert reader.lacks == {
        "cycles": "user mode only; threads may be missing", "page-faults": "threads may be missing"}  # fmt: skip
    assert [one.counts for one in phases_of(reader)] == [(None, None)]


@pytest.mark.parametrize(("value", "method"), [(None, "perf"), ("", "perf"), ("perf", "perf"), ("papi", "papi")])
def test_phases_are_counted_by_the_method_that_the_variable_names_and_papi_is_noted(
    tmp_path, monkeypatch, value, method
):
    asked = []

    class Made(Synthetic):
        notes, misses, source = {}, "", "PAPI" if method == "papi" else "perf_event_open"

    def opened(events, by):
        asked.append(by)
        return Made(10**9)

    monkeypatch.setattr(phase_counts, "open_counters", opened)
    if value is None:
        monkeypatch.delenv(METHOD_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(METHOD_VARIABLE, value)
    create(tmp_path / "phases", ["cycles", "page-faults"])
    writer = Writer(tmp_path / "phases")
    writer.begin("forward")
    writer.end()
    reader = Reader(tmp_path / "phases")
    assert asked == [method]
    assert reader.lacks == (dict.fromkeys(("cycles", "page-faults"), "counted by PAPI") if method == "papi" else {})
    assert BY_PAPI not in (USER_ONLY, SOME_THREADS, USER_ONLY | SOME_THREADS)
    reader.close()


def test_a_method_that_there_is_not_ends_the_launch_in_a_sentence(tmp_path):
    start = Start("lead@0", (0,), (), ["true"], {METHOD_VARIABLE: "pap"}, ready_within=1.0, phases=True)
    with pytest.raises(WorkloadFailed, match="CASTMATES_PHASE_COUNTER_METHOD is perf or papi, and not 'pap'"):
        _phase_log(start, tmp_path)
