"""The critical path by who woke whom: known answers, and its definition, written down once more, on random threads."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.dataflow.path_states import ThreadStates
from castmates.analysis.dataflow.wake_path import wake_path
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.trace import PATHS, PATHS_FILE
from castmates.runner.tracing.paths import woken
from castmates.timeline.model import Making
from castmates.timeline.queries.asking import ask, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write

MAIN, WORKER, THIRD = 1, 2, 3


def states_of(text: str) -> ThreadStates:
    """States from words such as `R5 B15 q1`: running, runnable (q), preempted (p), blocked, unknown, each so long."""
    names = {"R": "running", "q": "runnable", "p": "preempted", "B": "blocked", "u": "unknown"}
    parts = [(names[word[0]], int(word[1:])) for word in text.split()]
    edges = np.cumsum([0, *(length for _, length in parts)])
    return ThreadStates(edges[:-1], edges[1:], [name for name, _ in parts], [""] * len(parts))


def path_of(threads: dict[int, str], wakers: dict, end: int, begin: int = 0, track: int = MAIN) -> list[tuple]:
    found = wake_path({name: states_of(text) for name, text in threads.items()}, wakers, track, begin, end)
    return [(each.track, each.state[0], each.begin, each.end) for each in found]


@pytest.mark.parametrize(
    ("threads", "wakers", "expected"),
    [
        # One hands over to the other and waits for its answer.
        ({MAIN: "R4 B6 q1 R2", WORKER: "B3 q1 R6 B3"}, {(MAIN, 10): WORKER, (WORKER, 3): MAIN},
         [(MAIN, "r", 0, 4), (WORKER, "r", 4, 10), (MAIN, "r", 10, 11), (MAIN, "r", 11, 13)]),
        # A lock that another one has held since long, and of which it lost its CPU meanwhile.
        ({MAIN: "R5 B10 R1", WORKER: "R7 p3 R6"}, {(MAIN, 15): WORKER},
         [(MAIN, "r", 0, 5), (WORKER, "r", 5, 7), (WORKER, "p", 7, 10), (WORKER, "r", 10, 15), (MAIN, "r", 15, 16)]),
        # A barrier: the straggler counts from where the others wait for it, and a timer has woken it.
        ({MAIN: "R5 B15 R1", WORKER: "R2 B6 q1 R12"}, {(MAIN, 20): WORKER},
         [(MAIN, "r", 0, 5), (WORKER, "b", 5, 8), (WORKER, "r", 8, 9), (WORKER, "r", 9, 20), (MAIN, "r", 20, 21)]),
        # Who is waited for waits for a third one, which has waited longer than either.
        ({MAIN: "R2 B10 R1", WORKER: "R4 B6 R3", THIRD: "B7 R4"},
         {(MAIN, 12): WORKER, (WORKER, 10): THIRD},
         [(MAIN, "r", 0, 2), (WORKER, "r", 2, 4), (THIRD, "b", 4, 7), (THIRD, "r", 7, 10), (WORKER, "r", 10, 12),
          (MAIN, "r", 12, 13)]),
        # Who was not recorded, an interrupt, or one that did not run: the wait stays. So does one without an end.
        ({MAIN: "R2 B3 R1 B3 R1 u2 B9"}, {(MAIN, 5): 99, (MAIN, 9): MAIN},
         [(MAIN, "r", 0, 2), (MAIN, "b", 2, 5), (MAIN, "r", 5, 6), (MAIN, "b", 6, 9), (MAIN, "r", 9, 10),
          (MAIN, "u", 10, 12), (MAIN, "b", 12, 15)]),
        # Before the first state and behind the last one nothing is known.
        ({MAIN: ""}, {}, [(MAIN, "u", 0, 9)]),
    ],
)  # fmt: skip
def test_the_path_of_known_patterns(threads, wakers, expected):
    assert path_of(threads, wakers, expected[-1][-1]) == expected


def defined(threads, wakers, track, begin, end):
    """The definition: what a thread did, and in the place of each wait the path of who ended it, over the same time."""
    own = threads[track]
    for place, state in enumerate(own.state):
        first, last = max(int(own.begin[place]), begin), min(int(own.end[place]), end)
        if first >= last:
            continue
        waker = wakers.get((track, last)) if state == "blocked" and last == own.end[place] else None
        if waker is not None:
            yield from defined(threads, wakers, waker, first, last)
        else:
            yield track, state, first, last


def drawn(dice):
    """Threads on their own CPUs: one that is blocked goes on when another one, which runs then, wakes it."""
    many, end = int(dice.integers(2, 5)), 300
    edges = {track: np.unique([0, *dice.integers(1, end, 14), end]) for track in range(many)}
    states, wakers = {}, {}
    for track, at in edges.items():
        names = [str(dice.choice(["running", "blocked", "preempted"], p=[0.5, 0.4, 0.1])) for _ in at[1:]]
        names = [
            "running" if name == before == "blocked" else name
            for before, name in zip(["", *names], names, strict=False)
        ]
        states[track] = ThreadStates(at[:-1], at[1:], names, [""] * len(names))
    for track, own in states.items():
        for name, moment in zip(own.state, own.end.tolist(), strict=True):
            others = [
                other
                for other, theirs in states.items()
                if other != track and theirs.state[int(np.searchsorted(theirs.begin, moment)) - 1] == "running"
            ]
            if name == "blocked" and others and dice.random() < 0.8:
                wakers[track, moment] = int(dice.choice(others))
    return states, wakers


def test_the_walk_back_is_the_path_by_its_definition_on_random_threads():
    dice, followed = np.random.default_rng(11), 0
    for _ in range(300):
        states, wakers = drawn(dice)
        begin, end = sorted(dice.choice(np.arange(1, 300), 2, replace=False).tolist())
        found = [(one.track, one.state, one.begin, one.end) for one in wake_path(states, wakers, 0, begin, end)]
        assert found == list(defined(states, wakers, 0, begin, end))
        assert [begin, *(one[3] for one in found)] == [*(one[2] for one in found), end]
        followed += any(one[0] for one in found)
    assert followed > 100


def made(beats):
    """Four steps of 20 ns, half of which the lead waits for a helper; beside others that one loses its CPU for 5."""
    making = Making()
    making.about = {"lead": "a@0", "scenes": []}
    run, member = making.track("run", "x"), making.track("member", "a@0", member="a@0")
    main, helper = (
        making.track("thread", each, member, member="a@0", pid=7, tid=tid) for each, tid in (("m", 7), ("h", 8))
    )
    for number, (scene, longer) in enumerate((("alone", 0), ("corun:a+b", 5))):
        begin, step = 1000 * number, 20 + longer
        at = begin + step * np.arange(4)
        making.about["scenes"].append(
            {"scene": scene, "round": 1, "t0_ns": begin, "t1_ns": begin + 4 * step, "sources": []}
        )
        for kind in ("scene", "recording", "whole"):
            making.intervals(t0_ns=[begin], t1_ns=[begin + 4 * step], track=run, kind=kind, name=scene)
        own = {
            "running": (0, 5, ""),
            "blocked": (5, 15 + longer, "futex"),
            "runnable": (15 + longer, 16 + longer, "idle"),
        }
        work = {"running": (0, 7, ""), "preempted": (7, 7 + longer, "b@1"), " running": (7 + longer, step, "")}
        for track, parts in ((main, {**own, " running": (16 + longer, step, "")}), (helper, work)):
            for name, (t0, t1, detail) in parts.items():
                if t1 > t0:
                    state = {"kind": "state", "name": name.strip(), "detail": detail, "source": "perf"}
                    making.intervals(t0_ns=at + t0, t1_ns=at + t1, track=track, **state)
        making.instants(t_ns=at + 15 + longer, track=main, kind="wakeup", name="woken", value=8, detail="a@0")
        if beats:
            making.instants(t_ns=[*at, at[-1] + step], track=member, kind="heartbeat", name="step", value=range(5))
    return making.made()


def test_steps_of_heartbeats_have_their_paths_and_the_query_compares_scenes_by_part_and_by_thread(tmp_path):
    timeline = made(beats=True)
    whole = timeline.intervals.loc[timeline.intervals["kind"] == "whole", ["t0_ns", "t1_ns"]].to_numpy(np.int64)
    rows, without = woken(timeline, "a@0", whole)
    assert without == {}
    assert {(row["scene"], row["step"]) for row in rows} == {
        (s, n) for s in ("alone", "corun:a+b") for n in (1, 2, 3, 4)
    }
    for _, own in pd.DataFrame(rows).groupby(["scene", "step"]):
        assert own["place"].tolist() == list(range(len(own)))
        edges = [*zip(own["t0_ns"], own["t1_ns"], strict=True)]
        assert all(one[1] == other[0] for one, other in pairwise(edges))
    write(timeline, tmp_path)
    write_rows(rows, PATHS, tmp_path / PATHS_FILE)
    with database([TraceFolder("t", tmp_path)]) as connection:
        query = query_of("path")
        own, by_thread = (
            ask(connection, query.sql, values_of(query, each)).read_pandas() for each in ([], ["by=thread"])
        )
    columns = ["part", "state", "reason", "alone_ms", "beside_ms"]
    expected = {
        ("own thread", "running", ""): (9, 9), ("own thread", "runnable", "idle"): (1, 1),
        ("other threads", "running", ""): (10, 10), ("other threads", "preempted", "b@1"): (0, 5),
    }  # fmt: skip
    for table, names in ((own, {}), (by_thread, {"own thread": "m", "other threads": "h"})):
        found = {tuple(row[:3]): row[3:] for row in table[columns].itertuples(index=False, name=None)}
        wanted = {(names.get(part, part), *rest): ms for (part, *rest), ms in expected.items()}
        assert found == {key: pytest.approx([1e-6 * each for each in ms]) for key, ms in wanted.items()}


def test_a_stretch_without_heartbeats_is_a_step_and_a_lead_without_states_has_a_reason():
    timeline = made(beats=False)
    rows, without = woken(timeline, "a@0", np.array([[0, 80], [1000, 1050], [1060, 1100]]))
    assert without == {}
    table = pd.DataFrame(rows)
    assert table.groupby(["scene", "step"])["ns"].sum().tolist() == [80, 50, 40]
    # A lead that has heartbeats has no other steps: not what lies between two losses without one.
    rows, without = woken(made(beats=True), "a@0", np.array([[0, 41], [62, 78], [1000, 1020]]))
    assert [(row["scene"], row["step"]) for row in rows if row["place"] == 0] == [("alone", 1), ("alone", 2)]
    assert without == {("corun:a+b", 1): "no whole step was recorded"}
    rows, without = woken(timeline, "b@1", np.array([[0, 80]]))
    assert rows == []
    assert set(without) == {("alone", 1), ("corun:a+b", 1)}
