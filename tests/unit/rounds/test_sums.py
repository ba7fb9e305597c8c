"""Samples and counts of slices add up to those of their window, and what is missing in one is missing in the sum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.protocols import Count, Sample
from castmates.runner.rounds.window import add_counts, add_samples, can_be_summed


def cpu_s(t_ns, seconds, subject="lead@0", note=""):
    return Sample(t_ns, "cputime", subject, "cpu_s", seconds, note)


def gap(t_ns, longest, total):
    return [
        Sample(t_ns, "keeper", "runs@1", "longest_restart_gap_s", longest),
        Sample(t_ns, "keeper", "runs@1", "restart_gap_s", total),
        Sample(t_ns, "keeper", "runs@1", "restarts", 1.0),
    ]


def by_metric(samples):
    return {(sample.subject, sample.metric): sample for sample in samples}


@given(st.lists(st.floats(0, 10), min_size=1, max_size=9))
def test_cpu_time_is_the_sum_over_slices_at_the_time_of_the_last(seconds):
    (found,) = add_samples([[cpu_s(t, value)] for t, value in enumerate(seconds)], [cpu_s(99, 50.0)])
    assert (found.value, found.t_ns) == (pytest.approx(sum(seconds)), len(seconds) - 1)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_slice_without_a_value_leaves_none_and_its_note(at):
    values = [1.0, 2.0, 4.0]
    notes = ["", "", ""]
    values[at], notes[at] = None, "the member has ended"
    parts = [[cpu_s(t, value, note=note)] for t, (value, note) in enumerate(zip(values, notes, strict=True))]
    (found,) = add_samples(parts, [])
    assert (found.value, found.note) == (None, "the member has ended")


def test_subjects_and_metrics_are_summed_apart():
    parts = [[cpu_s(1, 1.0), cpu_s(1, 10.0, "stream@1")], [cpu_s(2, 2.0), cpu_s(2, 20.0, "stream@1")]]
    found = by_metric(add_samples(parts, []))
    assert {subject: sample.value for (subject, _), sample in found.items()} == {"lead@0": 3.0, "stream@1": 30.0}


def test_gaps_add_up_and_the_longest_is_the_longest():
    found = by_metric(add_samples([gap(1, 0.2, 0.3), gap(2, 0.5, 0.6), gap(3, 0.1, 0.1)], gap(9, 7.0, 7.0)))
    values = {metric: sample.value for (_, metric), sample in found.items()}
    assert values == {"longest_restart_gap_s": 0.5, "restart_gap_s": pytest.approx(1.0), "restarts": 3.0}


def test_each_begin_of_a_run_is_kept_as_it_is():
    begins = [Sample(t, "keeper", "runs@1", "run_begins_after_s", 0.1 * t) for t in (1, 2)]
    assert not can_be_summed(begins[0])
    assert add_samples([[begins[0]], [begins[1]]], [begins[1]]) == begins


def test_what_only_the_watched_slice_has_is_kept_as_it_is_and_not_twice():
    dear = [Sample(5, "procstat", "lead@0", "major_faults", 3.0), Sample(6, "resctrl", "lead@0", "llc_occupancy", 9.0)]
    found = add_samples([[cpu_s(1, 1.0)], [cpu_s(2, 2.0), *dear]], [cpu_s(2, 2.0), *dear])
    assert [sample for sample in found if sample.source != "cputime"] == dear
    assert by_metric(found)["lead@0", "cpu_s"].value == 3.0


def test_where_no_slice_counts_what_the_watched_one_read_is_shown():
    watched = [cpu_s(2, 2.0), Sample(5, "procstat", "lead@0", "major_faults", 3.0)]
    assert add_samples([], watched) == watched


def count(value, status="counted", running=1.0, **more):
    return Count("lead@0", "cycles", value, status, "perf_event_open", running=running, **more)


def test_counts_are_summed_with_the_least_share_of_their_time():
    (found,) = add_counts([[count(1.0)], [count(2.0, "scaled", 0.4)], [count(4.0, running=0.9)]])
    assert (found.value, found.status, found.running) == (7.0, "scaled", 0.4)
    (found,) = add_counts([[count(1.0)], [count(2.0, running=None)]])
    assert (found.value, found.running) == (3.0, None)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_count_that_lacks_a_slice_is_none(at):
    parts = [[count(1.0)], [count(2.0)], [count(4.0)]]
    parts[at] = [count(None, "not counted", 0.0, note="others had the counters")]
    (found,) = add_counts(parts)
    assert (found.value, found.status, found.note) == (None, "not counted", "others had the counters")


def test_events_phases_and_groups_are_summed_apart_and_metrics_not_at_all():
    share = Count("lead@0", "Retiring", 0.5, "counted", "toplev", "metric")
    parts = [
        [count(1.0), count(10.0, phase="forward"), count(100.0, group="other"), share],
        [count(2.0), count(20.0, phase="forward"), count(200.0, group="other"), share],
    ]
    assert sorted(one.value for one in add_counts(parts)) == [3.0, 30.0, 300.0]
    assert add_counts([]) == []
