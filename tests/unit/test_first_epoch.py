"""The first epoch against a cached one: which traces are compared, and whether the intervals hold the truth."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.operations.per_trace import WAITING, Traces, first_epoch
from castmates.results.columns.operations import FIRST_EPOCH
from castmates.study.profile_launches import CACHED, FIRST
from tests.unit.operations_maker import COMMON, THREADS
from tests.unit.printed_intervals import assert_told

WAIT = {"operation": "next", "type": "IteratorGetNext", "layer": WAITING, "layer_kind": "input", "direction": "input"}
STEPS, COMPUTE_MS = 4, 8.0


def made(waits: Sequence[tuple[str, int, int, str, float]], scene: str = "alone") -> tuple[Traces, pd.DataFrame]:
    """Traces of one lead alone: (study, launch, round, epoch, ms of a step that wait for the batch)."""
    rows, steps, about = [], [], []
    for study, launch, number, epoch, wait in waits:
        repetition = 2 * number - (epoch == FIRST)
        trace = COMMON | {"study": study, "cohort": f"c-{study}", "launch": launch, "round": repetition}
        trace |= {"scene": scene, "kind": "alone", "mix": ""}
        rows.append(trace | WAIT | {"calls": 1.0, "own_ms": wait, "shared_ms": wait})
        steps.append(trace | {"steps": STEPS, "step_ms": COMPUTE_MS + wait, **THREADS})
        read = 8_000_000 if epoch == FIRST else 0
        about.append({name: trace[name] for name in ("cohort", "launch", "scene", "round")})
        about[-1] |= {"epoch": epoch, "pair": number, "storage_bytes": read}
    return Traces(pd.DataFrame(rows), pd.DataFrame(steps), pd.DataFrame(rows)), pd.DataFrame(about)


def test_traces_of_one_round_are_compared_and_a_cached_one_alone_is_shown_without_a_difference():
    waits = [
        ("s", launch, 1, epoch, 2.0 if epoch == FIRST else 0.5) for launch in (1, 2, 3) for epoch in (CACHED, FIRST)
    ]
    waits.append(("s", 3, 2, CACHED, 0.5))  # the other trace of this round failed
    table = first_epoch(*made(waits))
    assert set(FIRST_EPOCH) <= {*table.columns}
    assert table["epoch"].tolist() == [FIRST, CACHED]
    first, cached = (table[table["epoch"] == epoch].iloc[0] for epoch in (FIRST, CACHED))
    assert (first["waiting_ms"], first["storage_mb"], first["verdict"]) == (2.0, 2.0, "input-bound")
    assert (cached["waiting_ms"], cached["storage_mb"], cached["verdict"]) == (0.5, 0.0, "compute-bound")
    assert first[["longer", "longer_low", "longer_high"]].tolist() == pytest.approx([1.5] * 3)
    assert first["more"] == pytest.approx(2 / 10 - 0.5 / 8.5)
    assert cached[["longer", "more"]].isna().all()
    assert first_epoch(*made(waits[-1:]))["epoch"].tolist() == [CACHED]


@pytest.mark.simulation
def test_the_intervals_hold_the_truth():
    studies, launches, longer = 1500, 4, 1.0
    dice = np.random.default_rng(1)
    usual = dice.normal(3.0, 0.3, (studies, launches, 1, 1))
    effect = longer + dice.normal(0, 0.2, (studies, launches, 1, 1))
    waits = usual + effect * np.array([0.0, 1.0]) + dice.normal(0, 0.1, (studies, launches, 2, 2))
    places = itertools.product(range(studies), range(launches), range(2), enumerate((CACHED, FIRST)))
    traced = [
        (f"s{study}", launch + 1, number + 1, epoch, waits[study, launch, number, place])
        for study, launch, number, (place, epoch) in places
    ]
    found = first_epoch(*made(traced))
    first = found[found["epoch"] == FIRST]
    assert len(first) == studies
    held = float(((first["longer_low"] < longer) & (longer < first["longer_high"])).mean())
    assert_told("first_epoch", "longer_low", held)
    many = dice.normal(3.0, 0.3, 10**6) + dice.normal(0, 0.1, 10**6)
    later = many + longer + dice.normal(0, 0.2, 10**6)
    more = float((later / (later + COMPUTE_MS) - many / (many + COMPUTE_MS)).mean())
    assert_told("first_epoch", "more_low", float(((first["more_low"] < more) & (more < first["more_high"])).mean()))
