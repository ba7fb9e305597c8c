"""What threads do along the path of the schedule, against schedules that are known nanosecond by nanosecond."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.dataflow import path_states as states_of
from castmates.analysis.dataflow.path_states import ThreadStates, TracedSteps, path_states
from castmates.pipeline.trace_launch import without_path
from castmates.report.text import trace_paths
from castmates.report.traces import Trace
from castmates.results.columns.dataflow import LAUNCH_GRAPH_TABLES
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.trace import PATHS, PATHS_FILE
from castmates.runner.tracing import paths
from castmates.timeline.queries.asking import ask, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write, write_record
from tests.unit.dataflow_maker import Ran, executed, graph_tables, random_graph, tables
from tests.unit.timeline_maker import SCENES, Thread, scripted

MAIN = 90
KINDS = [("running", ""), ("preempted", ""), ("blocked", "futex"), ("", "")]  # the last one was not recorded


def _steps(runs: list[Ran], graph, scene: str = "alone") -> TracedSteps:
    """Those of an executor, whose threads have the tracks 0, 1 …."""
    calls, steps = tables(graph, runs, scene)
    calls = calls.assign(thread=calls["thread"].str.removeprefix("pool/").astype("int64"))
    return TracedSteps(scene, 1, calls, steps.assign(heartbeat=steps["step"] + 5))


def _known(dice: np.random.Generator, length: int) -> np.ndarray:
    """A state of each nanosecond, as a place in KINDS: stretches of random length."""
    lengths = dice.integers(1, 40, length)
    return np.repeat(dice.integers(len(KINDS), size=length), lengths)[:length]


def _thread(known: np.ndarray) -> ThreadStates:
    edges = [0, *(np.flatnonzero(np.diff(known)) + 1).tolist(), len(known)]
    there = [(begin, end) for begin, end in pairwise(edges) if KINDS[known[begin]][0]]
    begin, end = (np.array(each, np.int64) for each in zip(*there, strict=True))
    words = [KINDS[known[at]] for at in begin]
    return ThreadStates(begin, end, [state for state, _ in words], [reason for _, reason in words])


@pytest.mark.parametrize("seed", range(12))
def test_every_nanosecond_of_a_step_has_one_part_and_the_state_of_its_thread(seed: int) -> None:
    dice = np.random.default_rng(seed)
    count, threads = int(dice.integers(2, 25)), int(dice.integers(1, 4))
    graph = random_graph(dice, count, int(dice.integers(0, 60)))
    runs = [executed(graph, dice.integers(5, 200, count), threads, dice)]
    runs.append(executed(graph, dice.integers(5, 200, count), threads, dice, runs[0].step_end + 60))
    known = {track: _known(dice, runs[-1].step_end + 50) for track in (*range(threads), MAIN)}
    rows, why = path_states(
        [_steps(runs, graph)], *graph_tables(graph), {track: _thread(each) for track, each in known.items()}, MAIN
    )
    assert why == {}
    table = pd.DataFrame(rows)
    for step, run in enumerate(runs):
        own = table[table["step"] == step + 5]
        parts = own.drop_duplicates("place")
        assert parts["t0_ns"].tolist() == [run.step_begin, *parts["t1_ns"].tolist()[:-1]], "without gaps"
        assert parts["t1_ns"].iloc[-1] == run.step_end
        assert own["ns"].sum() == run.step_end - run.step_begin
        for place, part in own.groupby("place"):
            track, begin, end = (int(part[name].iloc[0]) for name in ("track", "t0_ns", "t1_ns"))
            counts = np.bincount(known[track][begin:end], minlength=len(KINDS)).tolist()
            expected = {
                (state or "unknown", reason): ns for (state, reason), ns in zip(KINDS, counts, strict=True) if ns
            }
            assert dict(zip(zip(part["state"], part["reason"], strict=True), part["ns"], strict=True)) == expected
            what = part["part"].iloc[0]
            if what in (states_of.BEFORE, states_of.AFTER):
                assert track == MAIN
                continue
            busy = any(
                run.thread[node] == track and run.begin[node] < end and run.end[node] > begin for node in range(count)
            )
            assert busy == (what != states_of.IDLE), place


def test_a_thread_without_states_is_unknown_and_a_foreign_graph_is_a_reason_of_its_recording() -> None:
    dice = np.random.default_rng(3)
    graph = random_graph(dice, 12, 20)
    steps = _steps([executed(graph, dice.integers(5, 200, 12), 2, dice)], graph)
    empty, foreign = TracedSteps("alone", 2, steps.calls.iloc[:0], steps.steps), steps.calls.assign(operation="other")
    recordings = [steps, empty, TracedSteps("corun", 1, foreign, steps.steps), TracedSteps("corun", 2, *_parts(steps))]

    def why_unknown(recording, stretch) -> str:
        return f"{recording} of {stretch.track}"

    rows, without = path_states(recordings, *graph_tables(graph), {}, MAIN, why_unknown)
    assert {row["state"] for row in rows} == {"unknown"}
    assert {row["reason"] for row in rows if row["track"] == MAIN} == {
        f"('alone', 1) of {MAIN}",
        f"('corun', 2) of {MAIN}",
    }
    assert without.keys() == {("alone", 2), ("corun", 1)}
    assert "of the operations' time" in without["corun", 1]


def _parts(steps: TracedSteps) -> tuple[pd.DataFrame, pd.DataFrame]:
    return steps.calls, steps.steps


def test_the_query_shows_where_a_step_gets_longer_and_adds_up_to_it(tmp_path) -> None:
    folder = tmp_path / "lead+stream"
    write(scripted([Thread("lead@0", "main", [("running", 1, "")])]), folder)
    graph = random_graph(np.random.default_rng(5), 15, 30)
    took = np.arange(1000, 16_000, 1000)
    runs = {
        scene: executed(graph, factor * took, 1, np.random.default_rng(7))
        for factor, scene in enumerate(SCENES, start=1)
    }
    alone, beside = (run.step_end - run.step_begin for run in runs.values())
    traced = [_steps([run], graph, scene) for scene, run in runs.items()]
    rows, _ = path_states(traced, *graph_tables(graph), {}, MAIN)
    write_rows(rows, PATHS, folder / PATHS_FILE)
    query = query_of("path")
    with database([TraceFolder("lead+stream", folder)]) as connection:
        found = ask(connection, query.sql, values_of(query, ())).read_pandas()
    assert found["difference"].sum() == pytest.approx((beside - alone) / 1e6)
    assert found["alone_ms"].sum() == pytest.approx(alone / 1e6)


def test_each_recording_without_a_path_and_each_unknown_state_has_its_reason(tmp_path, monkeypatch) -> None:
    graph = random_graph(np.random.default_rng(5), 15, 30)
    run = executed(graph, np.arange(1000, 16_000, 1000), 1, np.random.default_rng(7))
    sources = {
        "alone": [{"name": "perf", "reason": "", "lost": 3}],
        "corun:lead@0+stream@1": [{"name": "profile", "reason": "no profile came in time"}],
    }
    about = {
        "scenes": [{"scene": scene, "round": 1, "sources": each} for scene, each in sources.items()],
        "filters": {"events": ["scheduler"], "members": ["lead@0"]},
    }
    timeline = scripted([Thread("lead@0", "main", [("running", 1, "")])], about)
    folder = tmp_path / "lead+stream"
    write(timeline, folder)
    for name, table in zip(LAUNCH_GRAPH_TABLES, graph_tables(graph), strict=True):
        table.to_parquet(folder / f"{name}.parquet")
    monkeypatch.setattr(paths.graphs, "write", lambda *_: {"reason": ""})
    thread = int(timeline.tracks.loc[timeline.tracks["tid"].notna(), "track"].iloc[0])
    steps = _steps([run], graph)
    outcome = SimpleNamespace(launch=SimpleNamespace(cohort=SimpleNamespace(lead=SimpleNamespace(name="lead@0"))))
    traced = TracedSteps("alone", 1, steps.calls.assign(thread=thread), steps.steps)
    timeline.about.update(paths.write(outcome, [traced], timeline, folder))
    write_record(timeline, folder)
    rows = pd.read_parquet(folder / PATHS_FILE)
    reasons = rows.groupby(rows["part"].isin(["before", "after"]))["reason"].unique().map(list).to_dict()
    assert reasons == {False: ["perf lost events"], True: ["the main thread is not known"]}
    sentence = "corun:lead@0+stream@1, recording 1: no profile came in time."
    trace = TraceFolder("lead+stream", folder)
    assert without_path(trace, "SELECT * FROM paths") == [f"Critical paths: {sentence}"]
    assert without_path(trace, "SELECT * FROM states") == []
    monkeypatch.setattr(trace_paths, "traces", lambda _: [Trace(trace)])
    assert trace_paths.context(None)["without"] == [f"lead+stream: Critical paths: {sentence}"]
