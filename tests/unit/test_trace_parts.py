"""Parts of trace launches that need no launch: shares of memory, rates, whose thread one is, the folder of a trace."""

import json

import pytest

from castmates.errors import CastmatesError
from castmates.machine.topology import NumaNode
from castmates.pipeline import trace_launch
from castmates.protocols import Sample
from castmates.results.folder import StudyFolder
from castmates.results.traces import traces_there
from castmates.runner.tracing.recorders import near_nodes, remote_share, series
from castmates.timeline.model import Making, Registry

# As a kernel with two nodes writes them: small pages, huge ones of 2 MiB, a file, and maps without pages.
TWO_NODES = """
55d0c8a00000 default file=/usr/bin/python3.11 mapped=6 mapmax=3 N0=6 kernelpagesize_kB=4
7f1c00000000 default anon=300 dirty=300 active=0 N0=100 N1=200 kernelpagesize_kB=4
7f2c00000000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=1 dirty=1 N1=1 kernelpagesize_kB=2048
7f3c00000000 default
7ffd00000000 default stack anon=3 dirty=3 N10=3 kernelpagesize_kB=4
"""


def test_memory_on_other_nodes_is_counted_in_bytes():
    near, far = 106 * 4, 200 * 4 + 2048 + 3 * 4
    assert remote_share([TWO_NODES], {0}) == pytest.approx(far / (near + far))
    assert remote_share([TWO_NODES, ""], {0, 1, 10}) == 0
    assert remote_share(["", "7f3c00000000 default"], {0}) is None, "nothing is known of who has ended"


def test_a_machine_of_one_node_has_no_share():
    nodes = [NumaNode(0, None, (0, 1)), NumaNode(1, None, (2, 3))]
    assert near_nodes([1], nodes) == {0}
    assert near_nodes([1, 2], nodes) == {0, 1}
    assert near_nodes([1], nodes[:1]) is None


def test_what_counters_have_counted_so_far_becomes_a_rate():
    def read(metric, *values, source="counters"):
        return [Sample(10**9 + place * 10**8, source, "lead@0", metric, value) for place, value in enumerate(values)]

    samples = read("task-clock", 0, 5e7, 1.5e8) + read("instructions", 0, 300, 300) + read("mbm_total", 7, source="r")
    found = {(one.name, one.unit): one.readings for one in series(samples)}
    assert [value for _, value in found["task-clock", "CPUs"]] == pytest.approx([0.5, 1.0])
    assert found["instructions", "/s"] == [(1_100_000_000, 3000), (1_200_000_000, 0)]
    assert found["memory_bytes_per_s", "B/s"] == [(10**9, 7)]


def test_a_reading_whose_moment_was_noted_late_makes_no_rate_that_no_cpu_has():
    """As it was seen: read at 100 ms, noted at 149.8 ms, because the thread lost its CPU; the end read at 150 ms."""
    noted = [(0, 0.0), (50, 25e6), (149.8, 50e6), (150, 75e6), (200, 100e6)]
    samples = [Sample(round(ms * 1e6), "counters", "lead@0", "task-clock", value) for ms, value in noted]
    (found,) = series(samples)
    assert [value for _, value in found.readings] == pytest.approx([0.5, 0.5, 0.5])
    (found,) = series(samples[:4])
    assert [value for _, value in found.readings] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("perf_comes_first", [False, True])
def test_a_childs_thread_hangs_on_its_own_process_whoever_names_it_first(perf_comes_first):
    making = Making()
    registry = Registry(making)
    by_turns = [lambda: registry.thread(31, 10, "worker", "lead@0", guessed=True), lambda: registry.thread(31, 30)]
    for name in reversed(by_turns) if perf_comes_first else by_turns:
        number = name()
    track = making.tracks()[number]
    assert (track["pid"], track["parent"]) == (30, registry.process(30))
    assert track["name"] == "worker"
    guess = making.tracks()[registry.thread(32, 10, guessed=True)]
    assert guess["pid"] == 10, "until another source knows better"


def record(folder, status):
    (folder / "trace.json").write_text(json.dumps({"status": status, "reason": "it ended"}))


def test_a_trace_is_replaced_by_a_whole_one_alone(tmp_path):
    study = StudyFolder(tmp_path)
    folder = study.trace("a+b")
    new = trace_launch.begin(folder)
    record(new, "failed")
    assert traces_there(study) == [], "what is being made is no trace"
    trace_launch.finish(new, folder)
    assert traces_there(study) == ["a+b"], "there is no better one"
    new = trace_launch.begin(folder)
    record(new, "measured")
    (new / "tracks.parquet").touch()
    trace_launch.finish(new, folder)
    assert (folder / "tracks.parquet").exists()
    assert sorted(each.name for each in study.traces.iterdir()) == ["a+b"]
    new = trace_launch.begin(folder)
    record(new, "failed")
    (new / "raw").mkdir()
    with pytest.raises(CastmatesError, match=r"it ended; its logs are in .* is kept"):
        trace_launch.finish(new, folder)
    assert (folder / "tracks.parquet").exists()
    assert not (new / "raw").exists()
    assert traces_there(study) == ["a+b"]


def test_a_launch_that_is_killed_between_two_renames_loses_no_trace(tmp_path):
    study = StudyFolder(tmp_path)
    folder = study.trace("a+b")
    (study.traces / ".old" / "a+b").mkdir(parents=True)
    record(study.traces / ".old" / "a+b", "measured")
    trace_launch.begin(folder)
    assert traces_there(study) == ["a+b"]
