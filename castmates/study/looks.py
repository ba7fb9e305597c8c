"""Which launches a study needs, as its looks at the precision decide it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from castmates.english import counted
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
