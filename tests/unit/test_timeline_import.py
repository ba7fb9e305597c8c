"""Traces of other programs: every event of the source is used or left out by name, in order, and properly nested."""

import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.timeline import converting as index
from castmates.timeline.model import Timeline
from castmates.traces.nesting import fitted, pairs
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.trace_maker import write_trace

DATA = Path(__file__).parent.parent / "data" / "imports"
TRACES = Path(__file__).parent.parent / "data" / "traces"
TEXTS = ("strace.txt", "strace-of-day.txt", "ftrace.txt", "trace-cmd.txt", "perf-script.txt")
SWITCH = re.compile(
    r"\[(\d+)\].* (\d+)\.(\d+): sched_switch: prev_comm=.* prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+) "
)


def imported(path: Path) -> Timeline:
    return index.read(path, index.importer_of(path))


def check(timeline: Timeline) -> None:
    """Events read are those used and those left out, and the intervals of each track and kind do not cross."""
    for source in timeline.about["sources"]:
        assert source["read"] == sum(source["events"].values()) + sum(source["left_out"].values())
        assert min([*source["events"].values(), *source["left_out"].values()]) > 0
    for table, column in (("intervals", "t0_ns"), ("instants", "t_ns"), ("samples", "t_ns")):
        assert timeline.table(table)[column].is_monotonic_increasing
    for _, own in timeline.intervals.groupby(["track", "kind"], observed=True):
        open_: list[int] = []
        for begin, end, depth in own.sort_values(["t0_ns", "t1_ns", "depth"], ascending=[True, False, True])[
            ["t0_ns", "t1_ns", "depth"]
        ].itertuples(index=False):
            while open_ and open_[-1] <= begin:
                open_.pop()
            assert begin <= end <= min(open_, default=end)
            if end > begin:
                assert depth == len(open_)
                open_.append(end)


@pytest.mark.parametrize("name", [*TEXTS, "strace-ff"])
def test_every_event_is_used_or_left_out_by_name(name):
    timeline = imported(DATA / name)
    check(timeline)
    files = [DATA / name] if name != "strace-ff" else sorted((DATA / name).iterdir())
    lines = [line for file in files for line in file.read_text().splitlines() if line and line[0] != "#"]
    assert timeline.about["sources"][0]["read"] == len([line for line in lines if not line.startswith("cpus=")])
    assert len(timeline.intervals) + len(timeline.instants) > 40


def test_lines_may_end_as_those_of_another_system(tmp_path):
    (tmp_path / "strace.txt").write_bytes((DATA / "strace.txt").read_bytes().replace(b"\n", b"\r\n"))
    ours, theirs = imported(DATA / "strace.txt"), imported(tmp_path / "strace.txt")
    assert ours.intervals.equals(theirs.intervals)
    assert ours.about["sources"][0]["left_out"] == theirs.about["sources"][0]["left_out"]


def test_calls_of_strace_have_their_times_values_and_errors():
    timeline = imported(DATA / "strace.txt")
    text = (DATA / "strace.txt").read_text().splitlines()
    calls = timeline.intervals[timeline.intervals["kind"] == "syscall"]
    moments = timeline.instants[timeline.instants["kind"] == "syscall"]  # exit does not return, and has no duration
    begun = Counter(found[1] for line in text if (found := re.match(r"\d+ [\d.]+ (\w+)\(", line)))
    assert Counter(calls["name"]) + Counter(moments["name"]) == begun
    access = calls[calls["name"] == "access"].iloc[0]
    assert (access["t0_ns"], access["t1_ns"]) == (1795757572259794000, 1795757572259803000)
    assert (access["value"], access["detail"]) == (-1, "ENOENT")
    resumed = calls[(calls["name"] == "futex") & (calls["t0_ns"] == 1795757572265829000)].iloc[0]
    assert resumed["t1_ns"] - resumed["t0_ns"] == 32_963_000  # as strace timed it itself
    ends = timeline.instants[timeline.instants["kind"] == "exit"]["name"]
    assert Counter(ends) == {"exited with 0": 3, "exited with 3": 1}
    assert timeline.about["imported"]["clock"] == "CLOCK_REALTIME"


