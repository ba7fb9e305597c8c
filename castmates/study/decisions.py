"""The rounds of launches that follow from a cohort's first ones: what was decided, and the plan with and without it.

A plan is the same text before and after a decision, so that one measures nothing again and makes no table again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from castmates.study.spec import Design, Launch, Plan

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
