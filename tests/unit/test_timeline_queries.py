"""Queries over traces: pieces of operations against counting by hand, what is recorded, and sentences for mistakes."""

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from castmates.analysis.dataflow.path_states import TracedSteps
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.runner.tracing.record import _write_groups
from castmates.timeline.model import Making
from castmates.timeline.queries.asking import ask, named, query_of, values_of, views
from castmates.timeline.queries.database import TraceFolder, database, traces_of
from castmates.timeline.tables import write
from docs_site.queries import PAGE, renewed
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.timeline_maker import made

STATES = ("running", "runnable", "preempted", "blocked")
THREADS = 30
BEGIN, END = 1_000, 9_000  # of what is recorded, of 10,000 ns
ALONE, CORUN = "alone", "corun:a+b"


def asked(folder, *queries):
    with database([TraceFolder("t", folder)]) as connection:
        return [ask(connection, sql, values).read_pandas() for sql, values in map(_with_values, queries)]


def _with_values(query):
    return query if isinstance(query, tuple) else (query, None)


def chain(dice, times):
    """States of a thread, in order, some of them with gaps between."""
    edges = sorted(dice.sample(range(10_000), min(2 * times, 60)))
    joined = dice.random() < 0.5
    for begin, end in pairwise(edges) if joined else zip(edges[::2], edges[1::2], strict=True):
        yield begin, end, dice.choice(STATES)


def nested(dice, begin, end, depth=0):
    """Operations, each in another one, that may touch each other's ends."""
    edges = sorted(dice.sample(range(begin, end + 1), min(end - begin, dice.choice((2, 4, 6)))))
    for first, last in zip(edges[::2], edges[1::2], strict=False):
        yield first, last, depth
        if last - first > 20 and depth < 3 and dice.random() < 0.7:
            yield from nested(dice, first, last, depth + 1)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Threads that differ in everything, two of them without states, in a trace that is recorded in part."""
    dice, making, states, operations = random.Random(1), Making(), {}, []
    making.about = {"lead": "a@0"}
    run, member = making.track("run", "x"), making.track("member", "a@0", member="a@0")
    half = (BEGIN + END) // 2
    for kind in ("scene", "recording"):
        making.intervals(t0_ns=[BEGIN, half], t1_ns=[half, END], track=run, kind=kind, name=[ALONE, CORUN])
    begins, ends = [500, 1500, 6000], [1500, 2500, 7000]
    making.intervals(t0_ns=begins, t1_ns=ends, track=member, kind="step", name="step", value=[1, 2, 3])
    for number in range(THREADS):
        track = making.track("thread", f"w {number}", member, member="a@0", tid=number)
        states[track] = list(chain(dice, dice.choice((1, 2, 30)))) if number > 1 else []
        own = list(nested(dice, 0, 10_000))
        operations += [(track, *each) for each in own]
        for kind, rows in (("state", states[track]), ("operation", own)):
            if rows:
                begins, ends, last = map(list, zip(*rows, strict=True))
                more = {"name": last} if kind == "state" else {"name": "MatMul", "depth": last}
                making.intervals(t0_ns=begins, t1_ns=ends, track=track, kind=kind, **more)
    folder = tmp_path_factory.mktemp("drawn")
    write(making.made(), folder)
    return folder, states, operations


def by_hand(states, begin, end):
    """How long a thread was in each state, cut at the edges of recordings, and the rest."""
    found = Counter()
    for first, last, state in states:
        found[state] += max(0, min(last, end) - max(first, begin))
    found["unknown"] = end - begin - sum(found.values())
    return +found


def test_states_of_operations_are_those_that_are_counted_by_hand(drawn):
    folder, states, operations = drawn
    half, columns = (BEGIN + END) // 2, ["track", "t0_ns", "t1_ns", "depth"]
    recorded = ((BEGIN, half), (half, END))
    whole = [each for each in operations if any(begin <= each[1] and each[2] <= end for begin, end in recorded)]
    assert 100 < len(whole) < len(operations)
    sql = "SELECT track, s.t0_ns, s.t1_ns, s.depth, state, ns FROM operation_states s JOIN intervals USING (trace, row)"
    (table,) = asked(folder, sql)
    parts = table.groupby(columns)
    found = {key: dict(zip(rows["state"], rows["ns"], strict=True)) for key, rows in parts}
    assert found == {each: dict(by_hand(states[each[0]], each[1], each[2])) for each in whole}
    assert parts["ns"].sum().tolist() == [end - begin for _, begin, end, _ in sorted(whole)]


def test_states_of_steps_add_up_thread_by_thread(drawn):
    folder, states, _ = drawn
    (table,) = asked(folder, "SELECT step, track, state, ns FROM step_states")
    threads = {track for track, own in states.items() if any(end > BEGIN and begin < END for begin, end, _ in own)}
    assert set(table["step"]) == {2, 3}  # the first is recorded in part
    for step, begin, end in ((2, 1500, 2500), (3, 6000, 7000)):
        for track in threads:
            rows = table[(table["step"] == step) & (table["track"] == track)]
            last = max(t1 for t0, t1, _ in states[track] if t0 < END)
            until = end if last >= END else min(end, last)  # until the thread ends
            expected = dict(by_hand(states[track], begin, until)) if until > begin else {}
            assert dict(zip(rows["state"], rows["ns"], strict=True)) == expected


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A thread that is woken three times, by another one that runs, in two recordings of one second."""
    making, second = Making(), 10**9
    making.about = {"lead": "a@0", "mix": "a+b", "sources": [{"name": "perf", "events": {"state": 6}, "lost": 7}]}
    run, member = making.track("run", "x"), making.track("member", "a@0", member="a@0")
    thread = making.track("thread", "pool-1", member, member="a@0", tid=7, pid=7)
    making.intervals(t0_ns=[0, second], t1_ns=[second, 2 * second], track=run, kind="recording", name=[ALONE, CORUN])
    parts = [  # until, state, detail
        (100, "running", ""), (400, "blocked", "futex"), (500, "runnable", "b@1"), (900, "running", ""),
        (1000, "preempted", "b@1"), (1400, "blocked", "futex"), (1900, "runnable", "b@1"), (2000, "running", ""),
    ]  # fmt: skip
    edges = [0, *(int(until * 1e6) for until, _, _ in parts)]
    states = {"name": [part[1] for part in parts], "detail": [part[2] for part in parts]}
    making.intervals(t0_ns=edges[:-1], t1_ns=edges[1:], track=thread, kind="state", **states)
    wake = {"track": thread, "kind": "wakeup", "name": "woken"}
    beat = {"track": member, "kind": "heartbeat", "name": "step"}
    making.instants(t_ns=[400_000_000, 600_000_000, 1_400_000_000], detail=["b@1", "b@1", "c"], **wake)
    making.instants(t_ns=[100, 500_000_100, second + 100, 2 * second - 1], value=[1, 6, 7, 9], **beat)
    folder = tmp_path_factory.mktemp("small") / "a+b"
    write(making.made(), folder)
    return folder


