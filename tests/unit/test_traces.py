"""Traces of profilers, read without them: held against the reader that runs inside jobs, which works one by one."""

import gzip
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.traces import xspace
from castmates.traces.nesting import Threads, shared, shared_by_parts
from castmates.traces.operations import OUTSIDE, identity, read_trace
from castmates.traces.operations import operation_of as operation
from castmates.workloads.tfmodels.xspace import STEP, rolled
from tests.unit.trace_maker import trace_bytes, write_trace
from tests.unit.xspace_file import RECORDED, recorded

NAMES = ["a/b:Mul", "c:Conv2D", "EagerLocalExecute: x", "IteratorGetNextOp::DoCompute", "f:PartitionedCall", "noise"]
STEPS = [(10, 30, STEP), (30, 55, STEP)]


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "tiny.xplane.pb"
    place.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    return place


@st.composite
def thread(draw):
    """Nested events, and some that overlap the end of the one they begin in, as clocks let them."""
    events = []
    for _ in range(draw(st.integers(0, 8))):
        begin = draw(st.integers(0, 60))
        events.append((begin, begin + draw(st.integers(0, 25)), draw(st.sampled_from(NAMES))))
    return events


def as_the_job_reads(threads):
    names = {number: SimpleNamespace(name=name) for number, name in enumerate([*NAMES, STEP])}
    number_of = {each.name: number for number, each in names.items()}
    lines = [
        SimpleNamespace(
            name=name,
            timestamp_ns=0,
            events=[
                SimpleNamespace(metadata_id=number_of[event], offset_ps=begin, duration_ps=end - begin)
                for begin, end, event in events
            ],
        )
        for name, events in threads.items()
    ]
    return rolled(SimpleNamespace(planes=[SimpleNamespace(name="/host:CPU", lines=lines, event_metadata=names)]))


def shared_by_type(trace):
    found = defaultdict(float)
    for place, ps in zip(trace.calls.operation, trace.calls.shared_ps, strict=True):
        found[trace.operations[place].type] += ps / 1e3
    return {type_: ns for type_, ns in found.items() if ns > 1e-9}


def rolled_by_type(content):
    found = defaultdict(float)
    for _, type_, _, _, ns in content["operations"]:
        found[type_] += ns
    return {type_: ns for type_, ns in found.items() if ns > 1e-9}


def test_a_recorded_trace_has_what_the_jobs_own_reader_finds(file):
    trace, content = read_trace(file), rolled(recorded())
    assert trace.steps == len(content["step_seconds"]) == 2
    whole = 1e12 * sum(content["step_seconds"])
    assert trace.calls.shared_ps.sum() + trace.unattributed_ps == pytest.approx(whole)
    assert shared_by_type(trace) == pytest.approx(rolled_by_type(content))
    calls = defaultdict(int)
    for place, step in zip(trace.calls.operation, trace.calls.step, strict=True):
        calls[trace.operations[place].type] += step != OUTSIDE
    assert calls["Conv2D"] == 2


def test_a_step_that_waits_while_its_input_is_made_waits(tmp_path):
    waits, decodes, works = (12, 28, NAMES[3]), (10, 55, "decode:DecodeJpeg"), (28, 50, "a/b:Mul")
    named = {"python": [*STEPS, waits], "tf_data_pool/1": [decodes], "tf_Compute/1": [works]}
    assert shared_by_type(read_trace(write_trace(tmp_path / "x.pb", named))) == pytest.approx(
        {"IteratorGetNext": 0.016, "Mul": 0.022, "DecodeJpeg": 0.007}
    )


@settings(deadline=None)
@given(st.lists(thread(), min_size=1, max_size=3))
def test_any_trace_is_divided_as_by_the_jobs_own_reader(tmp_path_factory, threads):
    named = {"python": [*STEPS], **dict(zip(("tf_Compute/1", "tf_data_pool/1", "tf_Compute/2"), threads, strict=False))}
    trace = read_trace(write_trace(tmp_path_factory.mktemp("trace") / "x.pb", named))
    assert shared_by_type(trace) == pytest.approx(rolled_by_type(as_the_job_reads(named)))
    assert trace.unattributed_ps >= -1e-6
    assert (trace.calls.own_ps >= 0).all()


