"""A first number within about a minute: one or two launches of a study's leads, which count for its result too."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from castmates.analysis.effects.contrasts import own_leads
from castmates.analysis.effects.effects import estimate_effects
from castmates.english import duration
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.linux.owner import age
from castmates.linux.ownership import refuse_strangers
from castmates.pipeline.measure_launch import measure_launch, too_busy_words
from castmates.pipeline.snakemake import hold_sweep_lock
from castmates.project import ENVIRONMENTS, Project
from castmates.protocols import Say
from castmates.report.answer.first_number import FirstNumber, seen
from castmates.results.launch_tables import read_windows
from castmates.results.records import record_or_why, too_busy, useless
from castmates.runner.rounds.pace import STEPS
from castmates.study.budget_keys import Budget
from castmates.study.rounds import part_of
from castmates.study.scenes import launch_guess
from castmates.study.spec import Cohort, Launch, Plan
from castmates.workloads import environments

LONGEST = 60.0  # seconds, all in all
AFTERWARDS = 4.0  # of these, for what is computed
FEWEST_ROUNDS, FEWEST_UNITS = 2, 2  # one round shows no interval; a single unit no rate
SLICE = 5.0  # seconds that one may take in any case: on a busy machine runs are longer than they were tried
MOST_LAUNCHES = 2  # more of them are the study's own matter


@dataclass(frozen=True)
class Quick:
    """The launches of a study that give its first number."""

    project: Project
    plan: Plan  # whose missing launches are as short as they have to be
    launches: tuple[Launch, ...]  # of its leads, in order
    expected: float  # seconds of each

    @classmethod
    def of(cls, project: Project, seconds: float) -> "Quick":
        """Those that fit into so many seconds; where not even one does, the shortest one."""
        plan = project.plan()
        budget, expected = _short(project.study.budget, plan, seconds)
        plan = replace(project, study=project.study.model_copy(update={"budget": budget})).plan()
        return cls(project, plan, tuple(_of_leads(plan)), expected)


def first_number(project: Project, say: Say) -> FirstNumber | None:
    """Measure as many launches as fit into a minute, at least one; None where there are more already."""
    begun = time.monotonic() - age()
    refuse_strangers(project.study_file)
    quick = Quick.of(project, LONGEST - AFTERWARDS - (time.monotonic() - begun))
    folder = project.results
    if not quick.launches:
        raise CastmatesError(f"{project.study_file}: there is no place for this program beside others here.")
    hold_sweep_lock(folder)
    there = [launch for launch in quick.launches if _counts(project, launch)]
    if len(there) > MOST_LAUNCHES:
        say(f"{len(there)} launches are measured already, which show more than a first number")
        return None
    missing = [launch for launch in quick.launches if launch not in there][: MOST_LAUNCHES - len(there)]
    if missing and quick.expected > LONGEST:
        say(f"one launch takes about {duration(quick.expected)}, because a run is that long")
    for name in [] if project.modelled else sorted({environments.NATIVE, *_environments(missing)}):
        environments.build(name, ENVIRONMENTS, cache_folder())
    longest = 0.0
    for launch in missing:
        at = time.monotonic()
        if there and at - begun + max(longest, quick.expected) > LONGEST - AFTERWARDS:
            break
        measure_launch(quick.plan, launch.path, folder.launch(launch.path), cache_folder())
        longest = time.monotonic() - at
        if why := _nothing(project, launch):
            if not there:
                raise CastmatesError(why)
            say(why)  # those before it are a first number all the same
            break
        there.append(launch)
    return _told(quick, there, time.monotonic() - begun)


def _of_leads(plan: Plan) -> Iterator[Launch]:
    """The launches of what the study is about, the first of each program first."""
    ours = own_leads(plan)
    yield from sorted(
        (launch for launch in plan.launches if launch.cohort.lead.name in ours), key=lambda launch: launch.number
    )


def _short(budget: Budget, plan: Plan, seconds: float) -> tuple[Budget, float]:
    """A budget whose launches take so many seconds at most, as far as that can be; and what one then takes."""
    first = next(_of_leads(plan), None)
    if first is None:
        return budget, 0.0
    cohort, unit, longest = first.cohort, budget.window / budget.steps, max(budget.longest_window, budget.window)
    if (took := _expected(cohort, first.design.rounds, unit, budget.window, longest)) <= seconds:
        return budget.model_copy(update={"spare_rounds": 0}), took
    if not any(member.progress == "runs" for member in cohort.members[1:]):  # whose runs may be longer
        longest = min(longest, max(SLICE, (FEWEST_UNITS + 1) * unit))
    shorter = {"rounds": FEWEST_ROUNDS, "spare_rounds": 0, "steps": FEWEST_UNITS, "window": FEWEST_UNITS * unit}
    took = _expected(cohort, FEWEST_ROUNDS, unit, FEWEST_UNITS * unit, longest)
    return budget.model_copy(update=shorter | {"longest_window": longest}), took


def _expected(cohort: Cohort, rounds: int, unit: float, window: float, longest: float) -> float:
    """Seconds of a launch: every scene runs for some units while it warms up, and in a slice of each round."""
    warm_up, held = min((STEPS + 2) * unit, longest), min(max(window, (STEPS + 1) * unit), longest)
    return launch_guess(cohort.members) + len(cohort.scenes) * (warm_up + rounds * (held + unit / 2))


def _counts(project: Project, launch: Launch) -> bool:
    file = project.results.record_file(launch)
    return file.is_file() and not useless(record_or_why(file))


def _environments(launches: list[Launch]) -> set[str]:
    return {each.environment for launch in launches for each in launch.cohort.members if each.environment}


def _nothing(project: Project, launch: Launch) -> str:
    """Why a launch gave nothing: the next one would end alike; "" where it gave something."""
    file = project.results.record_file(launch)
    record = record_or_why(file)
    why = useless(record)
    if why and too_busy([record]):
        return f"{too_busy_words([file.parent])} Then give the same command again."
    return why and f"launch {launch.path} gave nothing ({record.get('reason') or why}); {file.parent / 'logs'}."


def _told(quick: Quick, launches: list[Launch], took: float) -> FirstNumber:
    """What these launches show, and what they do not."""
    project = quick.project
    plan = part_of(project.plan(), [launch.path for launch in launches])
    windows = read_windows([project.results.launch(launch.path) for launch in launches])
    effects = estimate_effects(plan, windows, project.study.margin)
    measured = {mix.name for launch in launches for mix in launch.cohort.mixes}  # of many, a launch has a part
    return seen(effects[effects["mix"].isin(measured)], windows, len(launches), len(quick.launches), took)
