"""The sentences of a comparison claim no more than the intervals of each side show."""

import math

import pytest

from castmates.report.comparison.compare import Described
from castmates.report.comparison.words import _loss, _rates, _settings

MINUS = "\N{MINUS SIGN}"
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


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (LOSES, LOSES, "x beside y loses 20.0 % [16.7, 23.1] in A and 20.0 % [16.7, 23.1] in B"),
        (UNSURE, LOSES, f"x beside y shows no clear change ({MINUS}1.0 % [{MINUS}3.1, 2.0]) in A and loses 20.0 % "
         "[16.7, 23.1] in B"),
        ((1.0, 1.0, 1.0), LOSES, "x beside y shows no clear change (0.0 % [0.0, 0.0]) in A and loses 20.0 %"),
        ((0.8, 0.75, 0.9), UNSURE, "x beside y gains 25.0 % [11.1, 33.3] in A and shows no clear change ("),
        (FEW, FEW, "x beside y lost 20.0 % (no interval) in A and 20.0 % (no interval) in B"),
    ],
)  # fmt: skip
def test_a_side_states_no_direction_that_its_interval_does_not_show(a, b, said):
    assert _loss(row(a, b), 0.02).startswith(said)


def test_launches_are_told_also_where_nothing_is_compared():
    said = _loss(row(LOSES, LOSES, "platforms differ"), 0.02)
    assert said.endswith("in B, in 4 and 4 launches; they are not compared because their platforms differ.")
    none = _loss(row(LOSES, (math.nan,) * 3, "no data", launches=(4, 0)), 0.02)
    assert none == "x beside y loses 20.0 % [16.7, 23.1] in A and has no data in B (4 and 0 launches)."


class Two:
    """The rows alone; no study stands behind them."""

    def __init__(self, *rows):
        self.rows = rows

    def leads(self, partitioned):
        import pandas as pd

        return pd.DataFrame([] if partitioned else self.rows)


def test_ratios_of_rates_have_their_launches():
    said = next(_rates(Two(row(LOSES, LOSES))))
    assert said == (
        "Alone, x makes 1.200 [1.100, 1.300] times as many units (step) a second in B as in A; 1.200 [1.100, 1.300] "
        "beside y (in 4 and 4 launches)."
    )
    few = next(_rates(Two(row(FEW, FEW, launches=(2, 5)))))
    assert few.endswith("a second in B as in A; 1.200 beside y (in 2 and 5 launches, too few for an interval).")


def test_failed_launches_of_a_side_are_told_with_their_reasons():
    quick = Described("A", "quick", "results/quick", 9, ("measured",), ("vm",), ("it died of SIGSEGV",) * 2 + ("",))
    assert quick.sentence == (
        "A is quick (results/quick): 9 launches, measured, on vm; 3 more failed (it died of SIGSEGV)."
    )
    none = Described("B", "x", "results/x", 0, (), (), ("", ""))
    assert none.sentence == "B is x (results/x): 0 launches; 2 more failed."
    assert Described("B", "x", "x", 1, ("modelled",), ()).sentence == "B is x (x): 1 launch, modelled."


def test_whatever_differs_is_named_before_the_table():
    many = [(f"Fact {number}", "1", "2") for number in range(10)]

    class Differing:
        differences = many

    assert list(_settings(Differing())) == [
        "Machines, versions or designs differ too, as recorded: " + ", ".join(one for one, *_ in many[:8]) +
        " and 2 more."
    ]  # fmt: skip
    Differing.differences = []
    assert not list(_settings(Differing()))