def test_a_call_knows_its_caller_its_step_and_what_it_takes_itself(tmp_path):
    named = {
        "python": STEPS,
        "tf_Compute/1": [(12, 28, "outer:If"), (12, 28, "a/b:Mul"), (14, 20, "c:Conv2D"), (29, 33, "c:Conv2D")],
    }
    trace = read_trace(write_trace(tmp_path / "x.pb", named))
    rows = [
        (trace.operations[operation].type, step, begin, end, own, parent)
        for operation, step, begin, end, own, parent in zip(
            *(getattr(trace.calls, name) for name in ("operation", "step", "begin_ps", "end_ps", "own_ps", "parent")),
            strict=True,
        )
    ]
    assert rows == [("Mul", 0, 12, 28, 10, -1), ("Conv2D", 0, 14, 20, 6, 0), ("Conv2D", 0, 29, 33, 4, -1)]
    assert trace.calls.shared_ps.tolist() == [10.0, 6.0, 4.0]


def test_times_count_from_the_beginning_of_the_profile_where_the_trace_names_it(tmp_path):
    began = 1_795_000_000_000_000_000
    relative = read_trace(write_trace(tmp_path / "x.pb", {"python": STEPS}, began_ns=began, line_ns=7))
    absolute = read_trace(write_trace(tmp_path / "y.pb", {"python": STEPS}, line_ns=began + 7))
    assert relative.origin_ns == absolute.origin_ns == began + 7
    assert relative.step_begin_ps.tolist() == [10, 30]


def test_large_traces_are_read_in_pieces(tmp_path, monkeypatch):
    events = [(begin, begin + 1, NAMES[begin % 2]) for begin in range(10, 55)]
    file = write_trace(tmp_path / "x.pb", {"python": STEPS, "tf_Compute/1": events})
    whole = read_trace(file)
    monkeypatch.setattr(xspace, "AT_ONCE", 40)
    pieces = read_trace(file)
    assert len(whole.calls.begin_ps) == 45
    for name in ("operation", "begin_ps", "end_ps", "step", "shared_ps"):
        assert np.array_equal(getattr(whole.calls, name), getattr(pieces.calls, name)), name


def problem_of(file):
    try:
        read_trace(file)
    except CastmatesError as problem:
        return str(problem)
    return ""


def test_steps_that_are_divided_some_at_a_time_come_to_the_same(tmp_path):
    dice = np.random.default_rng(1)
    steps = [(10 * place, 10 * place + 10, STEP) for place in range(30)]
    begins = dice.integers(0, 300, 200).tolist()
    events = [(begin, begin + int(dice.integers(1, 40)), NAMES[begin % 4]) for begin in begins]
    trace = read_trace(write_trace(tmp_path / "x.pb", {"python": steps, "a": events[:120], "b": events[120:]}))
    levels = np.array([one.level for one in trace.operations])[trace.calls.operation]
    threads = Threads(trace.calls.begin_ps, trace.calls.end_ps, trace.calls.parent, levels)
    parts = shared_by_parts(threads, trace.step_begin_ps, trace.step_end_ps, at_once=20)
    assert parts == pytest.approx(shared(threads, trace.step_begin_ps, trace.step_end_ps))


@settings(deadline=None)
@given(st.data())
def test_a_damaged_trace_is_a_sentence(tmp_path_factory, data):
    content = trace_bytes({"python": STEPS, "tf_Compute/1": [(12, 28, "a/b:Mul")]}, began_ns=5)
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        place = data.draw(st.integers(0, len(content) - 1))
        content = content[:place] + bytes([data.draw(st.integers(0, 255))]) + content[place + 1 :]
    file = tmp_path_factory.mktemp("trace") / "x.pb"
    file.write_bytes(content)
    problem = problem_of(file)
    assert problem == "" or problem.startswith(f"{file}: ")
    assert "\n" not in problem


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x1f\x8b" * 40, b"PK\x03\x04" * 9], ids=["empty", "JSON", "gzip", "zip"]
)
def test_a_foreign_file_is_a_sentence(tmp_path, content):
    file = tmp_path / "x.pb"
    file.write_bytes(content)
    with pytest.raises(CastmatesError, match=r"x\.pb: "):
        read_trace(file)


def test_a_trace_without_steps_is_a_sentence(tmp_path):
    with pytest.raises(CastmatesError, match="has none of the job's steps"):
        read_trace(write_trace(tmp_path / "x.pb", {"tf_Compute/1": [(1, 2, "a/b:Mul")]}))


def test_an_operation_has_one_name_in_all_traces_of_a_graph():
    assert identity("while/body/_1/StatefulPartitionedCall_3/model/dense/MatMul") == "model/dense/MatMul"
    assert operation("a/b:Mul", of_input=True).place.direction == "input"
    assert operation("ThreadpoolListener::Record", of_input=False) is None
