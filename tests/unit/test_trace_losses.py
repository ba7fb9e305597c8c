"""A trace that lost events: what is counted of it, by the tables and by queries alike."""

import duckdb
import numpy as np
import pandas as pd
import pytest

from castmates.analysis.timeline.seen import Trace
from castmates.analysis.timeline.summary import rows_of
from castmates.analysis.timeline.waits import NUMBER, pool_of
from castmates.timeline.model import Making
from castmates.timeline.queries.asking import ask, named, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write

MS = 1_000_000
LEAD = "job@0"
WHOLE = ((1000, 1400), (1600, 2000))  # ms, of a recording from 1000 to 2000
# Until when (ms) the thread is in which state, in each whole stretch. It is cut by the loss while it is woken, and the
# first that is seen after the loss is that it waits to run.
STRETCHES = (
    ([1100, 1190, 1200, 1300, 1395, 1400], ["running", "blocked", "runnable", "running", "blocked", "runnable"]),
    ([1610, 1700, 1720, 1790, 1800, 1910, 2000],
     ["preempted", "running", "preempted", "blocked", "runnable", "running", "blocked"]),
)  # fmt: skip
RAN_MS, SEEN_S, STEP_MS = 400, 0.8, 25


def lossy(folder):
    """One thread of a member that steps every 25 ms; half of the time in which it is seen, it runs."""
    making = Making()
    making.about = {"lead": LEAD, "mix": "job", "members": {LEAD: {"cpus": [0]}}}
    run, member = making.track("run", "x"), making.track("member", LEAD, member=LEAD)
    thread = making.track("thread", "main", member, member=LEAD, pid=7, tid=7)
    making.intervals(t0_ns=[900 * MS], t1_ns=[2100 * MS], track=run, kind="scene", name="alone")
    making.intervals(t0_ns=[1000 * MS], t1_ns=[2000 * MS], track=run, kind="recording", name="alone")
    for (begin, end), (until, names) in zip(WHOLE, STRETCHES, strict=True):
        making.intervals(t0_ns=[begin * MS], t1_ns=[end * MS], track=run, kind="whole", name="perf", source="perf")
        edges = np.array([begin, *until]) * MS
        details = ["idle" if name == "runnable" else "" for name in names]
        making.intervals(t0_ns=edges[:-1], t1_ns=edges[1:], track=thread, kind="state", name=names, detail=details)
    beats = np.arange(910, 2090, STEP_MS) * MS
    making.instants(
        t_ns=beats, track=member, kind="heartbeat", name="step", value=np.arange(len(beats)), source="heartbeat"
    )
    making.instants(t_ns=np.array([1190, 1395, 1790]) * MS, track=thread, kind="wakeup", name="woken", detail="x")
    making.instants(t_ns=np.array([1050, 1700]) * MS, track=thread, kind="fault", name="page fault")
    making.intervals(t0_ns=[1700 * MS], t1_ns=[1740 * MS], track=member, kind="step", name="step", value=[1.0])
    timeline = making.made()
    write(timeline, folder)
    return timeline


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lossy")
    timeline = lossy(folder)
    tables = timeline.tracks, timeline.intervals, timeline.instants, timeline.samples
    (row,) = rows_of(Trace(*tables, timeline.about, "x"))["trace_summary"]
    with database([TraceFolder("x", folder)]) as connection:

        def asked(name, *values):
            query = query_of(name)
            return ask(connection, query.sql, values_of(query, values)).read_pandas()

        names = ("members", "run-queue", "faults", "ran-instead", "slowest-steps", "heartbeats")
        found = {name: asked(name) for name in names}
    return row, found


def test_rates_are_of_the_time_in_which_nothing_was_lost(answers):
    row, found = answers
    assert (row["seconds"], row["seen_seconds"]) == pytest.approx((1.0, SEEN_S))
    assert row["running"] == pytest.approx(RAN_MS / 1000 / SEEN_S) == pytest.approx(0.5)
    members = found["members"].set_index(["state", "reason"])["beside_ms_per_s"]
    assert members["running", ""] == pytest.approx(500)
    assert members.sum() == pytest.approx(1000)
    assert row["faults_per_s"] == pytest.approx(found["faults"]["per_s"].iloc[0]) == pytest.approx(2 / SEEN_S)
    assert row["faults_per_step"] == pytest.approx(found["faults"]["per_step"].iloc[0]) == pytest.approx(2 / 32)
    assert row["steps"] == pytest.approx(40)
    assert found["heartbeats"]["beside_units"].iloc[0] == pytest.approx(40)


def test_a_wait_that_a_loss_cuts_is_no_latency_and_what_opens_a_stretch_is_no_switch(answers):
    row, found = answers
    queue = found["run-queue"].iloc[0]
    assert queue["with_latency"] == 2
    for column in ("p50_us", "p95_us", "p99_us", "max_us"):
        assert queue[column] == pytest.approx(row[f"queue_{column}"]) == pytest.approx(10_000)
    assert row["involuntary_per_s"] == pytest.approx(1 / SEEN_S)
    instead = found["ran-instead"].set_index("state")
    assert instead.loc["preempted", "times_per_s"] == pytest.approx(1 / SEEN_S)


def test_an_idle_cpu_is_nobody(answers):
    row, found = answers
    idle = 25 / (RAN_MS + 25 + 30)
    assert (row["queued_others"], row["queued_idle"], row["taken_by"]) == (0, pytest.approx(idle), "")
    assert set(found["ran-instead"]["ran_instead"]) == {"nobody: the CPU was idle", "not known"}


def test_the_longest_step_is_one_of_all_and_not_of_the_profiled_ones(answers):
    row, found = answers
    assert row["longest_step_ms"] == pytest.approx(STEP_MS)
    steps = found["slowest-steps"]
    assert set(steps["source"]) == {"heartbeat"}
    assert steps["ms"].tolist() == pytest.approx([STEP_MS] * 20)


def test_pools_are_named_alike_by_tables_and_queries():
    assert NUMBER in named()["pools"].sql
    names = pd.Series(["tf_Compute/12", "a.b-3", "worker 3", "7", "python"])
    with duckdb.connect() as connection:
        sql = f"SELECT coalesce(nullif(regexp_replace(unnest($1), '{NUMBER}', ''), ''), '') AS pool"
        pools = connection.execute(sql, [names.tolist()]).fetchall()
    assert [pool or name for (pool,), name in zip(pools, names, strict=True)] == [pool_of(name) for name in names]
