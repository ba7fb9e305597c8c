"""Which launches a study needs, as its looks at the precision decide it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.study.model import Study
from castmates.study.spec import Plan


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
