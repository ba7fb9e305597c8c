"""Knees: what the rule finds for curves that are known, and how often its interval holds the true knee."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.partitions.sensitivity import (
    AT_LEAST,
    BETWEEN,
    KNOWN,
    NOT_REACHED,
    TOO_FEW,
    knees,
    sensitivity_table,
)
from castmates.results.columns.partitions import SENSITIVITY
from castmates.results.columns.study import frame
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.printed_intervals import assert_told

T95 = 2.776445105  # two-sided, four degrees of freedom


def curve(rates, half=1.0, ways=None, beside="stream", mix="a+stream", launches=5):
    """A curve with these rates, the first of them at one way."""
    half = np.broadcast_to(half, len(rates))
    return frame(
        [
            {"study": "s", "mix": mix, "lead": "a", "antagonists": beside, "member": "a@0", "curve": "split",
             "partition": f"split-{count}", "lead_ways": count, "rate_pct": rate, "rate_low": rate - width,
             "rate_high": rate + width, "launches": launches, "rounds": 15, "platform": "modelled",
             "machine": ""}
            for count, rate, width in zip(ways or range(1, len(rates) + 1), rates, half, strict=True)
        ],
        SENSITIVITY,
    )  # fmt: skip


def one(table, ways=None):
    (row,) = knees(table, ways).to_dict("records")
    return [None if pd.isna(row[name]) else int(row[name]) for name in ("knee", "knee_low", "knee_high")], row[
        "verdict"
    ]


@pytest.mark.parametrize(
    ("rates", "half", "expected"),
    [
        ([80, 90, 97, 98], 1, ([3, 3, 3], KNOWN)),
        ([80, 94.5, 95.5, 98], 1, ([3, 2, 4], BETWEEN)),
        ([80, 94.5, 95.2, 95.3], 1, ([3, 2, None], AT_LEAST)),
        ([70, 80, 85, 90], 1, ([None, None, None], NOT_REACHED)),
        ([97, 98, 99, 99], 1, ([1, 1, 1], KNOWN)),
        # A dip: from four ways on it is kept, though two ways would do.
        ([80, 97, 90, 98], 1, ([4, 2, 4], BETWEEN)),
        ([80, 90, 97, 98], np.nan, ([3, None, None], TOO_FEW)),
    ],
)
def test_the_knee_of_a_curve(rates, half, expected):
    assert one(curve(rates, half)) == expected


def test_a_lead_alone_keeps_everything_with_the_whole_cache():
    alone = curve([70, 80, 85, 90], beside="", mix="a")
    assert one(alone, ways=12) == ([12, 12, 12], KNOWN)
    assert knees(alone, 12)["most_ways"].tolist() == [4]
    assert one(curve([70, 80, 94.5], beside="", mix="a"), ways=12) == ([12, 3, 12], BETWEEN)


def test_curves_are_told_apart():
    table = pd.concat([curve([80, 97]), curve([97, 98], beside="chase", mix="a+chase")], ignore_index=True)
    assert knees(table, 12).set_index("antagonists")["knee"].to_dict() == {"chase": 1, "stream": 2}
    assert knees(frame([], SENSITIVITY), 12).empty


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.floats(50, 105), st.floats(0.01, 8)), min_size=1, max_size=12),
    st.floats(60, 99),
    st.randoms(),
)
def test_the_interval_holds_the_estimate_and_no_order_of_rows_matters(points, kept, dice):
    table = curve([rate for rate, _ in points], [half for _, half in points])
    shuffled = table.sample(frac=1, random_state=dice.randrange(1000))
    found = knees(table, None, kept)
    pd.testing.assert_frame_equal(found, knees(shuffled, None, kept))
    (row,) = found.to_dict("records")
    ends = [np.inf if pd.isna(row[name]) else int(row[name]) for name in ("knee_low", "knee", "knee_high")]
    assert ends == sorted(ends)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_interval_holds_the_true_knee(seed):
    """Simulated: 4000 curves of 5 launches, whose points share their launch's `alone` and so are correlated."""
    rng = np.random.default_rng(seed)
    ways, studies, launches = np.arange(1, 12), 4000, 5
    true = -np.log(1 - 0.35 * np.exp(-0.42 * ways))  # in log units; 95 % are kept from five ways on
    truth = int(ways[true <= -np.log(0.95)][0])
    logs = true + rng.normal(0, 0.012, (studies, launches, 1)) + rng.normal(0, 0.01, (studies, launches, len(ways)))
    mean, half = logs.mean(axis=1), T95 * logs.std(axis=1, ddof=1) / np.sqrt(launches)
    table = pd.DataFrame(
        {
            "study": np.repeat(np.arange(studies).astype(str), len(ways)),
            "mix": "m", "lead": "a", "antagonists": "b", "member": "a@0", "curve": "split",
            "platform": "modelled", "machine": "",
            "lead_ways": np.tile(ways, studies), "launches": launches,
            "rate_pct": 100 * np.exp(-mean).ravel(), "rate_low": 100 * np.exp(-mean - half).ravel(),
            "rate_high": 100 * np.exp(-mean + half).ravel(),
        }
    )  # fmt: skip
    found = knees(table, None)
    low, high = (found[name].astype("float64").to_numpy() for name in ("knee_low", "knee_high"))
    too_high, too_low = (np.nan_to_num(low, nan=np.inf) > truth).mean(), (high < truth).mean()
    error = 3 * np.sqrt(0.025 * 0.975 / studies)
    assert too_high <= 0.025 + error
    assert too_low <= 0.025 + error
    assert_told("knees", "knee_low", 1 - too_high - too_low)
    assert (found["knee"] != truth).mean() > 0.1  # or nothing would be tested


def test_points_are_the_effects():
    plan = made(atoms())
    effects = estimate_effects(plan, windows(plan, noise=0.01), 0.02)
    table = sensitivity_table(plan, effects)
    assert set(table["partition"]) == {"split-2", "split-4", "split-8", "lead-2", "lead-6"}
    row = table[table["partition"] == "split-4"].iloc[0]
    own = effects[(effects["partition"] == "split-4") & (effects["baseline"] == "alone")].iloc[0]
    assert row["rate_pct"] == pytest.approx(100 - own["loss_pct"])
    assert [row["rate_low"], row["rate_high"]] == pytest.approx([100 - own["loss_high"], 100 - own["loss_low"]])
    assert row["lead_bytes"] == 4 * plan.cache.way_bytes
    assert row["shared_ways"] == 0
    io = plan.model_copy(update={"cache": plan.cache.model_copy(update={"shareable": 0b11})})
    assert sensitivity_table(io, effects).set_index("partition")["shared_ways"]["split-4"] == 2
