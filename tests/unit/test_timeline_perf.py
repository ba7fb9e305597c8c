"""Recordings of perf as timelines: chains of states with known answers, what is missing, and files that are broken."""

import gzip
import struct
from contextlib import suppress
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.timeline.model import Making, Registry
from castmates.timeline.perf.load import add_perf
from castmates.timeline.perf.reading import read
from tests.unit.perf_maker import EVENTS, MEMBER, OTHER, PerfData, ping_pong
from tests.unit.snapshots import assert_as_before, refusal

START = 10**12
A, B = MEMBER, MEMBER + 1
FUTEX, READ, SLEEP, EXIT = 202, 0, 230, 60
S, D, R, DEAD = 1, 2, 0, 0x10


def loaded(made, tmp_path, span=None, members=None, ended_early=False):
    file = tmp_path / "perf.data"
    made.write(file)
    making = Making()
    times = None if span is None else tuple(START + each for each in span)
    found = add_perf(making, Registry(making), file, members or {MEMBER: "lead@0"}, times, ended_early)
    return found, making.made()


def states_of(timeline, tid):
    """Each state of a thread: begin, end, name, CPU, detail."""
    return [row for kind, row in intervals_of(timeline, "thread", tid) if kind == "state"]


def intervals_of(timeline, kind, number):
    tracks = timeline.tracks
    column = {"thread": "tid", "cpu": "cpu"}[kind]
    track = tracks.loc[(tracks["kind"] == kind) & (tracks[column] == number), "track"]
    rows = timeline.intervals[timeline.intervals["track"].isin(track)]
    for row in rows.itertuples():
        cpu = None if pd.isna(row.cpu) else int(row.cpu)
        yield row.kind, (row.t0_ns - START, row.t1_ns - START, row.name, cpu, row.detail)


def story():
    """A holds a lock and is preempted by somebody else's program; B waits for the lock, and then for a disk."""
    made = PerfData()
    made.name(A, "main")
    made.name(B, "worker")
    made.switch(10, A, 0, out=False)
    made.switch(15, B, 1, out=False)
    made.call(20, B, 1, FUTEX)
    made.leave(30, B, 1, S, 0)  # the CPU is idle then
    made.leave(40, A, 0, R, OTHER, "batch")
    made.switch(70, A, 0, out=False)
    made.wake(80, B, 0, by=A, to=0)
    made.leave(90, A, 0, R, B)
    made.switch(91, B, 0, out=False)
    made.call(95, B, 0, FUTEX, 0)
    made.call(100, B, 0, READ)
    made.leave(110, B, 0, D, A)
    made.switch(111, A, 0, out=False)
    made.wake(150, B, 0, by=A, flags=0x08, to=0)
    made.leave(160, A, 0, R, B)
    made.switch(162, B, 0, out=False)
    made.call(170, B, 0, READ, 4096)
    made.leave(180, B, 0, D, A)  # outside of any call: a page fault
    made.switch(181, A, 0, out=False)
    made.sample("page-faults", 190, A, 0, mode=2)
    made.leave(200, A, 0, DEAD, 0)
    return made


def test_a_story_with_known_states(tmp_path):
    found, timeline = loaded(story(), tmp_path)
    assert states_of(timeline, A) == [
        (10, 40, "running", 0, ""),
        (40, 70, "preempted", 0, "batch"),
        (70, 90, "running", 0, ""),
        (90, 111, "preempted", 0, "lead@0"),
        (111, 160, "running", 0, ""),
        (160, 181, "preempted", 0, "lead@0"),
        (181, 200, "running", 0, ""),  # and then it is dead: nothing follows
    ]
    assert states_of(timeline, B) == [
        (10, 15, "unknown", None, ""),  # until its first event
        (15, 30, "running", 1, ""),
        (30, 80, "blocked", None, "futex"),
        (80, 91, "runnable", 0, "lead@0"),
        (91, 110, "running", 0, ""),
        (110, 150, "blocked", None, "io"),
        (150, 162, "runnable", 0, "lead@0"),
        (162, 180, "running", 0, ""),
        (180, 201, "blocked", None, "fault"),
    ]
    assert found["switches"] == {"switches out": 7, "voluntary": 4, "involuntary": 3, "unclear": 0}
    assert found["lost"] == 0
    assert found["missing"] == {}
    deep = timeline.intervals[timeline.intervals["name"] == "blocked"]
    assert deep["value"].tolist() == [0, 1, 1]  # whether no signal would have ended it
    instants = timeline.instants
    moments = [(row.t_ns - START, row.kind, row.detail) for row in instants.itertuples()]
    assert moments == [
        (80, "wakeup", "lead@0"),
        (91, "migration", "cpu1->cpu0"),
        (150, "wakeup", "interrupt"),
        (190, "fault", "user"),
    ]
    calls = [row for kind, row in intervals_of(timeline, "thread", B) if kind == "syscall"]
    assert calls == [(20, 95, "futex", 1, ""), (100, 170, "read", 0, "")]
    turns = [row[:3] + row[4:] for _, row in intervals_of(timeline, "cpu", 0)]
    assert turns[:3] == [(10, 40, "lead@0", "main"), (40, 70, "others or idle", "batch"), (70, 90, "lead@0", "main")]