def test_a_call_without_a_result_lasts_until_its_thread_ends(tmp_path):
    file = tmp_path / "a"
    file.write_text(
        "7 1700000010.0 read(3,  <unfinished ...>\n8 1700000010.00001 getpid() = 7 <0.000001>\n"
        "8 1700000010.00002 <... write resumed>) = 1 <0.000002>\n7 1700000010.5 +++ killed by SIGKILL +++\n"
    )
    timeline = imported(file)
    check(timeline)
    read = timeline.intervals[timeline.intervals["name"] == "read"].iloc[0]
    assert (read["t1_ns"] - read["t0_ns"], read["detail"]) == (500_000_000, "did not return")
    assert timeline.about["sources"][0]["left_out"] == {"resumptions without a beginning": 1}


def test_a_trace_of_strace_that_passes_midnight_goes_on(tmp_path):
    file = tmp_path / "a"
    file.write_text("7 23:59:59.900000 getpid() = 7 <0.1>\n7 00:00:00.100000 getppid() = 1 <0.1>\n")
    begin = imported(file).intervals["t0_ns"]
    assert begin.diff().iloc[1] == 200_000_000


def running(text: str) -> dict[int, list[tuple[int, int]]]:
    """When each thread ran, by the switches alone, one after the other."""
    since: dict[int, int] = {}
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, seconds, fraction, left, _, came in SWITCH.findall(text):
        t = int(seconds) * 10**9 + int(fraction) * 1000
        if int(left) in since:
            found[int(left)].append((since.pop(int(left)), t))
        since[int(came)] = t
    return {tid: [span for span in spans if span[1] > span[0]] for tid, spans in found.items() if tid}


def test_threads_run_when_the_switches_say_so():
    text = (DATA / "ftrace.txt").read_text()
    timeline = imported(DATA / "ftrace.txt")
    tids = timeline.tracks.set_index("track")["tid"]
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    first = min(int(states["t0_ns"].min()), int(timeline.instants["t_ns"].min()))
    for tid, spans in running(text).items():
        own = states[(states["track"].map(tids) == tid) & (states["name"] == "running")]
        ours = set(own[["t0_ns", "t1_ns"]].itertuples(index=False, name=None))
        assert set(spans) <= ours
        more = ours - set(spans)  # what ran at the beginning, and at the end
        assert all(begin <= first + 10**9 for begin, _ in more)
        assert len(more) <= 2
    blocked = states[states["name"] == "blocked"]
    assert {"futex", "sleep"} <= set(blocked["detail"])
    waiting = states[states["name"].isin(["runnable", "preempted"])]
    assert (waiting["detail"] != "").mean() > 0.8
    child = states[states["track"].map(tids) == 12249].sort_values("t0_ns")
    assert (child["t0_ns"].to_numpy()[1:] == child["t1_ns"].to_numpy()[:-1]).all()  # a chain without gaps


def test_wake_ups_have_the_number_of_the_waker():
    text = (DATA / "ftrace.txt").read_text()
    line = re.compile(r"-(\d+) +\( *[\d-]+\) \[\d+\] \S+ (\d+)\.(\d+): sched_waking: comm=.* pid=(\d+) ")
    timeline = imported(DATA / "ftrace.txt")
    wakes = timeline.instants[timeline.instants["kind"] == "wakeup"]
    woken = wakes["track"].map(timeline.tracks.set_index("track")["tid"])
    expected = Counter((int(s) * 10**9 + int(us) * 1000, int(pid), int(by)) for by, s, us, pid in line.findall(text))
    assert len(expected) > 50
    assert expected - Counter(zip(wakes["t_ns"], woken, wakes["value"], strict=True)) == Counter()


def test_threads_that_end_have_an_end():
    text = (DATA / "ftrace.txt").read_text()
    timeline = imported(DATA / "ftrace.txt")
    ends = timeline.instants[timeline.instants["kind"] == "exit"]
    gone = re.findall(r"prev_pid=(\d+) prev_prio=\d+ prev_state=[XZx]", text)
    assert sorted(ends["track"].map(timeline.tracks.set_index("track")["tid"])) == sorted(map(int, gone))
    assert gone


def test_marks_of_programs_become_ranges_and_samples():
    timeline = imported(DATA / "ftrace.txt")
    ranges = timeline.intervals[timeline.intervals["kind"] == "range"]
    text = (DATA / "ftrace.txt").read_text()
    notes = timeline.instants[timeline.instants["kind"] == "annotation"]["name"]  # the last ones have no end
    assert Counter(ranges["name"]) + Counter(name.removesuffix(" begins") for name in notes) == Counter(
        re.findall(r"B\|\d+\|(step \d)", text)
    )
    assert len(ranges) == len(re.findall(r": E\|", text)) > 5
    assert len(timeline.samples) == len(re.findall(r"C\|\d+\|batches", text))


