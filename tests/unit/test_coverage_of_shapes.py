"""What the headline interval covers where launches are not normal: heavy tails, skew, wild ones, two kinds of launches.

`python -m tests.unit.test_coverage_of_shapes` prints the table of docs/methodology.md.
"""

from functools import cache

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import over_launches

SEED, STUDIES, BLOCKS = 20261122, 5000, (3, 5, 10, 20)
SHAPES = {  # what a launch adds; the mean of each is 0
    "normal": lambda dice, size: dice.normal(0, 1, size),
    "heavy tails (t, 3 degrees)": lambda dice, size: dice.standard_t(3, size),
    "skewed (exponential)": lambda dice, size: dice.exponential(1, size) - 1,
    "one in ten is wild (+5 sd)": lambda dice, size: dice.normal(0, 1, size) + 5 * (dice.random(size) < 0.1) - 0.5,
    "two kinds, half and half": lambda dice, size: dice.choice([-1.0, 1.0], size) + dice.normal(0, 0.1, size),
}


@cache
def covered(shape, blocks):
    """Share of intervals that hold the truth."""
    values = SHAPES[shape](np.random.default_rng([SEED, blocks]), (STUDIES, blocks))
    place = [np.repeat(np.arange(STUDIES), blocks), ["c"] * values.size, np.tile(np.arange(blocks), STUDIES)]
    index = pd.MultiIndex.from_arrays(place, names=["row", "company", "block"])
    estimates = pd.DataFrame(
        {"value": values.ravel(), "rounds": 1, "variance": np.nan, "successive": np.nan}, index=index
    )
    found = over_launches(estimates, ["row"])
    return float(((found["low"] <= 0) & (found["high"] >= 0)).mean())


def test_normal_launches_are_covered_as_promised_and_heavy_tails_too():
    for blocks in BLOCKS:
        assert 0.938 <= covered("normal", blocks) <= 0.962  # four binomial errors
        assert 0.945 <= covered("heavy tails (t, 3 degrees)", blocks) <= 0.975


def test_what_the_page_says_of_the_others_is_so():
    assert covered("two kinds, half and half", 3) < 0.8 < 0.92 < covered("two kinds, half and half", 5)
    assert all(0.86 <= covered("skewed (exponential)", blocks) <= 0.935 for blocks in BLOCKS)
    assert all(0.88 <= covered("one in ten is wild (+5 sd)", blocks) <= 0.95 for blocks in BLOCKS)


def table():
    """The figures as the rows of a Markdown table."""
    rows = [f"| launches | {' | '.join(f'{blocks} blocks' for blocks in BLOCKS)} |", "|" + " --- |" * (len(BLOCKS) + 1)]
    rows += [f"| {shape} | {' | '.join(f'{100 * covered(shape, n):.0f}' for n in BLOCKS)} |" for shape in SHAPES]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
