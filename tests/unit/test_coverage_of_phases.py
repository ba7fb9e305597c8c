"""Do the intervals of counts by phase and of counts over the rounds cover the truth? Simulated studies."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.explanations.counters import over_rounds
from castmates.results.columns.launch import COUNTERS
from tests.unit.phases.by_phase import phase_counts
from tests.unit.printed_intervals import assert_told
from tests.unit.test_coverage_of_reasons import LAUNCHES, Studies, covers

EFFECT = 0.3
FORWARD = 0.5  # seconds of a step


@pytest.mark.parametrize("launches", LAUNCHES)
def test_changes_of_counts_by_phase(launches):
    studies = Studies(launches, seed=11)
    values, moved = studies.values(EFFECT)
    # The stays that were counted are a part of the step's, another one in every window.
    seconds = studies.dice.uniform(0.5, 5.0, len(values))
    counts = studies.rows(COUNTERS, event="cache-misses", value=np.exp(values) * seconds / FORWARD, seconds=seconds,
                          phase="forward", source="in-process")  # fmt: skip
    windows = studies.windows.loc[studies.windows.index.repeat(3)].reset_index(drop=True)
    step = np.tile([1, 2, 3], len(studies.windows))
    t_ns = np.round(1e9 * step).astype("int64")
    steps = windows[["study", "cohort", "launch", "window", "member", "platform"]].assign(
        t_ns=t_ns, units=step, begin_ns=pd.array(t_ns, "Int64"), forward_s=FORWARD, slice=windows["window"]
    )
    found = phase_counts([steps], [counts], studies.windows)
    assert len(found) == studies.shape[0]
    for name, truth in (("ratio", EFFECT), ("within", moved)):
        share = covers(found[f"{name}_low"], found[f"{name}_high"], np.exp(truth))
        assert 0.915 <= share <= 0.985
        assert_told("phases.phase_counts", f"{name}_low", share)


@pytest.mark.parametrize("launches", LAUNCHES)
def test_counts_by_round_and_their_drift(launches):
    """Launches differ in their level and in their drift, which is none on average."""
    studies = Studies(launches, seed=12)
    values, _ = studies.values(EFFECT)
    drift = np.repeat(studies.dice.normal(0, 0.02, studies.shape[:2]), studies.shape[2] * 2)
    values = values + drift * studies.windows["round"].to_numpy()
    counts = studies.rows(COUNTERS, event="cache-misses", value=np.exp(values))
    by_round, drifts = over_rounds([counts], [], studies.windows.assign(open_s=1.0))
    alone = by_round[by_round["kind"] == "alone"]
    for number in (1, 2, 3):
        own = alone[alone["round"] == number]
        share = covers(own["low"], own["high"], 1.0)
        assert 0.915 <= share <= 0.985
        assert_told("counters.by_round", "low", share)
    for kind in ("alone", "corun"):
        own = drifts[drifts["kind"] == kind]
        share = covers(own["drift_low"], own["drift_high"], 1.0)
        assert 0.915 <= share <= 0.985
        assert_told("counters.drifts", "drift_low", share)
