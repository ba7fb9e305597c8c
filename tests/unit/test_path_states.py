"""What threads do along the critical path, against schedules that are known nanosecond by nanosecond."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.dataflow import path_states as states_of
from castmates.analysis.dataflow.path_states import ThreadStates, TracedSteps, path_states
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.trace import PATHS, PATHS_FILE
from castmates.timeline.queries.asking import ask, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write
from tests.unit.dataflow_maker import Ran, executed, graph_tables, random_graph, tables
from tests.unit.timeline_maker import SCENES, Thread, scripted

MAIN = 90
KINDS = [("running", ""), ("preempted", ""), ("blocked", "futex"), ("", "")]  # the last one was not recorded


def _steps(runs: list[Ran], graph, scene: str = "solo") -> TracedSteps:
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
    assert why == ""
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


def test_a_thread_without_states_is_unknown_and_a_foreign_graph_is_a_reason() -> None:
    dice = np.random.default_rng(3)
    graph, other = random_graph(dice, 12, 20), random_graph(dice, 1, 0)
    steps = _steps([executed(graph, dice.integers(5, 200, 12), 2, dice)], graph)
    rows, _ = path_states([steps], *graph_tables(graph), {}, MAIN)
    assert {(row["state"], row["reason"]) for row in rows} == {("unknown", "")}
    rows, why = path_states([steps], *graph_tables(other), {}, MAIN)
    assert not rows
    assert "of the operations' time" in why


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
