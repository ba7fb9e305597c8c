"""What is analysed some launches at a time is, to the bit, what is analysed as a whole."""

import gc

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from castmates.analysis.core import once
from castmates.analysis.explanations import counted_metrics, counters
from castmates.results.columns.launch import COUNTERS, TOPDOWN
from castmates.results.columns.study import frame
from castmates.study.counter_keys import TREE
from tests.unit.phases.by_phase import phase_losses
from tests.unit.windows_maker import cohort, mix, plan, written

LAUNCH = ["cohort", "launch"]
PLAN = plan([cohort("a", mix("bert@0", "stream@1")), cohort("b", mix("dlrm@0", "stream@1", "chase@2"))], launches=4)
DICE = np.random.default_rng(5)
WINDOWS = written(PLAN, lambda *_: float(DICE.lognormal()))
ROWS = WINDOWS[["study", "cohort", "launch", "window", "round", "scene", "member", "platform"]].to_dict("records")
COUNTED = {"status": "counted", "running": 1.0, "scope": "thread", "source": "perf_event_open", "phase": "", "note": ""}
EVENTS = ("cache-misses", "instructions", "cycles", "page-faults")


def counts():
    rows = [
        {**row, **COUNTED, "event": event, "set": "x", "value": 0.0 if event == "page-faults" else DICE.lognormal()}
        for row in ROWS
        # The first launches count no cycles: the order of the metrics is that of the whole.
        for event in (EVENTS if row["launch"] > 1 else EVENTS[:2])
    ]
    return frame(rows, COUNTERS)


def shares():
    rows = [
        {**row, **COUNTED, "level": 1, "metric": one.name, "value": 0.25 + DICE.normal(0, 0.01)}
        for row in ROWS
        for one in TREE
        if one.level == 1
    ]
    return frame(rows, TOPDOWN)


def steps():
    rows = []
    for row in WINDOWS.to_dict("records"):
        at = 0
        for number in range(5):
            at += int(DICE.integers(10**8, 2 * 10**8))
            rows.append({key: row[key] for key in ("study", "cohort", "launch", "window", "member", "platform")}
                        | {"t_ns": at, "units": number + 1, "begin_ns": at - 10**8, "forward_s": 0.01 * DICE.random(),
                           "input_s": 0.01 * DICE.random(), "slice": row["window"]})  # fmt: skip
    return pd.DataFrame(rows).astype({"begin_ns": "Int64"})


def in_parts(table, size):
    launches = table[LAUNCH].apply(tuple, axis=1)
    known = list(dict.fromkeys(launches))
    return [table[launches.isin(known[at : at + size])].reset_index(drop=True) for at in range(0, len(known), size)]


@pytest.mark.parametrize(
    ("make", "analyse"),
    [
        (counts, lambda *given: counters.counter_tables(*given)[0]),
        (counts, lambda *given: counters.counter_tables(*given)[1]),
        (shares, lambda *given: counted_metrics.topdown_tables(*given)[0]),
        (shares, lambda *given: counted_metrics.topdown_tables(*given)[1]),
        (steps, phase_losses),
    ],
)
@pytest.mark.parametrize("size", [1, 3])
def test_parts_give_the_bits_of_the_whole(make, analyse, size):
    table = make()
    whole = analyse(table, WINDOWS)
    assert len(whole)
    assert_frame_equal(analyse(in_parts(table, size), WINDOWS), whole, check_exact=True)
    assert analyse([], WINDOWS).columns.tolist() == whole.columns.tolist()


@pytest.mark.parametrize("make", [counts, shares, steps])
def test_names_may_be_categories_that_differ_from_part_to_part_which_may_come_in_any_order(make):
    analyse = {
        counts: counters.counter_tables,
        shares: counted_metrics.topdown_tables,
        steps: lambda *given: [phase_losses(*given)],
    }
    table = make()
    mixed = table.sample(frac=1, random_state=3) if make is counts else table  # heartbeats stay in order
    names = [name for name in table if table[name].dtype.kind == "O"]
    parts = [
        part.assign(**{name: pd.Categorical(part[name], ["?", *part[name].unique()[::-1]]) for name in names})
        for part in reversed(in_parts(mixed, 3))
    ]
    for found, whole in zip(analyse[make](parts, WINDOWS), analyse[make](table, WINDOWS), strict=True):
        order = [name for name in ("lead", "kind", "mix", "partition", "phase", "event", "metric") if name in whole]
        known = [one.sort_values(order, ignore_index=True) for one in (found, whole)]
        assert_frame_equal(*known, rtol=1e-12)


def test_something_is_made_once_of_each_object():
    class Thing:
        pass

    made = []
    make = once(lambda of: made.append(of) or len(made))
    one, other = Thing(), Thing()
    assert [make(one), make(one), make(other), make(one)] == [1, 1, 2, 1]
    made.clear()
    del one
    gc.collect()
    assert [make(other), make(Thing())] == [2, 1]
