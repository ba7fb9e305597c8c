"""What the record of a trace has under `missing`: of its counters, and of the threads of its framework's profile."""

from types import SimpleNamespace

from castmates.protocols import Count
from castmates.runner.profiles.rounds import Taken
from castmates.runner.tracing.programs import add_profile
from castmates.runner.tracing.record import not_counted
from castmates.runner.tracing.recorded import Recorded
from castmates.study.spec import UNMANAGED, Scene
from castmates.timeline.model import Making, Registry
from castmates.workloads.jobs.tracing import STEP
from tests.unit.trace_maker import jax_bytes

LEAD = "lead@0"
NO_COUNTER = "not supported: this processor or virtual machine has no counter for it"


def test_events_without_a_count_are_missing_although_the_kernels_own_were_counted():
    counts = [
        Count(LEAD, "task-clock", 2.5e9, "counted", "perf_event_open"),
        *(Count(LEAD, name, None, "not supported", "perf_event_open", note=NO_COUNTER) for name in ("cycles", "loads")),
    ]
    assert not_counted(counts) == [f"Counts of cycles and loads: {NO_COUNTER}."]
    later = [Count(LEAD, name, 7.0, "counted", "perf_event_open") for name in ("cycles", "loads")]
    assert not_counted([*counts, *later]) == [], "another recording has them"


def test_lines_of_calls_that_others_finish_are_no_threads_that_could_not_be_found(tmp_path):
    programs = {"jit_train(1)": [("dot.1", "dot", "jit(train)/a/dot_general")]}
    threads = {
        "python": [(10, 50, STEP), (50, 90, STEP)],
        "tf_XLAEigen/1": [(12, 13, "dot.1"), (60, 80, "dot.1")],
        "tf_XLAEigen/2": [(30, 30, "end: dot.1"), (80, 80, "end: dot.1")],
    }
    (tmp_path / "x.xplane.pb").write_bytes(jax_bytes(threads, programs, {}))
    scene = Scene(name="alone", kind="alone", mix="", active=(LEAD,), placebos=(), partition=UNMANAGED)
    taken = Taken(scene, 1, folder=tmp_path, clocks=[(0, 0, 10), (90, 90, 10)])
    cohort = SimpleNamespace(id="lead-1", lead=SimpleNamespace(name=LEAD, workload="lead"))
    launch = SimpleNamespace(cohort=cohort, study="s", number=1)
    outcome = SimpleNamespace(launch=launch, cast=[], platform="measured")
    making = Making()
    source = add_profile(making, Registry(making), outcome, Recorded(scene, 1, profile=taken), [])
    lines = making.tracks()
    names = [track["name"] for track in lines if track["kind"] == "thread"]
    apart = names.count("XLA, asynchronous")
    assert apart == 1
    assert source.more["threads not found"] == len(names) - apart
    assert "no threads" in next(iter(source.more["missing"]))
