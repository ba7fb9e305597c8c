"""How many rounds a launch should have: how a loss varies within and between launches, what each costs -> a number.

The rule is that of Kalibera and Jones (2013), made cautious; docs/methodology.md has what it loses in simulation.
"""

import math
from dataclasses import dataclass

from castmates.study.budget_keys import Budget
from castmates.study.cohorts import launch_guess, round_guess
from castmates.study.spec import Cohort

FEWEST_ROUNDS, MOST_ROUNDS = 2, 20  # one round shows no variance within a launch; beyond some, drift sets in
SMALLEST_LAUNCH = 0.2  # share of its start in a launch's time: making it smaller by more rounds gains next to nothing

FIRST_LAUNCHES = 2  # of a cohort; they show how many rounds its other launches should have
FEWEST_FIRST = 3  # rounds of these: they have to show a variance, also when a window is rejected
BELIEVED = 0.5  # of what a start is guessed to cost: too many rounds of the first launches cost more than too few

# What a cohort is taken for before it is measured: the variance between launches as a part of that within them. It
# counts for as much as two launches do, which alone show next to nothing of it.
USUAL_RATIO, USUAL_FREEDOM = 0.05, 1


@dataclass(frozen=True)
class Cost:
    """Seconds that the launches of a cohort take."""

    launch: float  # everything but the rounds
    round: float

    def fitting(self, longest_launch: float) -> float:
        """How many rounds fit a launch of this length."""
        return (longest_launch - self.launch) / self.round if self.round else math.inf


@dataclass(frozen=True)
class Spread:
    """How the loss of one mix varies; variances of log ratios."""

    mix: str
    log: float  # its mean
    of_means: float  # between the means of launches
    within: float  # between rounds of a launch
    between: float  # between launches, without what the rounds add to it
    launches: int
    rounds: float  # of a launch, harmonic mean

    def of_launches(self, rounds: float) -> float:
        """The variance of the means of launches that have so many rounds."""
        return self.between + self.within / rounds

    def foreseen(self, rounds: float, had: float) -> float:
        """The variance that was seen between the means of launches that had so many rounds, with another number."""
        return self.of_means * self.of_launches(rounds) / self.of_launches(had) if self.of_means else 0.0


def expected_ratio(between: float, within: float, freedom: float) -> float:
    """The variance between launches as a part of that within them: what was seen, drawn towards what is usual.

    `freedom` is how many degrees of freedom `between` rests on.
    """
    if not freedom or not between + within:
        return USUAL_RATIO
    if not within:
        return math.inf
    return (freedom * between / within + USUAL_FREEDOM * USUAL_RATIO) / (freedom + USUAL_FREEDOM)


def best_rounds(ratio: float, cost: Cost, fitting: float) -> int:
    """The rounds that give the smallest variance for the time, as far as they fit a launch.

    A launch takes start + rounds x round seconds, and its mean varies by ratio + 1 / rounds: their product is smallest
    at the root below.
    """
    if not cost.round:
        return FEWEST_ROUNDS
    relative = cost.launch / cost.round
    gains = math.ceil(round((1 - SMALLEST_LAUNCH) / SMALLEST_LAUNCH * relative, 9))
    most = max(FEWEST_ROUNDS, min(MOST_ROUNDS, math.floor(min(fitting, MOST_ROUNDS)), gains))
    best = math.sqrt(relative / ratio)
    return max(FEWEST_ROUNDS, most if best > most else math.ceil(round(best, 9)))


def guessed_cost(cohort: Cohort, window: float) -> Cost:
    """What the launches of a cohort are expected to cost before any was measured."""
    return Cost(launch_guess(cohort.members), round_guess(cohort.scenes, cohort.members, window))


def first_rounds(cohort: Cohort, budget: Budget) -> int:
    """The rounds of a cohort's first launches: the best ones for a usual cohort, enough to show a variance."""
    return cautious_rounds(guessed_cost(cohort, budget.window), budget.longest_launch)


def cautious_rounds(guess: Cost, longest_launch: float) -> int:
    """The same for a cohort whose costs are guessed."""
    believed = Cost(BELIEVED * guess.launch, guess.round)
    return max(FEWEST_FIRST, best_rounds(USUAL_RATIO, believed, guess.fitting(longest_launch)))
