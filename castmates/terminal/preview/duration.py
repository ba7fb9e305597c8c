"""Which launches of a study are still to be measured, and how long that takes."""

import os
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean

from castmates.project import Project
from castmates.results.adaptive_looks import Look as AdaptiveLook
from castmates.results.adaptive_looks import read_adaptive_looks
from castmates.results.folder import StudyFolder
from castmates.results.records import record_or_why
from castmates.study import after_rounds
from castmates.study.adaptive import as_launched
from castmates.study.cohorts import launch_guess, round_guess
from castmates.study.looks import cohort_of, needed
from castmates.study.schedule import turns_of
from castmates.study.spec import Cohort, Launch, Plan

LAUNCH_OVERHEAD = 1.5  # start of the runner, writing the tables
MODELLED_WINDOW = 0.06  # of a study in which nothing is started
ANALYSIS = 15.0  # tables, figures, report
LAUNCHES = 5  # of a cohort, whose times are looked up at most


def still_to_measure(project: Project, plan: Plan, torn: Collection[str] = ()) -> tuple[list[Launch], list[Launch]]:
    """The launches to come, at least and at most: a wanted precision decides on the way how many.

    The launches `torn` are measured again.
    """
    folder = project.results
    missing = [launch for launch in plan.launches if launch.path in torn or not folder.record_file(launch).is_file()]
    if not plan.looks or not missing:
        return missing, missing
    if project.study.budget.adaptive:
        return _after_looks(plan, missing, read_adaptive_looks(plan, folder))
    from castmates.pipeline.take_look import take_look  # loads pandas, which few need here

    decisions: list[list[str]] = []
    for _ in plan.looks:
        paths = needed(plan, decisions)
        if at_least := [launch for launch in missing if launch.path in paths]:
            later = {path for added in plan.looks[len(decisions) + 1 :] for path in added}
            undecided = {path for path in later if not decisions or cohort_of(path) in decisions[-1]}
            return at_least, [launch for launch in missing if launch.path in {*paths, *undecided}]
        reached = take_look(plan, folder, project.study.budget.precision or 0.0, decisions)
        decisions.append([cohort.cohort for cohort in reached if cohort.goes_on])
        if not decisions[-1]:
            break
    return [], []


def _after_looks(
    plan: Plan, missing: Sequence[Launch], taken: Sequence[AdaptiveLook]
) -> tuple[list[Launch], list[Launch]]:
    """The same in an adaptive study: what the looks asked for, and what all looks to come may ask for."""
    paths = set(needed(plan, [look["cohorts"] for look in taken]))
    at_least = [launch for launch in missing if launch.path in paths]
    if taken and not taken[-1]["cohorts"]:
        return at_least, at_least
    later = {path for added in plan.looks[len(taken) + 1 :] for path in added}
    return at_least, [launch for launch in missing if launch.path in paths | later]


def seconds_between(project: Project, least: Sequence[Launch], most: Sequence[Launch]) -> tuple[float, float]:
    """The time of a sweep that has these launches to measure, without and with spare rounds; 0 where none is left."""
    if not most:
        return 0.0, 0.0
    # Modelled launches take nothing of the machine, and as many run side by side as there are CPUs.
    at_once = len(os.sched_getaffinity(0)) if project.modelled else 1
    few = seconds_of_sweep(project.results, least, at_once)
    return few, seconds_of_sweep(project.results, most, at_once, spare=not project.modelled)


def seconds_of_sweep(folder: StudyFolder, launches: Iterable[Launch], at_once: int = 1, spare: bool = False) -> float:
    """How long a sweep takes that has these launches to measure, so many at once; with all spare rounds, or none."""
    known: dict[str, float] = {}
    return sum(seconds_of_launch(folder, launch, spare, known) for launch in launches) / at_once + ANALYSIS


def seconds_of_launch(
    folder: StudyFolder, launch: Launch, spare: bool = False, known: dict[str, float] | None = None
) -> float:
    """How long a launch takes: its start (as measured before, where it was) and its windows.

    `known` keeps what launches take, by cohort: who asks for thousands of launches reads no record twice.
    """
    design, cohort = launch.design, as_launched(launch).cohort
    rounds = design.rounds + spare * design.spare_rounds
    if design.model is not None:
        return LAUNCH_OVERHEAD + MODELLED_WINDOW * rounds * turns_of(cohort.scenes, cohort.members)
    known = {} if known is None else known
    if cohort.id not in known:
        known[cohort.id] = _launch(folder, cohort)
    measured = rounds * round_guess(cohort.scenes, cohort.members, design.window)
    return LAUNCH_OVERHEAD + known[cohort.id] + measured + after_rounds.seconds(launch)


def _launch(folder: StudyFolder, cohort: Cohort) -> float:
    records = map(record_or_why, folder.record_files(cohort.id)[:LAUNCHES])
    launched = (record.get("seconds", {}).get("launch") for record in records)
    launches = [float(seconds) for seconds in launched if seconds is not None]
    return fmean(launches) if launches else launch_guess(cohort.members)
