"""Timelines as CTF, read by babeltrace2: every event once, in order, with its time; and back into the same states."""

import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.timeline import converting as index
from castmates.timeline.export.ctf import write
from castmates.timeline.model import Making, Timeline
from tests.unit.timeline_maker import made

DATA = Path(__file__).parent.parent / "data" / "imports"
EVENT = re.compile(r"\[(\d+)\] (?:\S+ )?([\w:]+): \{ cpu_id = (\d+) \}, (.*)")
pytestmark = pytest.mark.needs("babeltrace2")


def events_of(folder: Path) -> list[tuple[int, str, int, str]]:
    """What babeltrace2 prints: time, name, CPU, and the fields."""
    command = ["babeltrace2", "--clock-cycles", "--no-delta", "--fields=", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    found = [EVENT.match(line) for line in lines]
    assert all(found)
    return [(int(each[1]), each[2], int(each[3]), each[4]) for each in found if each]


def test_every_row_is_there_once_in_order_and_at_its_time(tmp_path):
    timeline = made(events=3000)
    write(timeline, tmp_path / "a")
    events = events_of(tmp_path / "a")
    assert [each[0] for each in events] == sorted(each[0] for each in events)
    names = Counter(each[1] for each in events)
    rows = timeline.intervals["kind"].value_counts()
    assert names["syscall_entry_futex"] == names["syscall_exit_futex"] == rows["syscall"]
    assert names["castmates:operation_begin"] == names["castmates:operation_end"] == rows["operation"]
    assert names["castmates:scene_begin"] == rows["scene"]
    assert names["castmates:sample"] == len(timeline.samples)
    moments = timeline.instants["kind"].value_counts()
    assert names["sched_waking"] == moments["wakeup"]
    assert names["castmates:heartbeat"] == moments["heartbeat"]
    for kind, name, column in (
        ("syscall", "syscall_entry_futex", "t0_ns"),
        ("operation", "castmates:operation_end", "t1_ns"),
    ):
        own = timeline.intervals[timeline.intervals["kind"] == kind]
        assert sorted(own[column]) == [each[0] for each in events if each[1] == name]


def test_threads_come_and_go_as_their_states_say(tmp_path):
    timeline = index.read(DATA / "ftrace.txt", index.importer_of(DATA / "ftrace.txt"))
    write(timeline, tmp_path / "a")
    runs = timeline.intervals[(timeline.intervals["kind"] == "state") & (timeline.intervals["name"] == "running")]
    tids = timeline.tracks.set_index("track")["tid"]
    comes, on = Counter(), {}
    for t, name, cpu, fields in events_of(tmp_path / "a"):
        if name != "sched_switch":
            continue
        prev, came = (int(each) for each in re.findall(r"(?:prev|next)_tid = (\d+)", fields))
        assert on.get(cpu, prev) == prev  # who leaves is who came before
        on[cpu] = came
        comes[t, came, cpu] += 1
    expected = Counter(zip(runs["t0_ns"], runs["track"].map(tids), runs["cpu"], strict=True))
    assert expected - comes == Counter()


def test_what_is_written_is_read_as_it_was(tmp_path):
    before = index.read(DATA / "ftrace.txt", index.importer_of(DATA / "ftrace.txt"))
    write(before, tmp_path / "a")
    after = index.read(tmp_path / "a", index.importer_of(tmp_path / "a"))
    [source] = after.about["sources"]
    assert source["read"] == sum(source["events"].values()) + sum(source["left_out"].values())
    assert set(source["left_out"]) == {"lttng_statedump_process_state"}
    for kind in ("syscall", "irq", "softirq"):
        assert _spans(before, kind) == _spans(after, kind)
    never = before.intervals.groupby("track")["name"].transform(lambda names: "running" not in set(names))
    waits = replace(before, intervals=before.intervals[never & (before.intervals["kind"] == "state")])
    assert _spans(before, "range") + _spans(waits, "state") == _spans(after, "range")  # no CPU is known of those
    assert _spans(before, "state", "running") - _spans(after, "state", "running") == Counter()
    assert _wakers(before) == _wakers(after)
    assert len({waker for *_, waker in _wakers(before)}) > 5
    processes = [dict(zip(one.tracks["tid"], one.tracks["pid"], strict=True)) for one in (before, after)]
    known = {tid: pid for tid, pid in processes[0].items() if not (pd.isna(tid) or pd.isna(pid))}
    assert any(tid != pid for tid, pid in known.items())
    assert known == {tid: processes[1][tid] for tid in known}


def _wakers(timeline: Timeline) -> Counter:
    own = timeline.instants[timeline.instants["kind"] == "wakeup"]
    tids = timeline.tracks.set_index("track")["tid"]
    return Counter(zip(own["t_ns"], own["track"].map(tids), own["value"], strict=True))


def test_a_thread_stays_in_its_process_and_a_waker_is_who_woke(tmp_path):
    making = Making()
    making.track("cpu", "cpu0", cpu=0)
    one, other = (making.track("thread", name, pid=100, tid=tid) for name, tid in (("one", 101), ("other", 102)))
    for track, cpu, begin, end in ((one, 0, 0, 50), (other, 1, 20, 40)):
        making.intervals(t0_ns=begin, t1_ns=end, track=track, kind="state", name="running", cpu=cpu)
    making.intervals(t0_ns=40, t1_ns=60, track=other, kind="state", name="blocked", detail="futex")
    for t, waker, name in ((20, 101.0, "one"), (30, 999.0, "stranger"), (35, float("nan"), "interrupt")):
        making.instants(t_ns=t, track=other, kind="wakeup", name="woken", cpu=1, value=waker, detail=name)
    making.instants(t_ns=60, track=other, kind="exit", name="exited", cpu=1)
    making.instants(t_ns=50, track=one, kind="exit", name="exited", cpu=0)
    making.instants(t_ns=45, track=0, kind="lost", name="lost", cpu=0, value=7.0)
    making.instants(t_ns=49, track=0, kind="lost", name="lost", cpu=0)
    making.instants(t_ns=33, track=one, kind="fault", name="page fault", detail="user")
    write(making.made(), tmp_path / "a")
    done = subprocess.run(
        ["babeltrace2", "--fields=", "--clock-cycles", "--no-delta", str(tmp_path / "a")],
        check=True,
        capture_output=True,
        text=True,
    )
    found = [each for each in map(EVENT.match, done.stdout.splitlines()) if each]
    context = re.compile(r"\{ tid = (\d+), pid = (\d+), procname = \"(\w+)\" \}")
    wakes = [(int(each[3]), *context.search(each[4]).groups()) for each in found if each[2] == "sched_waking"]
    assert wakes == [(0, "101", "100", "one"), (1, "999", "999", "stranger"), (1, "0", "0", "swapper")]
    assert all("target_cpu = 1" in each[4] for each in found if each[2] == "sched_waking")
    switches = [each[4] for each in found if each[2] == "sched_switch"]
    assert {context.search(each).groups() for each in switches} == {
        ("0", "0", "swapper"), ("101", "100", "one"), ("102", "100", "other")
    }  # fmt: skip
    states = {re.search(r"prev_tid = (\d+)", each)[1]: re.search(r"prev_state = (\d+)", each)[1] for each in switches}
    assert states == {"0": "0", "101": "32", "102": "1"}
    assert [int(each[3]) for each in found if "page_fault_user" in each[2]] == [0], "where its thread ran"
    assert re.findall(r"discarded (\d+) event", " ".join(done.stderr.split())) == ["8"]  # of one the number is unknown
    after = index.read(tmp_path / "a", index.importer_of(tmp_path / "a"))
    assert after.about["sources"][0]["lost"] == 8


def test_a_trace_without_cpus_has_no_stream_of_the_kernel(tmp_path):
    before = index.read(DATA / "strace.txt", index.importer_of(DATA / "strace.txt"))
    write(before, tmp_path / "a")
    assert not (tmp_path / "a" / "kernel").exists()
    calls = before.intervals[before.intervals["kind"] == "syscall"]
    events = events_of(tmp_path / "a" / "ust")
    assert sum(name == "castmates:syscall_begin" for _, name, _, _ in events) == len(calls)


def _spans(timeline: Timeline, kind: str, name: str = "") -> Counter:
    own = timeline.intervals[timeline.intervals["kind"] == kind]
    own = own[own["name"] == name] if name else own
    tids = timeline.tracks.set_index("track")["tid"].fillna(-1)
    return Counter(zip(own["t0_ns"], own["t1_ns"], own["track"].map(tids), own["name"], strict=True))


def test_a_real_trace_of_lttng_is_read():
    timeline = index.read(DATA / "lttng", index.importer_of(DATA / "lttng"))
    events = events_of(DATA / "lttng")
    assert timeline.about["sources"][0]["read"] == len(events) == 42
    steps = timeline.intervals[timeline.intervals["name"] == "job:step"]
    assert sorted(steps["t0_ns"]) == [each[0] for each in events if each[1] == "job:step_begin"]
    assert sorted(steps["t1_ns"]) == [each[0] for each in events if each[1] == "job:step_end"]
    threads = timeline.tracks[timeline.tracks["kind"] == "thread"]
    assert sorted(threads["tid"]) == sorted({int(re.search(r"vtid = (\d+)", each[3])[1]) for each in events})
    [pair] = timeline.about["clocks"]
    assert pair["real_ns"] > 1_700_000_000 * 10**9


@pytest.mark.parametrize("size", [0, 10, 700])
def test_a_stream_that_was_cut_is_a_sentence(tmp_path, size):
    write(made(events=300), tmp_path / "a")
    stream = tmp_path / "a" / "kernel" / "channel0_0"
    stream.write_bytes(stream.read_bytes()[:size])
    if size == 0:  # an empty stream is a whole one
        assert len(index.read(tmp_path / "a", index.importer_of(tmp_path / "a")).intervals)
        return
    with pytest.raises(CastmatesError, match="babeltrace2 cannot read this to its end"):
        index.read(tmp_path / "a", index.importer_of(tmp_path / "a"))


def test_metadata_that_are_damaged_are_a_sentence(tmp_path):
    write(made(events=300), tmp_path / "a")
    file = tmp_path / "a" / "kernel" / "metadata"
    file.write_text(file.read_text().replace("stream {", "stram {", 1))
    with pytest.raises(CastmatesError, match="cut or damaged"):
        index.read(tmp_path / "a", index.importer_of(tmp_path / "a"))


def test_awkward_words_and_moments_survive(tmp_path):
    making = Making()
    thread = making.track("thread", 'na"me\\', pid=1, tid=2)
    words = ['quo"te', "back\\slash", "line\nend", "b\u00e9", "{ x = 1 }", ""]
    making.intervals(t0_ns=[5] * 6, t1_ns=[5] * 6, track=thread, kind="odd kind", name=words)  # all at one moment
    write(making.made(), tmp_path / "a")
    events = events_of(tmp_path / "a")
    assert Counter(each[1] for each in events) == {"castmates:odd_kind_begin": 6, "castmates:odd_kind_end": 6}
    after = index.read(tmp_path / "a", index.importer_of(tmp_path / "a"))
    assert len(after.intervals) == 6


def test_a_folder_that_is_not_ours_is_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_text("x")
    with pytest.raises(CastmatesError, match="give another --output"):
        write(made(events=50), tmp_path / "a")
    assert (tmp_path / "a" / "thesis.tex").read_text() == "x"