@pytest.mark.parametrize(("kind", "time"), [(7, 5), (4, 31)], ids=["born", "ended"])
def test_threads_of_nobody_have_no_track_and_a_members_children_are_its_own(tmp_path, kind, time):
    """Also those that were born while events were off, and that nobody saw alive: their end has their parent."""
    made = PerfData()
    made.task(kind, time, 150, MEMBER, 150, MEMBER)
    made.switch(10, 150, 0, out=False, pid=150)
    made.switch(12, OTHER, 1, out=False, pid=OTHER)
    made.switch(30, 150, 0, out=True, pid=150)
    made.switch(32, OTHER, 1, out=True, pid=OTHER)
    found, timeline = loaded(made, tmp_path)
    assert timeline.tracks["tid"].dropna().tolist() == [150]
    assert timeline.tracks.loc[timeline.tracks["tid"] == 150, "member"].tolist() == ["lead@0"]
    assert (found["threads"], [*found["threads_of"].values()]) == (1, [1])


def own_switches():
    """Blocked, and then perhaps in the queue: who ran instead is not known."""
    made = PerfData(events=("dummy:u",))
    for time, cpu, out, preempted in [
        (10, 0, 0, 0),
        (20, 0, 1, 1),
        (30, 0, 0, 0),
        (40, 0, 1, 0),
        (50, 1, 0, 0),
        (60, 1, 1, 0),
    ]:
        made.switch(time, A, cpu, out=bool(out), preempted=bool(preempted))
    return made


def whole_cpus():
    made = PerfData(events=("sched:sched_switch", "sched:sched_waking"))
    fields = {"prev_pid": OTHER, "prev_state": R, "next_pid": A}
    made.sample("sched:sched_switch", 10, OTHER, 0, fields, pid=OTHER)
    made.sample("sched:sched_switch", 30, A, 0, {"prev_pid": A, "prev_state": S, "next_pid": OTHER})
    made.sample("sched:sched_waking", 40, OTHER, 1, {"pid": A, "target_cpu": 0}, pid=OTHER)
    made.sample("sched:sched_switch", 55, OTHER, 0, fields, pid=OTHER)
    made.sample("sched:sched_switch", 60, A, 0, {"prev_pid": A, "prev_state": R, "next_pid": OTHER})
    return made


def in_a_container():
    """The scheduler's own numbers are others than those that the container sees."""
    made = PerfData()
    made.switch(10, A, 0, out=False)
    made.sample("sched:sched_switch", 20, A, 0, {"prev_pid": 7000, "prev_state": S, "next_pid": 0})
    made.switch(21, A, 0, out=True)
    made.sample("sched:sched_waking", 30, B, 1, {"pid": 7000, "target_cpu": 0})
    made.switch(40, A, 0, out=False)
    made.switch(50, A, 0, out=True)
    return made


def lost_at_no_time():
    made = PerfData()
    made.switch(10, A, 0, out=False)
    made.leave(20, A, 0, S, 0)
    made.lost_by_event(30, 0, 5)
    return made


def lost():
    """No state is claimed where events were lost."""
    made = PerfData()
    made.switch(10, A, 0, out=False)
    made.leave(20, A, 0, S, 0)
    made.sample("page-faults", 25, B, 0, mode=2)  # the last before the loss
    made.sample("page-faults", 57, B, 1, mode=2)  # through another CPU's buffer
    made.lost(60, 0, 17)
    made.leave(80, A, 0, S, 0)  # so it ran before, at least since the loss
    made.wake(90, A, 0, by=B)
    made.switch(95, A, 0, out=False)
    made.leave(99, A, 0, S, 0)
    return made


