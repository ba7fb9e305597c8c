"""Shares of intervals are separated by phase: exactly where they can be, and not at all where they cannot."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.analysis.explanations.topdown_phases import Interval, of_phases
from castmates.protocols import Sample
from castmates.runner.rounds.slices import Slice, topdown_counts

MS = 10**6
TRUE = {"forward": 0.3, "backward": 0.7, "": 0.1}


def step(begin, forward, backward):
    """One step: forward, then backward, then as long as both nothing that was named."""
    middle, end = begin + forward * MS, begin + (forward + backward) * MS
    return {"forward": (begin, middle), "backward": (middle, end)}, end + (forward + backward) * MS


def steps(lengths):
    at, spans = 0, {"forward": [], "backward": []}
    for forward, backward in lengths:
        one, at = step(at, forward, backward)
        for name, span in one.items():
            spans[name].append(span)
    return spans, at


def mixture(begin, end, spans):
    inside = {name: sum(max(0, min(end, last) - max(begin, first)) for first, last in spans[name]) for name in spans}
    inside[""] = end - begin - sum(inside.values())
    return sum(TRUE[name] * length for name, length in inside.items()) / (end - begin)


def intervals(spans, until, length):
    edges = list(range(0, until, length * MS))
    return [Interval(a, b, {"Retiring": mixture(a, b, spans)}) for a, b in pairwise(edges)]


def values(told):
    return {one.phase: one.value for one in told}


def test_long_phases_are_told_by_the_intervals_wholly_in_them():
    spans, until = steps([(50, 80)] * 3)
    told = of_phases(intervals(spans, until, 10), spans)
    assert values(told) == pytest.approx({"forward": 0.3, "backward": 0.7})
    assert all("wholly" in one.note for one in told)


@given(st.lists(st.tuples(st.integers(3, 9), st.integers(3, 9)), min_size=12, max_size=30), st.integers(11, 40))
def test_short_phases_are_unmixed_or_left_out_and_never_told_wrong(lengths, length):
    spans, until = steps(lengths)
    for one in of_phases(intervals(spans, until, length), spans):
        assert one.value == pytest.approx(TRUE[one.phase], abs=1e-6)


def test_unmixing_needs_intervals_that_differ():
    spans, until = steps([(5, 5)] * 30)
    assert of_phases(intervals(spans, until, 20), spans) == []  # each interval is the same mixture
    spans, until = steps([(3, 9), (9, 3), (5, 5), (8, 4)] * 8)
    told = of_phases(intervals(spans, until, 25), spans)
    assert values(told) == pytest.approx({"forward": 0.3, "backward": 0.7})
    assert all("regression" in one.note for one in told)


def test_noise_that_hides_a_phase_leaves_it_out():
    spans, until = steps([(3, 9), (9, 3), (5, 5), (8, 4)] * 4)
    dice = np.random.default_rng(3)
    noisy = [Interval(one.begin_ns, one.end_ns, {"Retiring": float(dice.uniform(0, 1))})
             for one in intervals(spans, until, 25)]  # fmt: skip
    assert of_phases(noisy, spans) == []


def test_phases_within_phases_are_told_by_whole_intervals_alone():
    spans = {"step": [(0, 1000 * MS)], "forward": [(0, 35 * MS)]}
    made = [Interval(at * MS, (at + 10) * MS, {"Retiring": 0.4}) for at in range(0, 1000, 10)]
    assert values(of_phases(made, spans)) == pytest.approx({"step": 0.4, "forward": 0.4})
    made = [Interval(at * MS, (at + 50) * MS, {"Retiring": 0.4}) for at in range(0, 1000, 50)]
    assert list(values(of_phases(made, spans))) == ["step"]


def test_phases_within_phases_and_those_never_met_leave_the_others_their_regression():
    spans, until = steps([(3, 9), (9, 3), (5, 5), (8, 4)] * 8)
    made = intervals(spans, until, 25)
    inner = [(begin, (begin + end) // 2) for begin, end in spans["forward"]]
    more = spans | {"forward/attention": inner, "save": [(2 * until, 3 * until)], "threads/decode": [(0, until)]}
    told = values(of_phases(made, more))
    assert told.pop("threads/decode") == pytest.approx(np.mean([one.shares["Retiring"] for one in made]))
    assert told == pytest.approx({"forward": 0.3, "backward": 0.7})


def test_a_category_that_some_intervals_lack_is_told_from_the_others():
    spans, until = steps([(3, 9), (9, 3), (5, 5), (8, 4)] * 8)
    made = intervals(spans, until, 25)
    half = [Interval(one.begin_ns, one.end_ns, {"Other": 0.5, **(one.shares if place % 3 else {})})
            for place, one in enumerate(made)]  # fmt: skip
    told = {(one.metric, one.phase): one.value for one in of_phases(half, spans)}
    assert told["Retiring", "forward"] == pytest.approx(0.3)
    assert told["Retiring", "backward"] == pytest.approx(0.7)
    assert told["Other", "backward"] == pytest.approx(0.5)


def test_samples_become_intervals_between_the_edges_and_counts_with_a_phase():
    spans, until = steps([(50, 80)] * 3)
    made = intervals(spans, until, 10)
    samples = [Sample(one.end_ns, "topdown", "lead@0", "Retiring", one.shares["Retiring"]) for one in made]
    samples[3] = Sample(made[3].end_ns, "topdown", "lead@0", "Retiring", None)
    samples.append(Sample(made[5].end_ns, "topdown", "stream@1", "Retiring", 0.9))
    samples.append(Sample(made[5].end_ns, "counters", "lead@0", "cycles", 9.0))
    watched = Slice(None, 0, until, samples=samples, watched=True)
    found = {one.phase: one for one in topdown_counts("lead@0", spans, watched)}
    assert {name: one.value for name, one in found.items()} == pytest.approx({"forward": 0.3, "backward": 0.7})
    assert {(one.status, one.source, one.kind, one.level) for one in found.values()} == {
        ("scaled", "by time", "metric", 1)}  # fmt: skip
    assert list(topdown_counts("nobody", spans, watched)) == []