def test_wake_ups_have_the_time_until_the_thread_ran(small):
    (table,) = asked(small, "SELECT t_ns, latency_us, woken_by, scene FROM wakeups ORDER BY t_ns")
    assert table["latency_us"].iloc[[0, 2]].tolist() == [100_000, 500_000]
    assert pd.isna(table["latency_us"].iloc[1])  # it ran already
    assert table["scene"].tolist() == [ALONE, ALONE, CORUN]


@pytest.mark.parametrize("rows", ["none", "one", "many"])
def test_every_named_query_can_be_asked_of_every_trace(tmp_path, rows):
    making = Making()
    if rows == "one":
        track = making.track("thread", "w", tid=1)
        making.intervals(t0_ns=[0], t1_ns=[5], track=track, kind="operation", name="x")
        making.instants(t_ns=[1], track=track, kind="wakeup", name="woken")
    write(made(200) if rows == "many" else making.made(), tmp_path)
    queries = {name: (query.sql, values_of(query, [])) for name, query in named().items()}
    tables = dict(zip(queries, asked(tmp_path, *queries.values()), strict=True))
    if rows == "one":
        assert tables["operation-states"][["state", "beside_ms_per_call"]].to_numpy().tolist() == [["unknown", 5e-6]]
        assert tables["run-queue"]["with_latency"].tolist() == [0]
    elif rows == "many":
        assert len(tables["time-on-cpu"]) == 16
        assert set(tables["ran-instead"]["ran_instead"]) == {"stream@1"}
    else:
        assert all(table.empty for table in tables.values())


def test_several_traces_are_one_table_and_a_study_may_be_asked(small, tmp_path):
    timeline = made(200)
    write(timeline, tmp_path / "x")
    (tmp_path / "y").symlink_to(small)
    own = int((timeline.intervals["name"] == "runnable").sum())
    with database(traces_of(tmp_path)) as connection:
        sql = "SELECT trace, count(*) AS count FROM intervals WHERE name = 'runnable' GROUP BY ALL ORDER BY ALL"
        assert ask(connection, sql).read_pandas().to_dict("list") == {"trace": ["x", "y"], "count": [own, 2]}
    assert [trace.name for trace in traces_of(tmp_path, "y")] == ["y"]
    with pytest.raises(CastmatesError, match=r"there is no trace of z \(there are traces of x, y\)"):
        traces_of(tmp_path, "z")


