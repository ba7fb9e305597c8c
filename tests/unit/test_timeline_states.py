"""The state machine of threads: the picture of its docstring, and switches and wake-ups that are missing."""

import numpy as np
import pytest

from castmates.timeline.states import (
    BLOCKED,
    EDGE,
    GONE,
    NONE,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    UNWOKEN,
    chains,
    joined,
    rows_of,
)

END = 100


def shown(*edges: tuple[int, int], group: int = 0) -> list[tuple[int, int, int]]:
    """Begin, end and state of what is known between edges, given by their times and what begins there."""
    table = rows_of(
        EDGE, group=np.full(len(edges), group), t=[t for t, _ in edges], state=[state for _, state in edges]
    )
    links = chains(table, END)
    known = links[~links["missing"] & (links["state"] != GONE)]
    return list(zip(known["t0"].tolist(), known["t1"].tolist(), known["state"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (  # as in the docstring
            [(0, RUNNING), (10, PREEMPTED), (20, RUNNING), (30, BLOCKED), (40, RUNNABLE), (50, RUNNING)],
            [(0, 10, RUNNING), (10, 20, PREEMPTED), (20, 30, RUNNING), (30, 40, BLOCKED), (40, 50, RUNNABLE),
             (50, END, RUNNING)],
        ),
        ([(0, BLOCKED), (10, RUNNABLE), (11, RUNNABLE), (20, RUNNING)],  # the kernel reports a wake-up twice
         [(0, 10, BLOCKED), (10, 20, RUNNABLE), (20, END, RUNNING)]),
        ([(0, RUNNING), (5, RUNNABLE), (10, PREEMPTED), (15, RUNNABLE), (20, RUNNING)],  # woken while it did not sleep
         [(0, 10, RUNNING), (10, 20, PREEMPTED), (20, END, RUNNING)]),
        ([(0, BLOCKED), (10, RUNNING)], [(0, 10, UNWOKEN), (10, END, RUNNING)]),
        ([(0, RUNNING), (10, RUNNING)], [(10, END, RUNNING)]),  # out, and in again, is missing
        ([(0, PREEMPTED), (10, BLOCKED)], [(10, END, BLOCKED)]),
        ([(0, BLOCKED), (10, RUNNABLE), (20, BLOCKED)], [(0, 10, BLOCKED), (20, END, BLOCKED)]),
        ([(0, RUNNABLE), (10, RUNNING)], [(0, 10, RUNNABLE), (10, END, RUNNING)]),  # not seen before
        ([(0, RUNNING), (10, GONE), (20, RUNNABLE), (30, RUNNING)],  # another thread has its number
         [(0, 10, RUNNING), (20, 30, RUNNABLE), (30, END, RUNNING)]),
        ([], []),
    ],
)  # fmt: skip
def test_states_between_edges(edges, expected):
    assert shown(*edges) == expected


def test_threads_do_not_share_edges():
    edges = rows_of(EDGE, group=[1, 1, 2, 2], t=[0, 10, 5, 20], state=[RUNNING, BLOCKED, RUNNABLE, RUNNING])
    links = chains(edges, np.array([50, 50, 60, 60]))
    assert links["t1"].tolist() == [10, 50, 20, 60]
    assert links["next_state"].tolist() == [BLOCKED, NONE, RUNNING, NONE]


def test_joined_tables_are_those_of_numpy():
    parts = [rows_of(EDGE, t=np.arange(count), cpu=3) for count in (2, 0, 5)]
    assert joined(parts).tolist() == np.concatenate(parts).tolist()
    assert joined(parts).dtype == EDGE