def silence():
    """It means something where all events were on."""
    made = PerfData()
    made.wake(30, B, 0, by=A)
    made.leave(40, A, 0, S, B)  # it ran, then; and the other was blocked until it was woken
    made.switch(41, B, 0, out=False)
    made.call(45, B, 0, FUTEX, 0)
    return made


def frozen_calls():
    """A call that goes on after a freeze keeps its name."""
    restart, poll = 219, 7
    made = PerfData()
    for time, number, ret in [(10, FUTEX, -516), (30, restart, -516), (50, restart, 0), (70, READ, 1)]:
        made.call(time, B, 0, number)
        made.leave(time + 1, B, 0, S, 0)
        made.switch(time + 15, B, 0, out=False)
        made.call(time + 16, B, 0, number, ret)
    for time, number, ret in [(90, restart, 0), (95, poll, 0), (100, restart, -110)]:  # nothing to go on with
        made.call(time, B, 0, number)
        made.leave(time + 1, B, 0, S, 0)
        made.switch(time + 2, B, 0, out=False)
        made.call(time + 3, B, 0, number, ret)
    return made


SPANS = {own_switches: None, whole_cpus: None, in_a_container: None, lost_at_no_time: None, lost: None,
         silence: (0, 100), frozen_calls: (0, 200)}  # fmt: skip


def test_states_of_threads(tmp_path):
    """Each state, call and moment of both threads, and what is missing, in the file of words."""

    def told(made, span):
        found, timeline = loaded(made(), tmp_path, span)
        for name, tid in (("A", A), ("B", B)):
            yield from (f"{name} {row}" for row in intervals_of(timeline, "thread", tid))
        moments = timeline.instants[timeline.instants["kind"] != "exit"]
        yield from (f"{row.t_ns - START} {row.kind} {row.value} {row.detail}" for row in moments.itertuples())
        yield from (f"lost {found['lost']}", *found["missing"])

    assert_as_before("perf-states", {made.__name__: told(made, span) for made, span in SPANS.items()})


def whole_of(timeline):
    rows = timeline.intervals[timeline.intervals["kind"] == "whole"]
    assert set(rows["name"]) | set(rows["source"]) <= {"perf"}
    assert set(rows["track"]) <= set(timeline.tracks.loc[timeline.tracks["kind"] == "run", "track"])
    return [(begin - START, end - START) for begin, end in zip(rows["t0_ns"], rows["t1_ns"], strict=True)]


def test_stretches_are_whole_where_all_events_were_on_and_none_was_lost(tmp_path):
    made = PerfData()
    made.switch(10, A, 0, out=False)
    made.lost(60, 0, 17)
    made.switch(80, A, 0, out=True)
    _, timeline = loaded(made, tmp_path, span=(0, 100))
    assert whole_of(timeline) == [(0, 10), (60, 100)]
    _, timeline = loaded(made, tmp_path)
    assert whole_of(timeline) == [], "when events were switched on is not known"


def test_samples_of_counted_events_stand_for_their_period_and_what_is_held_back_is_told(tmp_path):
    misses, slots, other = (f"{name}/period={period}/D" for name, period in (("misses", 700), ("slots", 9), ("x", 5)))
    of_small_cores, of_programs = "cpu_atom/misses,period=700/D", "misses/period=30/uD"
    made = PerfData((*EVENTS, misses, slots, other, of_small_cores, of_programs))
    made.switch(10, A, 0, out=False)
    for time, name in ((20, misses), (30, slots), (40, of_small_cores), (45, of_programs)):
        made.sample(name, time, A, 0)
    made.sample(misses, 50, 901, 0, pid=900)  # of nobody
    made.held_back(60, slots)
    made.switch(80, A, 0, out=True)
    found, timeline = loaded(made, tmp_path, span=(0, 100))
    counts = timeline.instants[timeline.instants["kind"] == "count"]
    assert [(row.t_ns - START, row.name, row.value) for row in counts.itertuples(index=False)] == [
        (20, "misses", 700), (30, "slots", 9), (40, "misses", 700), (45, "misses:u", 30),
    ]  # fmt: skip
    about = [words for words, sources in found["missing"].items() if sources == ["counts"]]
    assert [("held slots back 1 times" in words, "No x was sampled" in words) for words in about] == [
        (True, False), (False, True),
    ]  # fmt: skip


