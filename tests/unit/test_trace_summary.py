"""What traces come to, on timelines with known answers."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.findings.conditions import NOT_KNOWN
from castmates.analysis.findings.findings import findings
from castmates.analysis.timeline.seen import Trace, levels, merged, quantile_of_time
from castmates.analysis.timeline.summary import rows_of
from castmates.analysis.timeline.waits import pool_of
from castmates.results.columns.registry import written_by
from castmates.results.columns.study import frame
from castmates.results.finding_rules import rules_of
from castmates.timeline.model import Making, extent, start
from castmates.timeline.tables import write
from tests.unit.snapshots import assert_as_before
from tests.unit.timeline_maker import SCENES, SECOND, Thread, made, scripted

TRACE_TABLES = written_by("estimate_traces")

LEAD, OTHER = "job@0-1", "stream@2"


def rows(timeline, table="trace_summary"):
    trace = Trace(
        timeline.tracks, timeline.intervals, timeline.instants, timeline.samples, timeline.about, "job+stream"
    )
    return rows_of(trace)[table]


def one(timeline, table="trace_summary", **cells):
    (found,) = [row for row in rows(timeline, table) if cells.items() <= row.items()]
    return found


def turns(*states, **others):
    """Four threads that take turns on a CPU: one runs, three wait behind it."""
    return [Thread("job@0", f"worker/{number}", states, begins=float(number), **others) for number in range(4)]


CROWD = turns(("running", 1, ""), ("preempted", 3, "job@0"))


def test_every_table_has_the_columns_of_its_contract():
    made_of = rows_of(
        Trace(*(getattr(made(), name) for name in ("tracks", "intervals", "instants", "samples", "about")))
    )
    assert made_of.keys() == TRACE_TABLES.keys()
    for name, contract in TRACE_TABLES.items():
        assert made_of[name], name
        assert {*made_of[name][0]} == {*contract}, name


RUNS = [("running", 1, "")]
INSTEAD = [("running", 6, ""), ("preempted", 1, OTHER), ("runnable", 2, "kworker/0"), ("preempted", 1, "")]
BUSY = Thread(LEAD, "tf_Compute/1", [("running", 6, ""), ("blocked", 4, "futex")])
SIDE = Thread(LEAD, "python", [("blocked", 8, "futex"), ("running", 2, "")], cpu=1)
SCRIPTS = {
    "threads that share a CPU": CROWD,
    "who ran instead: a member, a program, or not known": [
        Thread(LEAD, "main", INSTEAD), Thread(OTHER, "stream", RUNS, cpu=2)
    ],
    "an antagonist that is frozen alone": [
        Thread(LEAD, "main", RUNS), Thread(OTHER, "stream", [("blocked", 1, "stop")], cpu=2)
    ],
    "waits": [Thread(LEAD, "main", [("running", 2, ""), ("blocked", 1, "futex"), ("runnable", 1, OTHER)])],
    "calls and faults, ten milliseconds a step": [
        Thread(LEAD, "main", RUNS, calls={"munmap": 2.0, "futex": 0.5}, faults=50, migrations=1)
    ],
    "a call while it waits, of the time on a CPU": [
        Thread(LEAD, "main", [("running", 1, ""), ("preempted", 9, "other")], calls={"munmap": 2.0})
    ],
    "three times as many faults beside": [
        Thread(LEAD, "main", RUNS, faults=each, scenes=[scene]) for each, scene in zip((10, 30), SCENES, strict=True)
    ],
    "a pool that is all busy while a CPU idles": [BUSY, SIDE],
    "a pool whose CPU another program takes": [
        Thread(LEAD, "tf_Compute", [("running", 5, ""), ("preempted", 5, "other")]), SIDE,
        Thread(LEAD, "x", [("runnable", 1, "other")], cpu=1),
    ],
    "an input that works alone": [
        Thread(LEAD, "python", [("running", 6, ""), ("blocked", 4, "futex")]),
        Thread(LEAD, "tf_data_map", [("blocked", 5, "futex"), ("running", 3, ""), ("blocked", 2, "io")], cpu=1),
    ],
}  # fmt: skip
ABOUT = ("study", "platform", "trace", "partition", "mix", "role", "cohort", "launch")


def told(timeline):
    """The rows of all tables, a line each, without what is not known."""
    for table in ("trace_summary", "trace_waits", "trace_pools", "trace_events"):
        for row in rows(timeline, table):
            known = {name: value for name, value in row.items() if name not in ABOUT and value == value and value != ""}
            words = (f"{value:.4g}" if isinstance(value, float) else value for value in known.values())
            yield f"{table}: " + ", ".join(f"{name} {word}" for name, word in zip(known, words, strict=True))


def test_known_timelines():
    assert_as_before("trace-tables", {name: told(scripted(threads)) for name, threads in SCRIPTS.items()})


def test_interrupts_on_a_members_cpus_are_its_own():
    timeline = scripted([Thread(LEAD, "main", [("running", 1, "")])])
    cpu = int(timeline.tracks.loc[timeline.tracks["kind"] == "cpu", "track"].iloc[0])
    begin = SECOND + SECOND // 2
    tick = pd.DataFrame(
        {"t0_ns": [begin], "t1_ns": begin + 8_000_000, "track": cpu, "kind": "softirq", "name": "NET_RX"}
    )
    intervals = pd.concat([timeline.intervals, tick.assign(depth=0)], ignore_index=True)
    timeline = replace(timeline, intervals=intervals)
    row = one(timeline, kind="alone")
    assert row["interrupts_share"] == pytest.approx(0.01)
    assert one(timeline, kind="corun")["interrupts_share"] == 0


def test_without_recordings_a_scene_counts_and_without_scenes_everything():
    timeline = made()
    assert {row["scene"] for row in rows(timeline)} == {*SCENES}
    without = replace(timeline, intervals=timeline.intervals[timeline.intervals["kind"] != "scene"])
    (row,) = [row for row in rows(without) if row["member"] == "lead@0"]
    assert row["scene"] == ""
    assert row["seconds"] > 1.9


def test_levels_are_those_of_counting_moment_by_moment():
    dice = np.random.default_rng(3)
    spans = [np.sort(dice.integers(0, 60, (8, 2)), axis=1) for _ in range(2)]
    within = (np.array([5, 30]), np.array([20, 55]))
    lasts, found = levels(within, *((each[:, 0], each[:, 1]) for each in spans))
    moments = [moment for begin, end in zip(*within, strict=True) for moment in range(begin, end)]
    slow = [tuple(int(((each[:, 0] <= moment) & (each[:, 1] > moment)).sum()) for each in spans) for moment in moments]
    assert lasts.sum() == len(moments)
    assert [tuple(column) for column, length in zip(found.T, lasts, strict=True) for _ in range(length)] == slow
    assert quantile_of_time(lasts, found[0], 0.99) == np.sort([each[0] for each in slow])[int(0.99 * len(slow))]
    assert [each.tolist() for each in merged([4, 0, 1], [6, 2, 3])] == [[0, 4], [3, 6]]


@pytest.mark.parametrize(
    ("thread", "pool"),
    [("tf_Compute/12", "tf_Compute"), ("worker 3", "worker"), ("OMP-7", "OMP"), ("python", "python"), ("7", "7")],
)
def test_threads_of_a_pool_differ_in_their_number_alone(thread, pool):
    assert pool_of(thread) == pool


RECORDED = {"scene": "alone", "kind": "alone", "sources": [{"name": "perf", "events": {"switches": 9}}]}
FAMILIES = {
    "scheduler": (["running", "queued_share", "queue_p99_us", "voluntary_per_s"], "sched:sched_switch"),
    "syscalls": (["memory_calls_share", "memory_calls_per_step"], "raw_syscalls:sys_enter"),
    "faults": (["faults_per_s", "faults_per_cpu_s"], "page-faults/period=1/"),
    "interrupts": (["interrupts_per_s", "interrupts_share"], "irq:irq_handler_entry"),
}


@pytest.mark.parametrize("lacking", FAMILIES)
@pytest.mark.parametrize("because", ["it was not asked for", "perf was not allowed to"])
def test_what_was_not_recorded_is_not_known_and_what_was_may_be_none(lacking, because):
    turn = [("running", 3, ""), ("blocked", 1, "futex"), ("runnable", 1, "idle")]
    thread = Thread(LEAD, "main", turn)
    asked = [each for each in FAMILIES if each != lacking or because.startswith("perf")]
    command = ["perf", "record", *(event for name, (_, event) in FAMILIES.items() if name != lacking)]
    scenes = [RECORDED | {"commands": {"perf": command}}]
    row = one(scripted([thread], {"filters": {"events": asked}, "scenes": scenes}), kind="alone")
    for family, (columns, _) in FAMILIES.items():
        assert [math.isnan(row[each]) for each in columns] == [family == lacking] * len(columns), family
    assert row["not_known"].endswith("not recorded")
    table = frame([row], TRACE_TABLES["trace_summary"])
    rules = {name: rule for name, rule in rules_of(None, None, ()).items()
             if rule.when[0].table == "trace_summary" and rule.when[0].number in FAMILIES[lacking][0]}  # fmt: skip
    for found in findings(rules, {"trace_summary": table}.get):
        assert (found.state, found.why) == (NOT_KNOWN, row["not_known"]) or found.rule.about == "mix"


def test_switches_alone_show_neither_who_ran_instead_nor_wakeups():
    """What a plain user may record: 0 % behind others would read as an idle machine."""
    turn = [("running", 2, ""), ("preempted", 2, "unknown"), ("blocked", 1, "unknown")]
    command = ["perf", "record", "--switch-events", "-e", "dummy:u", "-e", "page-faults/period=1/u"]
    about = {"filters": {"events": list(FAMILIES)}, "scenes": [RECORDED | {"commands": {"perf": command}}]}
    timeline = scripted([Thread(LEAD, "main", turn)], about)
    row, pool = one(timeline, kind="alone"), one(timeline, "trace_pools", kind="alone", pool="main")
    hidden = ("queued_own", "queued_members", "queued_others", "queued_idle", "wakeups_per_s", "queue_p99_us")
    assert all(math.isnan(row[each]) for each in hidden)
    assert math.isnan(pool["wakeups_per_s"])
    assert row["queued_share"] == pytest.approx(0.5)
    table = frame([row], TRACE_TABLES["trace_summary"])
    found = {each.name: each for each in findings(rules_of(None, None, ()), {"trace_summary": table}.get)}
    why = "who woke a thread and who ran instead of it were not recorded"
    for name in ("cpu-taken-by-others", "threads-wait-for-each-other"):
        assert (found[name].state, found[name].why) == (NOT_KNOWN, why)


def test_a_rule_is_not_known_for_the_reasons_of_its_own_number_alone():
    failed = {"name": "perf", "events": {}, "reason": "perf may not"}
    about = {"filters": {"events": list(FAMILIES)}, "scenes": [{"scene": "alone", "sources": [failed]}]}
    row = one(scripted([Thread(LEAD, "main", [("running", 1, "")])], about), kind="alone")
    table = frame([row], TRACE_TABLES["trace_summary"])
    found = {each.name: each.why for each in findings(rules_of(None, None, ()), {"trace_summary": table}.get)}
    assert found["threads-migrate"] == "the scheduler's events were not recorded"
    assert found["page-fault-storm"] == "the scheduler's events were not recorded; page faults were not recorded"
    assert found["allocator-calls"] == "the scheduler's events were not recorded; system calls were not recorded"
    assert found["remote-pages"] == "the row has no number", "perf is not what shows where memory lies"


def test_a_recording_that_perf_could_not_make_shows_nothing():
    failed = {"name": "perf", "events": {}, "reason": "perf may not"}
    about = {"filters": {"events": list(FAMILIES)}, "scenes": [{"scene": "alone", "sources": [failed]}]}
    row = one(scripted([Thread(LEAD, "main", [("running", 1, "")], faults=1)], about), kind="alone")
    assert all(math.isnan(row[each]) for columns, _ in FAMILIES.values() for each in columns)
    timeline = scripted([Thread(LEAD, "main", [("running", 1, "")])])
    scene = timeline.intervals[timeline.intervals["kind"] == "recording"].iloc[1:]
    whole = scene.assign(kind="whole", name="perf")  # of the other scene alone
    row = one(replace(timeline, intervals=pd.concat([timeline.intervals, whole], ignore_index=True)), kind="alone")
    assert (row["seconds"], row["seen_seconds"], row["steps"]) == pytest.approx((0.8, 0, 80))
    assert "no stretch of its recordings is whole" in row["not_known"]
    assert math.isnan(row["running"])
    assert math.isnan(row["faults_per_s"])


def test_pools_are_not_known_to_be_whole_where_threads_have_no_names():
    turn = [("running", 1, ""), ("blocked", 3, "futex")]
    threads = [Thread(LEAD, "python", turn), *(Thread(LEAD, "python", turn) for _ in range(2)),
               *(Thread(LEAD, f"tf_Compute/{number}", turn) for number in range(4))]  # fmt: skip
    perf = {"name": "perf", "threads_of": {LEAD: 9}}
    timeline = scripted(threads, {"scenes": [{"scene": "alone", "sources": [perf]}]})
    tracks = timeline.tracks.copy()
    is_thread = tracks["kind"] == "thread"
    tracks.loc[is_thread, "pid"] = 100  # the first thread is the main one
    process = {"track": len(tracks), "kind": "process", "name": "python", "member": LEAD, "pid": 100}
    timeline = replace(timeline, tracks=pd.concat([tracks, pd.DataFrame([process])], ignore_index=True))
    alone = one(timeline, "trace_pools", kind="alone", pool="tf_Compute")
    assert (alone["threads"], alone["unnamed"]) == (4, 2 + 2)  # two did nothing, and so have no track
    assert "4 more of its threads have no name but the program's" in alone["not_known"]
    assert all(math.isnan(alone[each]) for each in ("used_share", "all_busy_share", "all_busy_idle_share"))
    table = frame([alone], TRACE_TABLES["trace_pools"])
    rules = {name: rule for name, rule in rules_of(None, None, ()).items() if name.startswith("pool-too-")}
    found = list(findings(rules, {"trace_pools": table}.get))
    assert {each.name: each.state for each in found} == dict.fromkeys(rules, NOT_KNOWN)
    assert all("4 more of its threads" in each.why for each in found)
    row = one(timeline, kind="alone")
    assert math.isnan(row["input_only_share"])
    for inter, is_whole in ((4, True), (6, False)):  # what the framework's settings give the pool
        members = {LEAD: {**timeline.about["members"][LEAD], "threads": {"intra": 9, "inter": inter}}}
        told = replace(timeline, about={**timeline.about, "members": members})
        alone = one(told, "trace_pools", kind="alone", pool="tf_Compute")
        assert math.isnan(alone["used_share"]) != is_whole
        assert (alone["unnamed"], "4 of its 6 threads were seen" in alone["not_known"]) == (4, not is_whole)


def test_silent_threads_of_one_member_are_none_of_another_ones():
    turn = [("running", 1, ""), ("blocked", 1, "futex")]
    perf = {"name": "perf", "threads_of": {LEAD: 1, OTHER: 7}}
    timeline = scripted([Thread(LEAD, "main", turn)], {"scenes": [{"scene": "alone", "sources": [perf]}]})
    alone = one(timeline, "trace_pools", kind="alone", pool="main")
    assert (alone["unnamed"], alone["not_known"]) == (0, "")
    assert not math.isnan(alone["used_share"])


def test_interrupts_are_of_the_time_on_cpus_and_idle_and_unknown_are_no_program():
    turn = [("running", 2, ""), ("runnable", 1, "idle"), ("preempted", 1, "unknown"), ("preempted", 1, "backup"),
            ("blocked", 5, "futex")]  # fmt: skip
    timeline = scripted([Thread(LEAD, "main", turn)])
    thread = int(timeline.tracks.loc[timeline.tracks["kind"] == "thread", "track"].iloc[0])
    at = SECOND + np.arange(100, 900, 10) * 1_000_000
    ticks = pd.DataFrame(
        {"t0_ns": at, "t1_ns": at + 200_000, "track": thread, "kind": "irq", "name": "timer", "depth": 0}
    )
    timeline = replace(timeline, intervals=pd.concat([timeline.intervals, ticks], ignore_index=True))
    row = one(timeline, kind="alone")
    assert row["interrupts_share"] == pytest.approx(0.1, rel=0.02)
    assert (row["queued_share"], row["queued_others"], row["queued_idle"]) == pytest.approx((0.6, 0.2, 0.2))
    assert row["taken_by"] == "backup"


def test_times_count_from_the_first_moment_of_all_tables_stacks_included(tmp_path):
    making = Making()
    track = making.track("thread", "x", tid=1)
    making.stacks(t_ns=[5, 90], track=track, weight=1.0, stack="main")
    making.intervals(t0_ns=[7], t1_ns=[70], track=track, kind="state", name="running")
    timeline = making.made()
    write(timeline, tmp_path)
    assert start(timeline) == 5
    assert extent(tmp_path) == (5, 90)
    trace = Trace(
        timeline.tracks, timeline.intervals, timeline.instants, timeline.samples, origin_ns=extent(tmp_path)[0]
    )
    assert trace.first_ns == 5
