"""How many rounds a launch should have: how a loss varies within and between launches, what each costs -> a number.

The rule is that of Kalibera and Jones (2013), made cautious; docs/methodology.md has what it loses in simulation.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.study.budget_keys import Budget
from castmates.study.model import Study
from castmates.study.scenes import launch_guess, round_guess
from castmates.study.spec import Cohort, Design, Launch, Plan

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


# The rounds of launches that follow from a cohort's first ones: what was decided, and the plan with and without it.
#
# A plan is the same text before and after a decision, so that one measures nothing again and makes no table again.

UNDECIDED = 0  # rounds


@dataclass(frozen=True)
class Decision:
    """How many rounds the launches of a cohort have after its first ones, and what that follows from."""

    cohort: str
    protocol: int
    rounds: int
    launches: int  # that showed it; none where the number is that of later launches which are measured already
    within: float | None  # standard deviations of the log ratio: between rounds of a launch; None where not known
    between: float | None  # between launches, without what the rounds add to it
    launch: float  # seconds
    round: float

    @property
    def words(self) -> str:
        """Why there are so many rounds."""
        head = f"{self.cohort}: {self.rounds} rounds in each launch after the first ones"
        if not self.launches:
            return f"{head}, as in those that are measured already."
        cost = f"a launch takes {self.launch:.1f} s besides its rounds, and a round {self.round:.1f} s"
        if self.within is None or self.between is None:
            return f"{head}: how launches differ is not known, as too few of them have valid windows, and {cost}."
        spread = f"{100 * self.within:.2g} % from round to round and {100 * self.between:.2g} % more between launches"
        return f"{head}: in the first {self.launches} the loss varies by {spread}, and {cost}."


def reasons(plan: Plan, decisions: Iterable[Decision]) -> list[str]:
    """Why launches of the plan have as many rounds as they have, where first launches decided it."""
    cohorts = {launch.cohort.id for launch in plan.launches if launch.design.decided}
    return [decision.words for decision in decisions if decision.cohort in cohorts]


def with_decisions(plan: Plan, rounds: Mapping[str, int]) -> Plan:
    """The plan with the decided rounds, by cohort; launches of other cohorts stay undecided."""
    return _changed(plan, lambda launch: rounds.get(launch.cohort.id, launch.design.rounds))


def without_decisions(plan: Plan) -> Plan:
    """The plan as it is before anything is decided: what has to be the same for its launches to count as measured."""
    return _changed(with_skipped(plan, lambda _: ()), lambda _: UNDECIDED)


def with_skipped(plan: Plan, skipped: Callable[[Launch], tuple[str, ...]]) -> Plan:
    """The plan with the mixes that each launch of an adaptive study leaves out."""
    if not any(launch.design.adaptive for launch in plan.launches):
        return plan
    launches = [
        launch.model_copy(update={"skipped": skipped(launch)}) if launch.design.adaptive else launch
        for launch in plan.launches
    ]
    return plan.model_copy(update={"launches": tuple(launches)})


def with_rounds(launch: Launch, rounds: int, designs: dict[tuple[int, int], Design] | None = None) -> Launch:
    """The launch with this number of rounds; `designs` has those that were made, so that launches go on sharing one."""
    designs = {} if designs is None else designs
    if launch.design.rounds == rounds:
        return launch
    place = (id(launch.design), rounds)
    if place not in designs:
        designs[place] = launch.design.model_copy(update={"rounds": rounds})
    return launch.model_copy(update={"design": designs[place]})


def undecided(launches: Iterable[Launch]) -> bool:
    """Whether one of these launches waits for a decision."""
    return any(launch.design.rounds == UNDECIDED for launch in launches)


def _changed(plan: Plan, rounds: Callable[[Launch], int]) -> Plan:
    designs: dict[tuple[int, int], Design] = {}  # launches may share one, and still do afterwards
    launches = [
        with_rounds(launch, rounds(launch), designs) if launch.design.decided else launch for launch in plan.launches
    ]
    return plan.model_copy(update={"launches": tuple(launches)})


# Which launches a study needs, as its looks at the precision decide it.


def needed(plan: Plan, decisions: Iterable[Collection[str]]) -> list[str]:
    """Paths of the launches needed after these decisions: which cohorts went on after the first look, the second …"""
    if not plan.looks:
        return [launch.path for launch in plan.launches]
    paths = list(plan.looks[0])
    for added, go_on in zip(plan.looks[1:], decisions, strict=False):
        paths += [path for path in added if cohort_of(path) in go_on]
    return paths


def until_nobody_goes_on(looks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What the looks of a study left, up to its last one: files of an earlier design may lie behind it."""
    taken = []
    for look in looks:
        taken.append(look)
        if not any(cohort["goes_on"] for cohort in look["reached"]):
            break
    return taken


def reached_words(taken: Sequence[Mapping[str, Any]]) -> str:
    """Whether the wanted precision was reached, from what the looks left; "" where there was none."""
    last = {cohort["cohort"]: cohort for look in taken for cohort in look["reached"]}
    if not last:
        return ""
    wanted = taken[-1]["wanted_pct"]
    missed = [cohort for cohort in last.values() if not cohort["enough"]]
    count = f"{len(last) - len(missed)} of {len(last)} cohort{'s' * (len(last) != 1)}"
    return "; ".join([f"±{wanted:g} % reached by {count}", *(_missed(cohort, wanted) for cohort in missed)]) + "."


def _missed(cohort: Mapping[str, Any], wanted: float) -> str:
    name, launches, half = cohort["cohort"], cohort["launches"], cohort["half_width_pct"]
    after = f"after {counted(launches, 'launch')}"
    if half is None:
        return f"{name}: no interval {after}"
    late = ", but too late to be confirmed" if half <= wanted else ""
    return f"{name}: ±{half:.3g} % {after}{late}" if half < 100 else f"{name}: ±{half:.0f} % {after}"


def cohort_of(path: str) -> str:
    """The cohort of a launch, from its path."""
    return path.rpartition("/")[0]


def part_of(plan: Plan, paths: Collection[str]) -> Plan:
    """The plan with these launches only."""
    ours = set(paths)
    return plan.model_copy(update={"launches": tuple(launch for launch in plan.launches if launch.path in ours)})


# More launches than a study's file has: `castmates sweep --launches 12` asks for them without an edit.

MOST = 10_000  # as for 'budget.launches'


def checked_launches(asked: object, study: Study, study_file: str) -> int:
    """The number of launches that the user asks for, if this study can have so many."""
    fewest = study.budget.launches
    try:
        number = int(str(asked).strip())
    except ValueError:
        number = 0
    if study.budget.precision is not None:
        raise CastmatesError(
            f"launches={asked}: {study_file} has a 'precision', which decides how many launches there are; change "
            "'precision' or 'most_launches' under 'budget' there."
        )
    if study.budget.adaptive:
        raise CastmatesError(
            f"launches={asked}: {study_file} is 'adaptive', so that looks decide how many launches there are; change "
            "'most_launches' under 'budget' there."
        )
    if not fewest <= number <= MOST:
        raise CastmatesError(
            f"launches={asked}: expected a whole number of launches from {fewest}, which {study_file} has, to {MOST}."
        )
    return number


def with_launches(study: Study, asked: int) -> Study:
    """The study with as many launches as were asked for, where that is more than it has."""
    if study.budget.has_looks or asked <= study.budget.launches:
        return study
    return study.model_copy(update={"budget": study.budget.model_copy(update={"launches": asked})})
