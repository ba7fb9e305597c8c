"""Our reader against what XProf shows of the recorded trace (benchmarks/xprof_check.py does that for any traces)."""

import gzip
import json
from collections import Counter

import pytest

from benchmarks import xprof_check
from benchmarks.xprof_sums import as_we_count, name_of, sums
from benchmarks.xprof_tools import Shown
from castmates.traces.operations import read_trace
from tests.unit.xspace_file import RECORDED

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
