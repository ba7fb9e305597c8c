"""Phases joined to heartbeats, windows and series: synthetic records with known answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.protocols import Count, Sample
from castmates.runner.rounds.phases import Reported, _counts, steps_phases
from castmates.runner.rounds.slices import Progress, Slice
from castmates.runner.rounds.window import Window
from castmates.study.spec import Scene
from castmates.workloads.phase_records import Phase

SECOND = 1_000_000_000


class Log:
    """As much of a PhaseLog as is asked for."""

    def __init__(self, *parts: list[Phase], torn: tuple[int, ...] = (), **more) -> None:
        self._parts, self._torn = parts, torn
        self.counters, self.lacks, self.trouble = ({"counters": {}, "lacks": {}, "trouble": ""} | more).values()

    def parts(self):
        for number, part in enumerate(self._parts):
            yield part, number in self._torn


def reported(*phases: Phase, **more) -> Reported:
    return Reported.of(Log(list(phases), **more))


def window(samples=(), counts=(), close_ns=10 * SECOND) -> Window:
    scene = Scene(name="alone", kind="alone", mix="", active=("lead",), placebos=(), partition="unmanaged")
    made = Window(scene, [Slice(scene, 0, close_ns, samples=list(samples), counts=list(counts), watched=True)])
    (made.watched,) = made.slices
    return made


def test_a_phase_belongs_to_the_heartbeat_after_its_end():
    log = reported(
        Phase("input", 100, 110), Phase("forward", 110, 190), Phase("input", 201, 202), Phase("forward", 202, 290)
    )
    rows = list(steps_phases(log, Progress([(200, 1), (300, 2), (400, 3)], before_ns=99)))
    assert rows == [
        {"begin_ns": 100, "input_s": 1e-8, "forward_s": 8e-8},
        {"begin_ns": 201, "input_s": 1e-9, "forward_s": 8.8e-8},
        {},  # nothing was reported of it
    ]


def test_a_step_whose_begin_is_not_known_has_no_phases():
    log = reported(Phase("input", 100, 110), Phase("input", 201, 202))
    assert list(steps_phases(log, Progress([(200, 1), (300, 2)]))) == [{}, {"begin_ns": 201, "input_s": 1e-9}]


def test_a_phase_that_this_step_does_not_have_took_no_time():
    log = reported(Phase("work", 0, 5), Phase("work", 11, 15), Phase("save", 15, 19))
    rows = list(steps_phases(log, Progress([(10, 1), (20, 2)], before_ns=0)))
    assert [row["save_s"] for row in rows] == [0.0, 4e-9]


def test_phases_in_phases_and_of_other_threads_do_not_begin_a_step():
    log = reported(Phase("threads/decode", 90, 105), Phase("forward/attention", 103, 105), Phase("forward", 101, 107))
    assert next(steps_phases(log, Progress([(200, 1)], before_ns=99)))["begin_ns"] == 101


def test_steps_in_which_records_were_lost_say_nothing():
    first, second = [Phase("work", 1, 5)], [Phase("work", 31, 35), Phase("work", 41, 45)]
    log = Reported.of(Log(first, second, torn=(1,)))
    rows = list(steps_phases(log, Progress([(10, 1), (20, 2), (40, 3), (50, 4)], before_ns=0)))
    assert [bool(row) for row in rows] == [False, False, False, True]


def test_time_for_which_a_phase_lay_frozen_before_the_scene_is_not_the_steps():
    """A thread was stopped inside its phase for 98 s, and another phase began in the scene before."""
    log = reported(
        Phase("threads/decode", 0, 100 * SECOND),
        Phase("input", SECOND, 99 * SECOND),
        Phase("work", 99 * SECOND, 99 * SECOND + 5),
    )
    (row,) = steps_phases(log, Progress([(101 * SECOND, 7)], before_ns=98 * SECOND))
    assert row == {"begin_ns": 98 * SECOND, "threads/decode_s": 2.0, "input_s": 1.0, "work_s": 5e-9}
    first, second = steps_phases(log, Progress([(98 * SECOND, 6), (101 * SECOND, 7)]))
    assert (first, second) == ({}, row)


def test_a_phase_that_began_in_an_earlier_step_of_the_same_scene_counts_whole():
    log = reported(Phase("threads/decode", 10, 250), Phase("work", 210, 220), Phase("work", 110, 120))
    _, second = steps_phases(log, Progress([(200, 1), (300, 2)], before_ns=5))
    assert second["threads/decode_s"] == pytest.approx(240e-9)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=30), st.data())
def test_lengths_of_all_steps_add_up_to_all_phases(gaps, data):
    beats = [sum(gaps[: number + 1]) for number in range(len(gaps))]
    ends = sorted(data.draw(st.lists(st.integers(1, beats[-1]), max_size=40)))
    log = reported(*(Phase("work", end - 1, end) for end in ends))
    rows = steps_phases(log, Progress([(t_ns, number) for number, t_ns in enumerate(beats)], before_ns=0))
    assert sum(row.get("work_s", 0.0) for row in rows) == pytest.approx(len(ends) * 1e-9)


def test_counts_at_the_edges_are_added_up_per_phase():
    log = reported(
        Phase("a", 0, 5, None, (3, None)),
        Phase("a", 5, 9, None, (0, None)),
        Phase("b", 9, 10, None, (4, None)),
        Phase("b", 90, 10 * SECOND + 1, None, (100, None)),  # ends after the window
        counters={"page-faults": "counted", "instructions": "not supported"},
    )
    found = {(one.phase, one.name): one for one in _counts("lead", log, window())}
    assert found["a", "page-faults"].value == 3.0
    assert found["b", "page-faults"].value == 4.0
    assert {one.source for one in found.values()} == {"in-process"}
    assert found["a", "instructions"].status == "not supported"
    assert found["a", "instructions"].value is None


def test_a_phase_counted_at_some_edges_only_is_not_counted():
    log = reported(Phase("a", 0, 5, None, (3,)), Phase("a", 5, 9, None, (None,)), counters={"page-faults": "counted"})
    (one,) = _counts("lead", log, window())
    assert (one.status, one.value) == ("not counted", None)
    assert "not at every edge" in one.note


@pytest.mark.parametrize("status", ["not counted", "not supported"])
def test_a_counter_that_was_given_up_has_no_value_though_there_are_numbers(status):
    log = reported(Phase("a", 0, 5, None, (3,)), counters={"page-faults": status})
    (one,) = _counts("lead", log, window())
    assert (one.status, one.value) == (status, None)


def test_what_the_numbers_lack_stands_in_the_note():
    counters = {"page-faults": "counted", "cs": "counted"}
    log = reported(Phase("a", 0, 5, None, (3, 4)), counters=counters, lacks={"page-faults": "user mode only"})
    notes = {one.name: one.note for one in _counts("lead", log, window())}
    assert notes["page-faults"] == f"{notes['cs']}; user mode only"


def test_a_window_in_which_the_file_was_spoilt_has_no_counts_and_those_before_have():
    phases = Phase("a", 0, 5, None, (3,)), Phase("a", 2 * SECOND, 3 * SECOND, None, (4,))
    log = reported(*phases, counters={"page-faults": "counted"}, trouble="the phases file was spoilt")
    (before,) = _counts("lead", log, window(close_ns=SECOND))
    (spoilt,) = _counts("lead", log, window())
    assert (before.status, before.value) == ("counted", 3.0)
    assert (spoilt.status, spoilt.value) == ("not counted", None)
    assert "lost" in spoilt.note


def series(event: str, values: list[tuple[float, float]], source: str = "counters") -> list[Sample]:
    return [Sample(int(t * SECOND), source, "lead", event, value) for t, value in values]


COUNTED = [Count("lead", "page-faults", 1.0, "counted", "perf_event_open", scope="thread")]


def test_a_long_phase_is_counted_by_the_readings_that_lie_in_it():
    log = reported(Phase("load", 0, 2 * SECOND), Phase("work", 2 * SECOND, 10 * SECOND))
    every = [(t / 2, 100.0 * t if t <= 4 else 400.0 + 10.0 * (t - 4)) for t in range(21)]  # 100 a reading, then 10
    found = {one.phase: one for one in _counts("lead", log, window(series("page-faults", every), COUNTED))}
    assert found["load"].value == pytest.approx(400.0)
    assert found["work"].value == pytest.approx(160.0)
    assert {(one.source, one.status, one.scope) for one in found.values()} == {("by time", "scaled", "thread")}
    assert found["load"].note == "from 4 intervals wholly in it, which are 100% of its 2.000 s"


def test_a_short_phase_and_a_series_of_somebody_else_give_no_row():
    short = reported(*(Phase("work", t * SECOND // 2 + 1, (t + 1) * SECOND // 2 - 1) for t in range(20)))
    long = reported(Phase("work", 0, 10 * SECOND))
    every = [(t / 2, float(t)) for t in range(21)]
    assert not list(_counts("lead", short, window(series("page-faults", every), COUNTED)))
    assert not list(_counts("lead", long, window(series("page-faults", every, "procstat"), COUNTED)))
    assert not list(_counts("lead", long, window(series("cycles", every), COUNTED)))
    assert list(_counts("lead", long, window(series("page-faults", every), COUNTED)))


def test_what_other_threads_do_has_no_counts_of_its_own():
    log = reported(Phase("threads/decode", 0, 5, None, (3,)), counters={"page-faults": "counted"})
    assert not list(_counts("lead", log, window()))