def test_where_perf_ended_by_itself_no_state_is_claimed_behind_what_it_has_read(tmp_path):
    made = PerfData()
    made.switch(10, A, 0, out=False)
    made.switch(12, B, 1, out=False)
    made.emptied()
    made.leave(20, A, 0, S, 0)
    made.emptied()
    made.switch(30, A, 0, out=False)  # on CPU 1 something earlier may have been in the buffer, and is gone
    made.switch(35, A, 0, out=True)
    made.emptied()
    made.switch(50, A, 0, out=False)
    _, timeline = loaded(made, tmp_path, span=(0, 1000), ended_early=True)
    assert whole_of(timeline) == [(0, 21)]
    assert max(row[1] for tid in (A, B) for row in states_of(timeline, tid)) == 21
    _, timeline = loaded(made, tmp_path, span=(0, 1000))
    assert max(row[1] for row in states_of(timeline, A)) == 1000


def test_without_marks_of_perf_the_cpu_that_is_read_least_far_is_the_end(tmp_path):
    made = PerfData()
    made.switch(10, A, 0, out=False)
    made.switch(15, B, 1, out=False)
    made.switch(30, A, 0, out=True)
    _, timeline = loaded(made, tmp_path, span=(5, 1000), ended_early=True)
    assert whole_of(timeline) == [(5, 15)]
    _, timeline = loaded(made, tmp_path, span=(20, 1000), ended_early=True)
    assert timeline.intervals.empty, "nothing is sure of the recording"


def test_every_switch_leads_to_one_state_and_a_long_recording_keeps_its_chains(tmp_path):
    made, period, each = ping_pong(6)
    file, making = tmp_path / "perf.data", Making()
    written = made.write(file, repeats=500, period=period)
    found = add_perf(making, Registry(making), file, {MEMBER: "lead@0"})
    timeline = making.made()
    assert written == 500 * each
    assert sum(count for name, count in found["events"].items() if not name.startswith("system")) == written
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    for _, rows in states.groupby("track"):
        assert all(one == other for one, other in zip(rows["t1_ns"].iloc[:-1], rows["t0_ns"].iloc[1:], strict=True))
    assert (states["name"] == "blocked").sum() == found["switches"]["voluntary"] == 3000
    cpus = timeline.intervals[timeline.intervals["kind"] == "on_cpu"]
    for _, rows in cpus.groupby("track"):
        times = list(zip(rows["t0_ns"], rows["t1_ns"], strict=True))
        assert all(one[1] <= other[0] for one, other in pairwise(times))
    calls = timeline.intervals[timeline.intervals["kind"] == "syscall"]
    assert (calls["name"] == "write").sum() == 3000


BROKEN = [
    b"", b"\x7fELF" + bytes(200), gzip.compress(bytes(999), mtime=0), b"2ELIFREP" + bytes(200),
    b"PERFILE2" + struct.pack("<Q", 16),
    b"PERFILE2" + struct.pack("<8Q", 104, 144, 104, 144, 300, 0, 0, 0) + bytes(300),
]  # fmt: skip


def test_what_is_no_whole_recording_is_a_sentence(tmp_path):
    file, told = tmp_path / "perf.data", {"none": refusal(read, tmp_path / "none")}
    for number, content in enumerate(BROKEN):
        file.write_bytes(content)
        told[f"{number} {content[:8]!r}"] = refusal(read, file)
    made = PerfData(clock=0)
    made.switch(1, A, 0, out=False)
    told["another clock"] = refusal(loaded, made, tmp_path)
    assert_as_before("perf-refused", {name: said.replace(str(tmp_path), "HERE") for name, said in told.items()})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    file = tmp_path_factory.mktemp("perf") / "perf.data"
    story().write(file)
    return file.read_bytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.none() | st.integers(0, 20000),
    flips=st.lists(st.tuples(st.integers(0, 20000), st.integers(0, 255)), max_size=4),
)
def test_broken_files_are_a_sentence_or_a_whole_timeline(tmp_path, whole, cut, flips):
    content = bytearray(whole[: None if cut is None else cut % len(whole)])
    for place, value in flips:
        if content:
            content[place % len(content)] = value
    file, making = tmp_path / "perf.data", Making()
    file.write_bytes(content)
    with suppress(CastmatesError):
        add_perf(making, Registry(making), file, {MEMBER: "lead@0"})
        intervals = making.made().intervals
        assert (intervals["t1_ns"] >= intervals["t0_ns"]).all()