def test_views_have_the_columns_that_they_document(small):
    described = asked(small, *(f"DESCRIBE {name}" for name in views()))
    assert {name: list(view.columns) for name, view in views().items()} == {
        name: list(table["column_name"]) for name, table in zip(views(), described, strict=True)
    }
    assert all(meaning for view in views().values() for meaning in (view.about, *view.columns.values()))


def test_the_page_lists_every_view_with_its_columns_and_every_named_query():
    """`python -m docs_site.queries` writes these lists anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page) == page
    assert all(f"### `{name}`" in page for name in views())
    assert all(f"**`{name}`**" in page for name in named())


def test_a_mistake_in_sql_is_one_sentence_and_nothing_is_written(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = [
        "SELECT foo FROM states", "selec 1", "SELECT * FROM stats", "COPY (SELECT 1) TO 'x.csv'",
        "CREATE TABLE x AS SELECT 1", "SET memory_limit = '1GB'", "SELECT 1; SELECT 2",
    ]  # fmt: skip
    assert_as_before("sql", {sql: refusal(asked, small, sql) for sql in wrong})
    assert not list(tmp_path.iterdir())


def test_parameters_are_checked():
    of = {"lost": "member=x", "slowest-steps": "most=abc"}
    told = {name: refusal(values_of, query_of(name), [value]) for name, value in of.items()}
    assert_as_before("queries", told | {"another name": refusal(query_of, "time-on-cpus")})
    assert values_of(query_of("slowest-steps"), ["most=7"])["most"] == "7"
    assert values_of(query_of("run-queue"), ["member=a*"]) == {"member": "a*", "thread": "*", "scene": "*"}


def test_the_command_writes_every_format(small, tmp_path):
    run = CliRunner()
    query = ["trace", "query", str(small), "SELECT trace, source, lost, NULL::DOUBLE AS x FROM sources"]
    assert run.invoke(app, query).stdout.splitlines() == ['"trace","source","lost","x"', '"a+b","perf",7,']
    assert (
        '{"trace": "a+b", "source": "perf", "lost": 7, "x": null}'
        in run.invoke(app, [*query, "--format", "json"]).stdout
    )
    assert run.invoke(app, [*query, "--output", str(tmp_path / "x.parquet")]).exit_code == 0
    assert pd.read_parquet(tmp_path / "x.parquet")["lost"].tolist() == [7]
    table = run.invoke(
        app, ["trace", "query", str(small), "--named", "intervals", "--format", "table", "--limit", "2"]
    ).stdout
    assert "blocked:futex" in table
    assert "2 rows; there are more" in table
    assert "time-on-cpu" in run.invoke(app, ["trace", "query", str(small)]).stdout
    assert "latency_us" in run.invoke(app, ["trace", "query", "--list"]).stdout


def test_what_is_no_trace_is_a_sentence(small, tmp_path):
    write(made(100), tmp_path / "t")
    (tmp_path / "t/intervals.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(CastmatesError, match=r"intervals\.parquet: this is no table of a trace"):
        asked(tmp_path / "t", "FROM intervals")
    (tmp_path / "t/trace.json").write_text("{")
    with pytest.raises(CastmatesError, match=r"trace\.json: this is not a record of a trace \(line 1, column 2"):
        asked(tmp_path / "t", "FROM intervals")


def test_traces_that_cannot_be_read_are_named_and_without_any_there_is_a_sentence(small, tmp_path):
    place = tmp_path / "x"
    timeline = made(100)
    timeline.about.update(status="failed", reason="stream ended")
    write(timeline, place)
    asked_for = ["trace", "query", str(tmp_path), "SELECT DISTINCT trace FROM intervals"]
    answer = CliRunner().invoke(app, asked_for)
    assert answer.exit_code != 0
    assert isinstance(answer.exception, CastmatesError | SystemExit)
    assert "no trace can be read. The trace of x failed: stream ended." in f"{answer.output} {answer.exception}"
    (tmp_path / "y").symlink_to(small)
    answer = CliRunner().invoke(app, asked_for)
    assert "The trace of x failed: stream ended." in answer.stderr
    assert answer.stdout.split() == ['"trace"', '"y"']


def test_intervals_of_counts_hold_what_operations_count_in_the_long_run(tmp_path):
    """Samples fall at random, as those of one event in many do; each operation is a trial, alone and beside others."""
    dice, many, making, period = np.random.default_rng(5), 1200, Making(), 1000
    run, member = making.track("run", "x"), making.track("member", "a@0", member="a@0")
    thread = making.track("thread", "main", member, member="a@0", tid=1)
    length = 1000 * many
    means = np.resize([0.7, 3.0, 10.0, 60.0], many)  # samples in each operation
    truth = {ALONE: means, CORUN: means * np.where(np.arange(many) % 8 < 4, 1.0, 1.5)}
    making.about = {"lead": "a@0"}
    for place, (scene, expected) in enumerate(truth.items()):
        begins, own = place * length + 1000 * np.arange(many), dice.poisson(expected)
        whole = {"t0_ns": [place * length], "t1_ns": [(place + 1) * length]}
        for kind in ("scene", "recording"):
            making.intervals(**whole, track=run, kind=kind, name=scene)
        making.intervals(**whole, track=member, kind="step", name="step", value=[1])
        name = [f"op {number}" for number in range(many)]
        making.intervals(t0_ns=begins, t1_ns=begins + 1000, track=thread, kind="operation", name=name, detail="op")
        at = np.repeat(begins, own) + dice.integers(0, 1000, own.sum())
        making.instants(t_ns=at, track=thread, kind="count", name="cache-misses", value=float(period))
    write(making.made(), tmp_path)
    (rows,) = asked(tmp_path, (query_of("counts-by-operation").sql, values_of(query_of("counts-by-operation"), ())))
    number = rows["operation"].str[3:].astype(int).to_numpy()
    alone, beside = (period * truth[scene][number] for scene in (ALONE, CORUN))
    for column, true in (("alone", alone), ("beside", beside), ("difference", beside - alone)):
        # Operations without a sample on either side have no row: of the rarest some are missing, and they cover.
        covers = (rows[f"{column}_low"] <= true) & (true <= rows[f"{column}_high"])
        shares = covers.groupby(means[number]).mean()
        assert (shares >= 0.93).all(), (column, shares)  # of a sample or fewer they are wider than they have to be
        assert shares[60.0] <= 0.97, (column, shares)


def test_counts_by_group_are_those_of_operations_and_an_operation_of_several_groups_counts_once(tmp_path):
    making = Making()
    run, member = making.track("run", "x"), making.track("member", "a@0", member="a@0")
    thread = making.track("thread", "main", member, member="a@0", tid=1)
    making.about = {"lead": "a@0"}
    for place, scene in enumerate((ALONE, CORUN)):
        whole = {"t0_ns": [1000 * place], "t1_ns": [1000 * place + 900]}
        for kind in ("scene", "recording"):
            making.intervals(**whole, track=run, kind=kind, name=scene)
        making.intervals(**whole, track=member, kind="step", name="step", value=[1])
        begins = 1000 * place + np.array([0, 200, 400, 600])
        own = {"track": thread, "kind": "operation", "name": ["conv", "down", "copy (copy.1)", "noise"]}
        making.intervals(t0_ns=begins, t1_ns=begins + 100, detail=["conv2d", "conv2d_grad", "copy", "add"], **own)
        at = 1000 * place + np.array([10, 20, 30, 210, 410, 420, 610, 800])
        making.instants(t_ns=at, track=thread, kind="count", name="cache-misses", value=10.0)
    calls = pd.DataFrame(
        [("conv", "conv2d", "convolution", "forward"), ("down", "conv2d_grad", "convolution", "backward"),
         ("copy (copy.1)", "copy", "data movement", "forward"), ("copy (copy.1)", "copy", "data movement", "backward")],
        columns=["operation", "type", "layer_kind", "direction"],
    )  # fmt: skip
    write(making.made(), tmp_path)
    _write_groups([TracedSteps(scene, 1, calls, pd.DataFrame()) for scene in (ALONE, CORUN)], tmp_path)
    query = query_of("counts-by-operation")
    (rows,) = asked(tmp_path, (query.sql, values_of(query, ["by=group"])))
    assert dict(zip(rows["operation"], rows["beside"], strict=True)) == {
        "convolution": 30, "convolution, gradient": 10, "not known": 30, "outside of operations": 10,
    }  # fmt: skip


def test_a_thread_that_has_ended_counts_for_nothing_in_pools(tmp_path):
    """Two threads of a pool, of which one works for the first of four steps and ends then."""
    making = Making()
    making.about = {"lead": "a@0"}
    run, member = making.track("run", "x"), making.track("member", "a@0", member="a@0")
    making.intervals(t0_ns=[0], t1_ns=[400], track=run, kind="recording", name=[ALONE])
    making.intervals(t0_ns=[0, 100, 200, 300], t1_ns=[100, 200, 300, 400], track=member, kind="step", name="step")
    for number, last in enumerate((400, 100)):
        track = making.track("thread", f"w {number}", member, member="a@0", tid=number)
        making.intervals(t0_ns=[0], t1_ns=[last], track=track, kind="state", name="running")
    write(making.made(), tmp_path)
    query = query_of("pools")
    (table,) = asked(tmp_path, (query.sql, values_of(query, [])))
    assert table[["threads", "running", "blocked", "unknown"]].iloc[0].tolist() == [2, 1.25, 0, 0]
