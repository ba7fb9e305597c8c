"""Do the intervals of what explains a loss cover the truth: counters, Top-Down, phases and costs? Simulated studies.

Those of the losses themselves are in test_coverage.py, of carry-over in test_carryover.py, of others by their tests.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.design.pilot import costs
from castmates.analysis.explanations import counted_metrics, counters
from castmates.analysis.explanations.phases import STEP
from castmates.results.columns.launch import COUNTERS, TOPDOWN, WINDOWS
from castmates.results.columns.study import frame
from castmates.study.counter_keys import of_level
from tests.unit.phases.by_phase import phase_losses
from tests.unit.printed_intervals import assert_told
from tests.unit.windows_maker import one_slice

STUDIES, ROUNDS = 400, 3
MOVED, NOISE = 0.015, 0.01  # sd of what a launch adds to the difference, and of a window
EFFECTS = {"cache-misses": 0.3, "instructions": 0.02}
SHARE, POINTS = 0.3, 0.04
INPUT, FORWARD, LOSS = 0.2, 0.8, 0.05  # seconds of a step alone, and what it takes longer beside others
LAUNCHES = (3, 5, 10)


class Studies:
    """Windows of many studies of one mix, each a separate cohort: alone and co-run in every round."""

    def __init__(self, launches: int, seed: int) -> None:
        self.dice = np.random.default_rng([seed, launches])
        self.shape = (STUDIES, launches, ROUNDS, 2)
        study, launch, round_, scene = (axis.ravel() for axis in np.indices(self.shape))
        lead = np.array([f"lead{number:03d}" for number in range(STUDIES)], dtype=object)[study]
        corun = scene == 1
        windows = pd.DataFrame({
            "study": "s", "cohort": lead, "launch": launch + 1, "round": round_ + 1, "position": scene + 1,
            "window": 2 * round_ + scene + 1, "scene": np.where(corun, "corun:" + lead + "+x", "alone"),
            "kind": np.where(corun, "corun", "alone"), "mix": np.where(corun, lead + "+x", ""),
            "partition": "unmanaged", "member": lead + "@0", "workload": lead, "role": "lead", "unit": "step",
            "open_ns": 0, "close_ns": 10**9, "beats": 10, "units": 10.0, "rate": 1.0, "valid": True,
            "reasons": "", "reason_kinds": "",
            "platform": "measured", **one_slice(True),
        })  # fmt: skip
        self.windows = windows.reindex(columns=list(WINDOWS)).astype(dict(WINDOWS))

    def values(self, effect: float, apart: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """A value for every window that the co-run raises by `effect`; and by how much it did in these launches."""
        launch = self.dice.normal(0, apart, self.shape[:2])
        moved = effect + self.dice.normal(0, MOVED, self.shape[:2])
        values = launch[:, :, None, None] + self.dice.normal(0, NOISE, self.shape)
        values[..., 1] += moved[:, :, None]
        return values.ravel(), moved.mean(axis=1)

    def rows(self, columns: dict[str, str], **values: object) -> pd.DataFrame:
        table = self.windows[["study", "cohort", "launch", "window", "round", "scene", "member", "platform"]]
        counted = {"status": "counted", "running": 1.0, "scope": "thread", "source": "perf_event_open", "phase": "",
                   "note": "", "set": "x", "level": 1}  # fmt: skip
        return (
            frame([], columns).reindex(table.index).assign(**table, **(counted | values))[list(columns)].astype(columns)
        )


def covers(low, high, truth):
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    assert np.isfinite(low).all()
    return np.mean((low <= truth) & (truth <= high))


@cache
def counted(launches):
    studies = Studies(launches, seed=1)
    made = {event: studies.values(effect) for event, effect in EFFECTS.items()}
    tables = [studies.rows(dict(COUNTERS), event=event, value=np.exp(10 + logs)) for event, (logs, _) in made.items()]
    found = counters.counter_tables(pd.concat(tables, ignore_index=True), studies.windows)[0]
    here = {event: moved for event, (_, moved) in made.items()}
    ratio = "cache-misses per 1000 instructions"
    here[ratio] = here["cache-misses"] - here["instructions"]
    truths = EFFECTS | {ratio: EFFECTS["cache-misses"] - EFFECTS["instructions"]}
    return {
        metric: (
            covers(rows["ratio_low"], rows["ratio_high"], np.exp(truths[metric])),
            covers(rows["within_low"], rows["within_high"], np.exp(here[metric])),
        )
        for metric, rows in found.groupby("metric")
    }


@pytest.mark.parametrize("launches", LAUNCHES)
def test_changes_of_counters(launches):
    found = counted(launches)
    assert len(found) == 3
    for between, within in found.values():
        assert 0.915 <= between <= 0.985
        assert 0.915 <= within <= 0.985
        assert_told("counters.changes", "ratio_low", between)
        assert_told("counters.changes", "within_low", within)


@pytest.mark.parametrize("launches", LAUNCHES)
def test_shares_and_changes_of_top_down(launches):
    studies = Studies(launches, seed=2)
    values, moved = studies.values(POINTS)
    table = studies.rows(dict(TOPDOWN), metric="Backend_Bound", value=SHARE + values)
    shares, changes = counted_metrics.topdown_tables(table, studies.windows)
    for kind, truth in (("alone", SHARE), ("corun", SHARE + POINTS)):
        own = shares[shares["kind"] == kind]
        share = covers(own["low"], own["high"], 100 * truth)
        assert 0.915 <= share <= 0.985
        assert_told("counted_metrics.shares", "low", share)
    for name, here in (("points", 100 * POINTS), ("within", 100 * moved)):
        share = covers(changes[f"{name}_low"], changes[f"{name}_high"], here)
        assert 0.915 <= share <= 0.985
        assert_told("counted_metrics.changes", f"{name}_low", share)


@pytest.mark.parametrize("launches", LAUNCHES)
def test_the_change_that_is_named_because_it_is_largest_is_covered_less_often(launches):
    """Four categories of which none changes: the figure `topdown` names the largest change, which is luck."""
    studies = Studies(launches, seed=8)
    tables = [studies.rows(dict(TOPDOWN), metric=name, value=SHARE + studies.values(0.0)[0]) for name in of_level(1)]
    found = counted_metrics.topdown_tables(pd.concat(tables, ignore_index=True), studies.windows)[1]
    largest = found.loc[found["points"].abs().groupby(found["member"]).idxmax()]
    assert len(largest) == STUDIES
    assert 0.93 <= covers(found["points_low"], found["points_high"], 0.0) <= 0.97
    share = covers(largest["points_low"], largest["points_high"], 0.0)
    assert 0.75 <= share <= 0.9
    assert_told("figure topdown, the largest", "points_low", share)


@pytest.mark.parametrize("launches", LAUNCHES)
def test_losses_of_phases(launches):
    studies = Studies(launches, seed=3)
    values, moved = studies.values(LOSS, apart=0.005)  # a loss is given in per cent of the launch's own step
    forward = np.repeat(FORWARD + values, 3)
    length = INPUT + forward
    windows = studies.windows.loc[studies.windows.index.repeat(3)].reset_index(drop=True)
    step = np.tile([1, 2, 3], len(studies.windows))
    t_ns = np.round(1e9 * length * step).astype("int64")
    steps = windows[["study", "cohort", "launch", "window", "member", "platform"]].assign(
        slice=windows["window"],
        t_ns=t_ns,
        units=step,
        begin_ns=pd.array(t_ns, "Int64"),
        input_s=INPUT,
        forward_s=forward,
    )
    found = phase_losses(steps, studies.windows)
    for phase in ("forward", STEP):
        own = found[found["phase"] == phase]
        for name, here in (("loss", 100 * LOSS), ("within", 100 * moved)):
            share = covers(own[f"{name}_low"], own[f"{name}_high"], here)
            assert 0.915 <= share <= 0.985
            assert_told("phases", f"{name}_low", share)
    own = found[found["phase"] == "input"]
    assert np.allclose(own[["loss_pct", "loss_low", "loss_high"]], 0, atol=1e-6)


@pytest.mark.parametrize("launches", [1, 2, *LAUNCHES])
def test_costs_of_collectors(launches):
    """Below three launches the interval is that within them, and holds what these launches show."""
    dice = np.random.default_rng(4)
    moved = dice.normal(0, MOVED, (STUDIES, launches, 1))
    logs = -0.01 + moved + dice.normal(0, NOISE, (STUDIES, launches, 3))
    study, launch, _ = (axis.ravel() for axis in np.indices(logs.shape))
    found = costs(pd.DataFrame({"collector": study, "cohort": "c", "launch": launch, "difference": logs.ravel()}))
    truth = -0.01 + (moved.mean(axis=(1, 2)) if launches < 3 else 0.0)
    share = covers(found["low"], found["high"], 100 * np.expm1(truth))
    assert 0.915 <= share <= 0.985
    assert_told("costs", "low", share)
