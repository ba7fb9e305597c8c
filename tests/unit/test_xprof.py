"""Our reader against what XProf shows of recorded traces (benchmarks/xprof_check.py does that for any)."""

import gzip
import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import xprof_check
from benchmarks.xprof_sums import as_we_count, name_of, sums
from benchmarks.xprof_tools import Shown
from castmates.analysis.operations.per_trace import BOUND, COMPUTE, INPUT, input_pipeline, per_launch
from castmates.runner.profiles.tables import Aligned, steps, write_operations
from castmates.traces.operations import WAITS, read_trace
from tests.unit.operations_maker import COMMON
from tests.unit.xspace_file import RECORDED

STRANGERS = json.loads(RECORDED.with_name("strangers.json").read_text())
XPROF = RECORDED.with_name("tiny.xprof.json")


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "tiny.xplane.pb"
    place.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    return place


def shown():
    known = json.loads(XPROF.read_text())
    steps = {int(number): tuple(both) for number, both in known["steps"].items()}
    return Shown({name: tuple(both) for name, both in known["operations"].items()}, known["all_us"], steps, {})


def test_the_recorded_trace_has_the_sums_that_xprof_shows(file):
    own, theirs = sums(file), shown()
    found = xprof_check.compared(own, theirs)
    assert (found.compared, found.ns, found.calls, found.lacking) == (80, 0.0, 0, 0)
    steps = xprof_check.steps_compared(own, theirs)
    assert (steps.compared, steps.ns, steps.lacking) == (2, 0.0, 0)


@pytest.mark.parametrize(
    ("of", "ns", "calls", "lacking"),
    [
        (("Iterator::Root", 3, 0), 0.003, 0, 0),
        (("Iterator::Root", 2000, 1), 2.0, 1, 0),
        (("new/MatMul", 0, 1), 0.0, 0, 1),
    ],
)
def test_a_difference_is_found(file, of, ns, calls, lacking):
    name, ps, more = of
    own = sums(file)
    own.own_ps[name] += ps
    own.calls[name] += more
    found = xprof_check.compared(own, shown())
    assert (found.ns, found.calls, found.lacking) == (pytest.approx(ns, rel=1e-3), calls, lacking)


def test_the_copy_for_xprof_has_the_calls_of_our_tables(file, tmp_path):
    copy = tmp_path / "copy.pb"
    own = as_we_count(file, copy)
    trace = read_trace(file)
    again = sums(copy)
    assert again.calls == own.calls
    assert again.own_ps == own.own_ps
    assert own.calls.total() == len(trace.calls.begin_ps)
    assert Counter(own.own_ps).total() == trace.calls.own_ps.sum()


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("a/b:MatMul", "a/b"),
        ("a/b:_MklMatMul", "a/b"),
        ("Iterator::Root::Prefetch", "Iterator::Root::Prefetch"),
        ("EagerLocalExecute: x", None),
        ("ThreadpoolListener::Record", None),
        ("MemoryAllocation", None),
    ],
)
def test_operations_are_those_that_xprof_counts(event, name):
    assert name_of(event) == name


@pytest.fixture(params=STRANGERS)
def stranger(request, tmp_path):
    """A training that knows nothing of us, what XProf shows of it, and the time of its optimizer as Keras names it."""
    file = tmp_path / "x.xplane.pb"
    file.write_bytes(gzip.decompress(RECORDED.with_name(f"{request.param}.xplane.pb.gz").read_bytes()))
    known = STRANGERS[request.param]
    return file, np.array(list(known["xprof_ms"].values())), known["optimizer_ps"]


def test_a_step_waits_for_its_batch_as_long_as_in_xprof(stranger):
    file, shown_ms, _ = stranger
    whole, waited = shown_ms.T
    trace = read_trace(file)
    levels = np.array([each.level for each in trace.operations])[trace.calls.operation]
    assert 1e-9 * (trace.step_end_ps - trace.step_begin_ps) == pytest.approx(whole, abs=1e-6)
    share = 1e-9 * trace.calls.shared_ps[levels == WAITS].sum() / whole.sum()
    # What is less: another operation of the model ran meanwhile, and the step did not wait.
    assert waited.sum() / whole.sum() - 0.01 < share < waited.sum() / whole.sum() + 1e-6


def test_the_verdict_is_that_of_xprof(stranger, tmp_path):
    file, shown_ms, _ = stranger
    whole, waited = shown_ms.T
    taken = SimpleNamespace(before=(), after=(), threads=(2, 2), first_step=0)
    launches = []
    for launch in (1, 2, 3):
        about = COMMON | {"scene": "alone", "kind": "alone", "mix": "", "launch": launch, "round": 1}
        aligned = Aligned(read_trace(file), taken, 0, 0, about)
        write_operations(iter([aligned]), tmp_path / "operations.parquet")
        launches.append((pd.read_parquet(tmp_path / "operations.parquet"), pd.DataFrame(steps(aligned))))
    (row,) = input_pipeline(per_launch(launches)).to_dict("records")
    assert row["verdict"] == (INPUT if waited.sum() / whole.sum() > BOUND else COMPUTE)


def test_the_optimizer_is_what_lies_in_the_scope_that_keras_gives_it(stranger):
    file, _, picoseconds = stranger
    trace = read_trace(file)
    direction = np.array([each.place.direction for each in trace.operations])[trace.calls.operation]
    assert trace.calls.own_ps[direction == "optimizer"].sum() == pytest.approx(picoseconds, rel=1e-3)
