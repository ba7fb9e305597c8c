"""A profiler's trace, added up: what was recorded, and what must hold for any trace."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.explanations import layers
from castmates.workloads.tfmodels import xspace
from castmates.workloads.tfmodels.xspace import RUNTIME, WAITING, own_time, rolled, shared
from tests.unit.xspace_file import recorded

A, B, C = ("a", "A", False), ("b", "B", False), ("c", "C", True)
D = ("d", "D", False)


@pytest.fixture(scope="module")
def trace():
    return rolled(recorded())


def test_the_recorded_steps_are_found_and_their_operations_counted(trace):
    assert len(trace["step_seconds"]) == 2
    calls = {(name, type_): count for name, type_, _, count, _ in trace["operations"]}
    assert calls["tiny_model/conv2d/Conv2D", "Conv2D"] == 2
    assert calls["gradient_tape/tiny_model/conv2d/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter"] == 2
    assert calls["IteratorGetNext", "IteratorGetNext"] == 2


def test_containers_and_what_is_no_operation_are_left_out(trace):
    types = {type_ for _, type_, *_ in trace["operations"]}
    assert not types & {"Process", "PartitionedCall", "StatefulPartitionedCall", "DoCompute", "Record"}


def test_the_input_pipelines_operations_are_told_from_the_models(trace):
    of_input = {name for name, _, is_input, *_ in trace["operations"] if is_input}
    assert "stateless_random_uniform/StatelessRandomUniformV2" in of_input
    assert not any("tiny_model" in name for name in of_input)


def test_no_more_is_told_of_than_the_steps_took(trace):
    told = sum(nanoseconds for *_, nanoseconds in trace["operations"])
    assert 0.3 * sum(trace["step_seconds"]) < told / 1e9 <= sum(trace["step_seconds"])


def test_the_rows_of_a_recorded_trace_add_up_and_have_the_models_layers(trace):
    rows = layers.layer_rows([tuple(one) for one in trace["operations"]], trace["step_seconds"])
    assert sum(row.ms_per_step for row in rows) == pytest.approx(500 * sum(trace["step_seconds"]))
    assert sum(row.share for row in rows) == pytest.approx(1)
    found = {(row.place.layer, row.place.kind, row.place.direction): row.calls for row in rows}
    for layer, kind in [
        ("conv2d", "convolution"),
        ("max_pooling2d", "pooling"),
        ("dense", "matmul"),
        ("re_lu", "activation"),
    ]:
        assert found[f"tiny_model/{layer}", kind, "forward"] == 1
        assert (f"tiny_model/{layer}", kind, "backward") in found
    assert found["SGD", "optimizer", "optimizer"] > 10
    assert found["waiting for the batch", "input", "input"] == 1
    assert ("unattributed", "unattributed", "") in found
    assert not [place for place in found if place[1] == "other"]


@st.composite
def nested(draw):
    """The events of one thread: each either after the one before, or inside it."""
    events = []

    def put(begin: int, end: int, depth: int) -> None:
        place = begin
        while place < end and len(events) < 12:
            first = draw(st.integers(place, end))
            last = draw(st.integers(first, end))
            events.append((first, last, draw(st.sampled_from([A, B, C, WAITING, RUNTIME]))))
            if depth and draw(st.booleans()):
                put(first, last, depth - 1)
            place = last + 1

    put(0, 60, 2)
    return events


def covered(events) -> set[int]:
    return {moment for begin, end, _ in events for moment in range(begin, end)}


@settings(deadline=None)
@given(nested())
def test_own_time_covers_what_the_events_cover_once(events):
    moments = Counter(moment for begin, end, _ in own_time(events) for moment in range(begin, end))
    assert set(moments) == covered(events)
    assert set(moments.values()) <= {1}


@settings(deadline=None)
@given(st.lists(nested(), min_size=1, max_size=3))
def test_what_is_shared_adds_up_to_the_time_in_which_anything_ran(threads):
    total = shared(segment for events in threads for segment in own_time(events))
    assert sum(total.values()) == pytest.approx(len(set().union(*map(covered, threads))))
    assert all(value > 0 for value in total.values())


def test_a_call_takes_its_time_from_the_caller_and_two_threads_share_it():
    caller = own_time([(0, 10, A), (2, 6, B)])
    beside = own_time([(8, 12, D)])
    assert shared([*caller, *beside]) == {A: 2 + 2 + 1, B: 4, D: 1 + 2}


def test_a_step_waits_while_the_model_does_not_work_whatever_the_input_does():
    main = own_time([(0, 10, RUNTIME), (0, 4, WAITING)])
    assert shared([*main, (2, 3, A), (6, 7, A), (0, 5, C)]) == {A: 2, WAITING: 3, C: 1, RUNTIME: 4}


def test_what_lies_outside_the_steps_does_not_count():
    names = {1: SimpleNamespace(name=xspace.STEP), 2: SimpleNamespace(name="a/b:Mul")}

    def line(name: str, *events: tuple[int, int, int]) -> SimpleNamespace:
        told = [SimpleNamespace(metadata_id=one, offset_ps=begin, duration_ps=length) for one, begin, length in events]
        return SimpleNamespace(name=name, timestamp_ns=7, events=told)

    lines = [line("python", (1, 1000, 500), (1, 2000, 500)), line("tf_Compute/1", (2, 0, 100), (2, 1400, 700))]
    space = SimpleNamespace(planes=[SimpleNamespace(name="/host:CPU", lines=lines, event_metadata=names)])
    assert rolled(space) == {"step_seconds": [5e-10, 5e-10], "operations": [["a/b", "Mul", False, 1, 0.2]]}


def test_a_trace_without_steps_or_without_a_host_gives_nothing():
    assert rolled(SimpleNamespace(planes=[])) == {"step_seconds": [], "operations": []}
