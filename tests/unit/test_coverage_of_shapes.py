"""What the headline interval covers where launches are not normal: heavy tails, skew, wild ones, two kinds of launches.

`python -m tests.unit.test_coverage_of_shapes` prints the table of docs/methodology.md.
"""

from functools import cache

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import over_launches

SEED, STUDIES, LAUNCHES = 20261122, 5000, (3, 5, 10, 20)
SHAPES = {  # what a launch adds; the mean of each is 0
    "normal": lambda dice, size: dice.normal(0, 1, size),
    "heavy tails (t, 3 degrees)": lambda dice, size: dice.standard_t(3, size),
    "skewed (exponential)": lambda dice, size: dice.exponential(1, size) - 1,
    "one in ten is wild (+5 sd)": lambda dice, size: dice.normal(0, 1, size) + 5 * (dice.random(size) < 0.1) - 0.5,
    "two kinds, half and half": lambda dice, size: dice.choice([-1.0, 1.0], size) + dice.normal(0, 0.1, size),
}


@cache
def covered(shape, launches):
    """Share of intervals that hold the truth."""
    values = SHAPES[shape](np.random.default_rng([SEED, launches]), (STUDIES, launches))
    place = [np.repeat(np.arange(STUDIES), launches), ["c"] * values.size, np.tile(np.arange(launches), STUDIES)]
    index = pd.MultiIndex.from_arrays(place, names=["row", "cohort", "launch"])
    estimates = pd.DataFrame(
        {"value": values.ravel(), "rounds": 1, "variance": np.nan, "successive": np.nan}, index=index
    )
    found = over_launches(estimates, ["row"])
    return float(((found["low"] <= 0) & (found["high"] >= 0)).mean())


def test_normal_launches_are_covered_as_promised_and_heavy_tails_too():
    for launches in LAUNCHES:
        assert 0.938 <= covered("normal", launches) <= 0.962  # four binomial errors
        assert 0.945 <= covered("heavy tails (t, 3 degrees)", launches) <= 0.975


def test_what_the_page_says_of_the_others_is_so():
    assert covered("two kinds, half and half", 3) < 0.8 < 0.92 < covered("two kinds, half and half", 5)
    assert all(0.86 <= covered("skewed (exponential)", launches) <= 0.935 for launches in LAUNCHES)
    assert all(0.88 <= covered("one in ten is wild (+5 sd)", launches) <= 0.95 for launches in LAUNCHES)


def table():
    """The figures as the rows of a Markdown table."""
    rows = [
        f"| launches | {' | '.join(f'{launches} launches' for launches in LAUNCHES)} |",
        "|" + " --- |" * (len(LAUNCHES) + 1),
    ]
    rows += [f"| {shape} | {' | '.join(f'{100 * covered(shape, n):.0f}' for n in LAUNCHES)} |" for shape in SHAPES]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
