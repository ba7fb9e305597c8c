"""Do the means over random mixes hold what they claim? Simulated studies of drawn mixes, through the very functions.

`python -m tests.unit.test_coverage_of_mixes` prints the table of docs/methodology.md.
"""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from castmates.analysis.effects.system_over_mixes import Draw, Launches, of_all, of_these
from castmates.study.drawing import Terms, drawn_on
from tests.unit.printed_intervals import assert_told

pytestmark = pytest.mark.simulation
STUDIES, SEED = 400, 20261126
COHORT = 6  # mixes of a lead that share a launch
# workloads, leads among them, fewest and most antagonists, mixes, launches
DRAWS = {
    "10 pairs of 6": (6, 6, 1, 1, 10, 3),
    "28 of all 30 pairs of 6": (6, 6, 1, 1, 28, 5),
    "40 of 1 to 3 beside 8": (8, 8, 1, 3, 40, 5),
    "40 of 1 to 3 beside 3 of 12": (12, 3, 1, 3, 40, 5),
    "12 of 1 to 3 beside 8, too few": (8, 8, 1, 3, 12, 5),
    "of 40 of 1 to 3 beside 8 those of 2": (8, 8, 1, 3, 40, 5),
}
ONLY = {"of 40 of 1 to 3 beside 8 those of 2": 2}  # antagonists: the row of one size
NOISES = {  # sd, in log units: of a member in one mix alone; of a mix in a launch, and of a launch as a whole
    "workloads decide": (0.0, 0.01),
    "each mix differs": (0.05, 0.01),
    "launches differ": (0.05, 0.05),
}
CASES = [(draw, noise) for draw in DRAWS for noise in NOISES]


class World:
    """Workloads with a sensitivity and a pressure; the log STP of a mix follows, and has something specific to it."""

    def __init__(self, count, specific, dice):
        self.sensitivity, self.pressure = dice.uniform(0.02, 0.5, count), dice.uniform(0.05, 1.0, count)
        self.specific, self.dice, self.known = specific, dice, {}

    def stp(self, members):
        key = tuple(sorted(members))
        if key not in self.known:
            own, everyone = list(key), self.pressure[list(key)].sum()
            slowdowns = 1 + self.sensitivity[own] * (everyone - self.pressure[own])
            rates = np.exp(self.dice.normal(0, self.specific, len(own))) / slowdowns
            self.known[key] = float(np.log(rates.sum()))
        return self.known[key]


def study(draw, noise, seed):
    """Whether the two intervals of one study hold their truths, and how wide they are."""
    count, leads, least, most, mixes, launches = DRAWS[draw]
    specific, scatter = NOISES[noise]
    dice = np.random.default_rng((SEED, seed))
    world, names = World(count, specific, dice), [str(number) for number in range(count)]
    terms = Terms(seed, names[:leads], names, range(least, most + 1))
    members = [(mix.lead, *mix.antagonists) for mix in drawn_on(terms, (), mixes)]
    members = [each for each in members if len(each) - 1 == ONLY.get(draw, len(each) - 1)]
    sizes = [len(each) - 1 for each in members]
    true = np.array([world.stp([int(name) for name in each]) for each in members])
    of_size = {
        size: np.mean([world.stp([int(lead), *map(int, others)])
                       for lead in terms.leads for others in combinations(terms.beside(lead), size)])
        for size in set(sizes)
    }  # fmt: skip
    measured = launched(true, members, launches, scatter, dice)
    population = Draw(terms.leads, names).population(members, by_members=True)
    adjusted = population.estimable
    if not adjusted:
        population = Draw(terms.leads, names).population(members, by_members=False)
    these, everything = of_these(measured), of_all(measured, population)
    truths = (true.mean(), np.mean([of_size[size] for size in sizes]))
    held = [one.low <= truth <= one.high for one, truth in zip((these, everything), truths, strict=True)]
    return *held, these.high - these.low, everything.high - everything.low, adjusted


def launched(true, members, launches, scatter, dice):
    led, cohorts = {}, []
    for lead, *_ in members:
        cohorts.append((lead, led.get(lead, 0) // COHORT))
        led[lead] = led.get(lead, 0) + 1
    codes = {cohort: code for code, cohort in enumerate(dict.fromkeys(cohorts))}
    cohort = np.repeat([codes[each] for each in cohorts], launches)
    launch = cohort * launches + np.tile(np.arange(launches), len(true))
    shared = dice.normal(0, scatter, len(codes) * launches)
    values = np.repeat(true, launches) + shared[launch] + dice.normal(0, scatter, len(launch))
    return Launches(np.repeat(np.arange(len(true)), launches), launch, cohort, values)


@cache
def covered(draw, noise):
    """How often both intervals hold the truth, their mean widths, and how often who is in a mix was allowed for."""
    return np.mean([study(draw, noise, seed) for seed in range(STUDIES)], axis=0)


@pytest.mark.parametrize(("draw", "noise"), CASES)
def test_the_intervals_hold_the_truth(draw, noise):
    these, everything, _, wide, adjusted = covered(draw, noise)
    assert these >= 0.93
    assert everything >= 0.92
    assert adjusted == (0 if "too few" in draw else 1)
    assert wide > covered(draw, noise)[2], "more can be chance over other mixes than over these"
    assert_told("system_over_mixes", "low", these)
    assert_told("system_over_mixes", "all_low", everything)


def test_a_balanced_draw_is_no_simple_random_sample():
    """Were it analysed as one, the interval would be several times too wide where workloads decide."""
    few = covered("12 of 1 to 3 beside 8, too few", "workloads decide")
    enough = covered("40 of 1 to 3 beside 8", "workloads decide")
    assert few[3] / np.sqrt(40 / 12) > 2 * enough[3]


def table():
    """The figures as the rows of a Markdown table."""
    rows = [
        "| mixes | differences | these: covers | all: covers | these: half-width | all: half-width |",
        "|" + " --- |" * 6,
    ]
    for draw, noise in CASES:
        these, everything, narrow, wide, _ = covered(draw, noise)
        ends = f"{50 * narrow:.2f} % | {50 * wide:.2f} %"
        rows.append(f"| {draw} | {noise} | {100 * these:.1f} | {100 * everything:.1f} | {ends} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
