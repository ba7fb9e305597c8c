"""Do the intervals of what explains a loss cover the truth: counters, Top-Down, phases and costs? Simulated studies.

Those of the losses themselves are in test_coverage.py, of carry-over in test_carryover.py, of others by their tests.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from castmates.analysis import counters, topdown
from castmates.analysis.costs import costs
from castmates.analysis.phases import STEP, estimate_phases
from castmates.tables import COUNTERS, TOPDOWN, WINDOWS, frame

STUDIES, ROUNDS = 400, 3
MOVED, NOISE = 0.015, 0.01  # sd of what a launch adds to the difference, and of a window
EFFECTS = {"cache-misses": 0.3, "instructions": 0.02}
SHARE, POINTS = 0.3, 0.04
INPUT, FORWARD, LOSS = 0.2, 0.8, 0.05  # seconds of a step alone, and what it takes longer beside others
BLOCKS = (3, 5, 10)


class Studies:
    """Windows of many studies of one mix, each a company of its own: solo and co-run in every round."""

    def __init__(self, blocks: int, seed: int) -> None:
        self.dice = np.random.default_rng([seed, blocks])
        self.shape = (STUDIES, blocks, ROUNDS, 2)
        study, block, round_, scene = (axis.ravel() for axis in np.indices(self.shape))
        lead = np.array([f"lead{number:03d}" for number in range(STUDIES)], dtype=object)[study]
        corun = scene == 1
        windows = pd.DataFrame({
            "study": "s", "company": lead, "block": block + 1, "round": round_ + 1, "position": scene + 1,
            "window": 2 * round_ + scene + 1, "scene": np.where(corun, "corun:" + lead + "+x", "solo"),
            "kind": np.where(corun, "corun", "solo"), "mix": np.where(corun, lead + "+x", ""),
            "partition": "unmanaged", "member": lead + "@0", "workload": lead, "role": "lead", "unit": "step",
            "open_ns": 0, "close_ns": 10**9, "beats": 10, "units": 10.0, "rate": 1.0, "valid": True, "reasons": "",
            "platform": "measured",
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
        table = self.windows[["study", "company", "block", "window", "round", "scene", "member", "platform"]]
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
def counted(blocks):
    studies = Studies(blocks, seed=1)
    made = {event: studies.values(effect) for event, effect in EFFECTS.items()}
    tables = [studies.rows(dict(COUNTERS), event=event, value=np.exp(10 + logs)) for event, (logs, _) in made.items()]
    found = counters.changes(pd.concat(tables, ignore_index=True), studies.windows)
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


@pytest.mark.parametrize("blocks", BLOCKS)
def test_changes_of_counters(blocks):
    found = counted(blocks)
    assert len(found) == 3
    for between, within in found.values():
        assert 0.915 <= between <= 0.985
        assert 0.915 <= within <= 0.985


@pytest.mark.parametrize("blocks", BLOCKS)
def test_shares_and_changes_of_top_down(blocks):
    studies = Studies(blocks, seed=2)
    values, moved = studies.values(POINTS)
    table = studies.rows(dict(TOPDOWN), metric="Backend_Bound", value=SHARE + values)
    shares, changes = topdown.tables(table, studies.windows)
    for kind, truth in (("solo", SHARE), ("corun", SHARE + POINTS)):
        own = shares[shares["kind"] == kind]
        assert 0.915 <= covers(own["low"], own["high"], 100 * truth) <= 0.985
    assert 0.915 <= covers(changes["points_low"], changes["points_high"], 100 * POINTS) <= 0.985
    assert 0.915 <= covers(changes["within_low"], changes["within_high"], 100 * moved) <= 0.985


@pytest.mark.parametrize("blocks", BLOCKS)
def test_losses_of_phases(blocks):
    studies = Studies(blocks, seed=3)
    values, moved = studies.values(LOSS, apart=0.005)  # a loss is told in per cent of the launch's own step
    forward = np.repeat(FORWARD + values, 3)
    length = INPUT + forward
    windows = studies.windows.loc[studies.windows.index.repeat(3)].reset_index(drop=True)
    step = np.tile([1, 2, 3], len(studies.windows))
    t_ns = np.round(1e9 * length * step).astype("int64")
    steps = windows[["study", "company", "block", "window", "member", "platform"]].assign(
        t_ns=t_ns, units=step, begin_ns=pd.array(t_ns, "Int64"), input_s=INPUT, forward_s=forward
    )
    found = estimate_phases(steps, studies.windows)
    for phase in ("forward", STEP):
        own = found[found["phase"] == phase]
        assert 0.915 <= covers(own["loss_low"], own["loss_high"], 100 * LOSS) <= 0.985
        assert 0.915 <= covers(own["within_low"], own["within_high"], 100 * moved) <= 0.985
    own = found[found["phase"] == "input"]
    assert np.allclose(own[["loss_pct", "loss_low", "loss_high"]], 0, atol=1e-6)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_costs_of_collectors(blocks):
    dice = np.random.default_rng(4)
    logs = -0.01 + dice.normal(0, MOVED, (STUDIES, blocks, 1)) + dice.normal(0, NOISE, (STUDIES, blocks, 2))
    study, block, _ = (axis.ravel() for axis in np.indices(logs.shape))
    found = costs(pd.DataFrame({"collector": study, "company": "c", "block": block, "difference": logs.ravel()}))
    assert 0.915 <= covers(found["low"], found["high"], 100 * np.expm1(-0.01)) <= 0.985