def test_the_short_form_of_trace_cmd_means_the_same(tmp_path):
    text = (DATA / "ftrace.txt").read_text()
    short = re.sub(
        r"prev_comm=(.*) prev_pid=(\d+) prev_prio=(\d+) prev_state=(\S+) ==> "
        r"next_comm=(.*) next_pid=(\d+) next_prio=(\d+)",
        r"\1:\2 [\3] \4 ==> \5:\6 [\7]",
        text,
    )
    assert short != text
    (tmp_path / "short").write_text(short)
    ours, other = imported(DATA / "ftrace.txt"), imported(tmp_path / "short")
    assert ours.intervals.equals(other.intervals)
    assert ours.tracks.equals(other.tracks)


def test_lost_events_are_counted(tmp_path):
    lines = (DATA / "ftrace.txt").read_text().splitlines()
    file = tmp_path / "a"
    file.write_text("\n".join([*lines[:300], "CPU:1 [LOST 17 EVENTS]", *lines[300:]]))
    timeline = imported(file)
    check(timeline)
    lost = timeline.instants[timeline.instants["kind"] == "lost"].iloc[0]
    assert (lost["value"], lost["cpu"]) == (17, 1)
    assert timeline.about["sources"][0]["lost"] == 17
    assert timeline.instants["t_ns"].min() < lost["t_ns"] < timeline.instants["t_ns"].max()


LOSSES = """\
 a-1 [000] d..2. 1.000010: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
 c-3 [001] d..2. 1.000020: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=d next_pid=4 next_prio=120
 d-4 [001] d..2. 1.000030: sched_switch: prev_comm=d prev_pid=4 prev_prio=120 prev_state=R ==> next_comm=e next_pid=5 next_prio=120
CPU:0 {}
 b-2 [000] d..2. 1.000090: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120
 a-1 [000] d..2. 1.000095: sched_waking: comm=c pid=3 prio=120 target_cpu=001
 e-5 [001] d..2. 1.000100: sched_switch: prev_comm=e prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120
"""  # noqa: E501


