"""How many rounds the launches of a study have, and why, before all of it is known."""

from collections.abc import Iterator

from castmates.project import Project
from castmates.results.adaptive_looks import as_decided
from castmates.results.rounds import read_decisions
from castmates.study.decisions import UNDECIDED, reasons, undecided, with_decisions
from castmates.study.rounds import FIRST_LAUNCHES, first_rounds
from castmates.study.spec import Plan


def expected(project: Project, plan: Plan) -> Plan:
    """The plan with as many rounds as the first launches have where that is not decided yet, and what looks decided."""
    budget, plan = project.study.budget, as_decided(plan, project.results)
    waiting = [launch.cohort for launch in plan.launches if undecided([launch])]
    return with_decisions(plan, {cohort.id: first_rounds(cohort, budget) for cohort in waiting})


def lines(project: Project, plan: Plan) -> Iterator[str]:
    """Why the rounds are as many as they are, and which cohorts are still to show it."""
    yield from reasons(plan, read_decisions(project.results))
    waiting = list(dict.fromkeys(launch.cohort.id for launch in plan.launches if launch.design.rounds == UNDECIDED))
    if waiting:
        yield (
            f"{', '.join(waiting)}: the first {FIRST_LAUNCHES} launches decide how many rounds the others have; until "
            "then as many are expected."
        )
