"""The sentences of a comparison claim no more than the intervals of each side show."""

import math

import pandas as pd

from castmates.report.comparison.compare import Described
from castmates.report.comparison.words import _loss, _rates, _settings
from tests.unit.snapshots import assert_as_before

LOSES, UNSURE, FEW = (1.25, 1.2, 1.3), (1 / 1.01, 0.97, 1.02), (1.25, math.nan, math.nan)


def row(a, b, verdict="unclear", launches=(4, 4)):
    ends = ("", "_low", "_high")
    sides = {f"slowdown_{side}{end}": one for side, of in zip("ab", (a, b), strict=True)
             for end, one in zip(ends, of, strict=True)}  # fmt: skip
    rate = (1.2, math.nan, math.nan) if min(launches) < 3 else (1.2, 1.1, 1.3)
    rates = {f"{name}_rate_ratio{end}": one for name in ("baseline", "scene")
             for end, one in zip(ends, rate, strict=True)}  # fmt: skip
    return {"lead": "x", "antagonists": "y", "unit": "step", "verdict": verdict, "ratio": 1.0, "ratio_low": 0.9,
            "ratio_high": 1.1, "launches_a": launches[0], "launches_b": launches[1]} | sides | rates  # fmt: skip


class Two:
    """The rows alone; no study stands behind them."""

    def __init__(self, *rows, differences=()):
        self.rows, self.differences = rows, differences

    def leads(self, partitioned):
        return pd.DataFrame([] if partitioned else self.rows)


def test_a_comparison_states_no_direction_that_its_intervals_do_not_show():
    nothing, many = (math.nan,) * 3, [(f"Fact {number}", "1", "2") for number in range(10)]
    rows = {
        "both lose": row(LOSES, LOSES),
        "one is not clear": row(UNSURE, LOSES),
        "one is the same": row((1.0, 1.0, 1.0), LOSES),
        "one gains": row((0.8, 0.75, 0.9), UNSURE),
        "no intervals": row(FEW, FEW, launches=(2, 5)),
        "platforms differ": row(LOSES, LOSES, "platforms differ"),
        "no data in B": row(LOSES, nothing, "no data", launches=(4, 0)),
    }
    said = {name: [_loss(each, 0.02), *_rates(Two(each))] for name, each in rows.items()}
    failed = ("it died of SIGSEGV",) * 2 + ("",)
    said["sides"] = [
        Described("A", "quick", "results/quick", 9, ("measured",), ("vm",), failed).sentence,
        Described("B", "x", "results/x", 0, (), (), ("", "")).sentence,
        Described("B", "x", "x", 1, ("modelled",), ()).sentence,
    ]
    said["ten facts differ"] = _settings(Two(differences=many))
    said["nothing differs"] = _settings(Two())
    assert_as_before("comparison", said)