@pytest.mark.parametrize(
    ("line", "number"), [("[LOST 7 EVENTS]", 7), ("[204600 EVENTS DROPPED]", 204600), ("[EVENTS DROPPED]", None)]
)
def test_no_state_reaches_over_lost_events(tmp_path, line, number):
    """From 10 µs on CPU 0 shows nothing until 90 µs."""
    (tmp_path / "a").write_text(LOSSES.format(line))
    timeline = imported(tmp_path / "a")
    check(timeline)
    [lost] = timeline.instants[timeline.instants["kind"] == "lost"].to_dict("records")
    assert (lost["value"] if number else None) == number
    assert np.isnan(lost["value"]) == (number is None)
    assert timeline.about["sources"][0]["lost"] == (number or 0)
    assert any("did not count the events" in each for each in timeline.about["missing"]) == (number is None)
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    names = states["track"].map(timeline.tracks.set_index("track")["name"])
    us = [(states[name] - 10**9) // 1000 for name in ("t0_ns", "t1_ns")]
    assert set(zip(names, states["name"], *us, strict=True)) == {
        ("a", "running", 90, 100),  # its wait from 10 on: anything may have ended it
        ("b", "blocked", 90, 100),  # it left at 90, and so it ran at the end of the gap, but perhaps not always
        ("c", "running", 10, 20),
        ("c", "blocked", 90, 95),  # woken after the gap
        ("c", "runnable", 95, 100),
        ("d", "running", 20, 30),  # preempted in the gap: it may have gone on on CPU 0
        ("e", "running", 30, 100),  # on the other CPU
    }


def test_a_profile_has_all_its_events(tmp_path):
    events = [(0, 9_000_000, "castmates_step"), (1_000_000, 5_000_000, "a/b:MatMul"), (2_000_000, 3_000_000, "Inner")]
    write_trace(tmp_path / "host.xplane.pb", {"worker": events}, 1_700_000_000 * 10**9)
    timeline = imported(tmp_path)
    check(timeline)
    rows = timeline.intervals
    assert Counter(rows["kind"]) == {"step": 1, "operation": 1, "call": 1}
    operation = rows[rows["kind"] == "operation"].iloc[0]
    assert (operation["name"], operation["detail"]) == ("a/b", "MatMul")
    assert operation["t1_ns"] - operation["t0_ns"] == 4000
    assert rows["t0_ns"].min() >= 1_700_000_000 * 10**9


@pytest.mark.parametrize("name", ["jax", "strange_jax"])
def test_a_real_profile_of_jax_is_read(tmp_path, name):
    (tmp_path / "a.xplane.pb").write_bytes(gzip.decompress((TRACES / f"{name}.xplane.pb.gz").read_bytes()))
    timeline = imported(tmp_path / "a.xplane.pb")
    check(timeline)
    rows = timeline.intervals
    assert len(rows) == timeline.about["sources"][0]["read"] > 50
    assert {"step", "operation", "call"} == {*rows["kind"]}


def test_a_profile_of_jax_has_the_steps_and_operations_that_another_reader_finds(tmp_path):
    known = json.loads((TRACES / "strange_jax.json").read_text())
    (tmp_path / "a.xplane.pb").write_bytes(gzip.decompress((TRACES / "strange_jax.xplane.pb.gz").read_bytes()))
    rows = imported(tmp_path / "a.xplane.pb").intervals
    assert sorted(rows.loc[rows["kind"] == "step", "value"]) == known["steps"]
    operations = rows[rows["kind"] == "operation"]
    names = operations["detail"].astype("str") + " " + operations["name"].astype("str")
    took = (operations["t1_ns"] - operations["t0_ns"]).groupby(names)
    assert took.size().to_dict() == {name: calls for name, (calls, _) in known["operations"].items()}
    for name, (calls, picoseconds) in known["operations"].items():
        assert took.sum()[name] == pytest.approx(picoseconds / 1000, abs=calls)


def test_a_real_trace_of_pytorch_is_read():
    file = TRACES / "torch.pt.trace.json.gz"
    timeline = imported(file)
    check(timeline)
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert timeline.about["sources"][0]["read"] == len(events)
    assert len(timeline.intervals) == sum(event["ph"] == "X" for event in events)
    assert (timeline.intervals["kind"] == "operation").sum() == sum(event.get("cat") == "cpu_op" for event in events)
    memory = [event["args"]["Total Allocated"] for event in events if event["name"] == "[memory]"]
    assert sorted(timeline.samples["value"]) == sorted(memory)
    assert set(timeline.samples["name"]) == {"allocated_bytes cpu"}
    numbers = timeline.intervals.groupby("t0_ns")["value"].agg(set)  # an operation and its gradient share one
    base = json.loads(gzip.decompress(file.read_bytes()))["baseTimeNanoseconds"]
    links = defaultdict(dict)
    for event in events:
        if event.get("cat") == "fwdbwd":
            links[event["id"]][event["ph"]] = numbers[base + round(1000 * event["ts"])]
    assert len(links) == 24
    assert all({each for each in link["s"] & link["f"] if each == each} for link in links.values())


SHAPES = {"Input Dims": [[8, 3], [], []], "Input type": ["float", "long int", "Scalar"]}


@pytest.mark.parametrize("packed", [False, True])
def test_a_list_of_events_is_enough(tmp_path, packed):
    thread = {"pid": 1, "tid": 2}
    events = [
        {"ph": "B", "name": "a", "ts": 1, **thread},
        {"ph": "X", "name": "b", "ts": 2, "dur": 1.5, "args": SHAPES, **thread},
        {"ph": "E", "ts": 4, **thread},
        {"ph": "E", "ts": 5, **thread},
        {"ph": "C", "name": "c", "ts": 4, "args": {"x": 1, "y": 2.5}, **thread},
        {"ph": "s", "id": 1, "ts": 4, **thread},
        {"ph": "X", "name": "never", "ts": 6, "dur": -5, **thread},
        {"ph": "X", "name": "never", "ts": float("inf"), "dur": 1, **thread},
    ]
    content = json.dumps(events).encode()
    file = tmp_path / ("a.json.gz" if packed else "a.json")
    file.write_bytes(gzip.compress(content) if packed else content)
    timeline = imported(file)
    check(timeline)
    assert list(timeline.intervals["name"]) == ["a", "b"]
    assert list(timeline.intervals["depth"]) == [0, 1]
    assert list(timeline.intervals["detail"]) == ["", "float[8,3]; long int[]"]
    assert list(timeline.intervals["t1_ns"] - timeline.intervals["t0_ns"]) == [3000, 1500]
    assert dict(zip(timeline.samples["name"], timeline.samples["value"], strict=True)) == {"c x": 1, "c y": 2.5}
    assert timeline.about["sources"][0]["left_out"] == {
        "beginnings of flows": 1,
        "ends without begin": 1,
        "events whose time is no number, or that end before they begin": 2,
    }


def sources(folder: Path) -> dict[str, bytes]:
    """A small file of each format that is read without another program."""
    found = {name: "\n".join((DATA / name).read_text().splitlines()[:40]).encode() for name in TEXTS}
    write_trace(folder / "a.xplane.pb", {"worker": [(0, 9000, "castmates_step"), (10, 50, "a/b:MatMul")]}, 10**18)
    found["a.xplane.pb"] = (folder / "a.xplane.pb").read_bytes()
    found["a.json"] = json.dumps([{"ph": "X", "name": "b", "ts": 2, "dur": 1, "pid": 1, "tid": 1}] * 5).encode()
    return found


@pytest.mark.parametrize("name", [*TEXTS, "a.xplane.pb", "a.json"])
def test_a_broken_file_is_a_sentence(tmp_path, name):
    """Cut and altered at many places: it is read, with what is left of it, or refused in one sentence."""
    content, dice = sources(tmp_path)[name], np.random.default_rng(1)
    file, refusals = tmp_path / f"broken-{name}", []
    for turn in range(8):
        broken = bytearray(content)
        if turn % 2:
            for place in dice.integers(0, len(broken), 1 + turn // 2):
                broken[place] = dice.integers(0, 256)
        else:
            broken = broken[: int(dice.integers(0, len(broken)))]
        file.write_bytes(bytes(broken))
        try:
            check(imported(file))
        except CastmatesError as problem:
            refusals.append(str(problem))
    assert all(str(file) in each and "\n" not in each for each in refusals)
    assert refusals or name in TEXTS


FOREIGN = [
    b"", b"\x7fELF\2\1\1" + bytes(100), b"7 getpid() = 7\n", b"[" * 2000 + b'{"ph":',
    b'[{"ph": "X", "ts": "soon", "name": "a"}]', b"   t-12 [000] d..2. 1234567890: sched_switch: x\n",
]  # fmt: skip


def test_what_cannot_be_read_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    told = {}
    for content in FOREIGN:
        (tmp_path / "foreign").write_bytes(content)
        told[repr(content[:40])] = refusal(imported, tmp_path / "foreign")
    (tmp_path / "trace.dat").write_bytes(b"\x17\x08\x44tracing6\0\0\0")
    for thread in (7, 8):
        (tmp_path / f"s.{thread}").write_text("     0.000000 getpid() = 7\n")
    others = {
        "without babeltrace2": DATA / "lttng",
        "without trace-cmd": tmp_path / "trace.dat",
        "relative times": tmp_path / "s",
    }
    told |= {name: refusal(imported, file) for name, file in others.items()}
    folders = {str(tmp_path): "HERE", str(DATA): "DATA"}
    for folder, name in folders.items():
        told = {case: said.replace(folder, name) for case, said in told.items()}
    assert_as_before("imports-refused", told)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=60))
def test_begins_and_ends_pair_like_brackets(events):
    thread, begins = (np.array([event[place] for event in events], kind) for place, kind in ((0, np.int64), (1, bool)))
    expected, open_ = set(), defaultdict(list)
    for place, (of, is_begin) in enumerate(events):
        if is_begin:
            open_[of].append(place)
        elif open_[of]:
            expected.add((open_[of].pop(), place))
    found = pairs(thread, begins)
    assert set(zip(*(each.tolist() for each in found), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 10)), max_size=40))
def test_intervals_are_made_to_nest(rows):
    track, begin, length = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    _, end, cut = fitted(track, begin, begin + length)
    assert (end <= begin + length).all()
    assert cut == (end < begin + length).sum()
    for first in range(len(rows)):
        for second in range(len(rows)):
            if track[first] == track[second]:
                crosses = begin[first] < begin[second] < end[first] < end[second]
                assert not crosses
