"""What a study may ask for. What it does not ask for has no table, no figure and no part of the page.

Jobs on other nodes read this, and no plan: the plan's classes are imported where one is asked about.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from castmates.study.spec import Counting, Design, Plan


class Capability(NamedTuple):
    """Something that a study may ask for."""

    key: str  # of the study file, in backticks, which asks for it
    asked: Callable[["Plan"], bool]


def _design(holds: Callable[["Design"], bool]) -> Callable[["Plan"], bool]:
    return lambda plan: any(holds(launch.design) for launch in plan.launches)


def _counted(holds: Callable[["Counting"], bool]) -> Callable[["Plan"], bool]:
    """Whether launches that start programs count so."""
    return _design(lambda design: design.model is None and holds(design.counters))


def _phases(plan: "Plan") -> bool:
    return PROGRAMS.asked(plan) and any(cohort.lead.phases for cohort in plan.cohorts)


def _watched(plan: "Plan") -> bool:
    from castmates.study.node_classes import is_watched

    return is_watched(plan) and _design(lambda design: design.monitor > 0)(plan)


def _arranged(plan: "Plan") -> bool:
    """Whether a lead runs beside the same antagonists in several arrangements."""
    from castmates.study.class_names import plain_workload_of, workload_of

    found: Counter[tuple[str, frozenset[str]]] = Counter()
    for mix in {mix.identity: mix for mix in plan.mixes if mix.antagonists and not mix.partitions}.values():
        found[workload_of(mix.lead), frozenset(map(plain_workload_of, mix.antagonists))] += 1
    for left in plan.left_out:
        found[left.lead, frozenset(left.antagonists)] += (left.lead, frozenset(left.antagonists)) in found
    return max(found.values(), default=0) > 1


def _services(plan: "Plan") -> bool:
    return any(member.requests for cohort in plan.cohorts for member in cohort.members)


def _alone(plan: "Plan") -> bool:
    from castmates.study.scenes import measures_alone

    return measures_alone(plan)


def _placebo(plan: "Plan") -> bool:
    """Whether a lead is measured beside a placebo for what it loses, and not only for a control."""
    controls = {control.mix.identity for control in plan.controls} - {mix.identity for mix in plan.mixes}
    asked = [cohort for cohort in plan.cohorts if not controls.issuperset(mix.identity for mix in cohort.mixes)]
    return any(scene.kind == "placebo" for cohort in asked for scene in cohort.scenes)


def _profiled(name: str) -> Callable[["Plan"], bool]:
    return lambda plan: any(getattr(launch.design.profiling, name, False) for launch in plan.profiles)


PROGRAMS = Capability("`platform: auto`", _design(lambda design: design.model is None))
EVENTS = Capability("`counters.events`", _counted(lambda counters: bool(counters.events)))
TOPDOWN = Capability("`counters.topdown`", _counted(lambda counters: counters.topdown > 0))
LAYERS = Capability("`counters.profile`", _counted(lambda counters: counters.profile > 0))
PHASES = Capability("a lead that reports phases", _phases)
TOPDOWN_PHASES = Capability("`counters.topdown`", lambda plan: _phases(plan) and TOPDOWN.asked(plan))
MONITOR = Capability("`cache.monitor`", _watched)
RESOURCES = Capability("`counters` or `cache.monitor`", lambda plan: PROGRAMS.asked(plan) or _watched(plan))
ALONE = Capability("`budget.antagonists_alone`", _alone)
PLACEBO = Capability("`budget.placebo`", _placebo)
PARTITIONS = Capability("`cache.sweeps`", lambda plan: any(mix.partitions for mix in plan.mixes))
ADAPTIVE = Capability("`budget.adaptive`", lambda plan: bool(plan.later))
MITIGATIONS = Capability("`mitigations`", lambda plan: bool(plan.mitigations))
DISTANCES = Capability("`mixes` with several distances or counts", _arranged)
SETS = Capability("`mixes` with random ones, pairs or groups", lambda plan: bool(plan.sets))
VARIANTS = Capability("`variants`", lambda plan: bool(plan.variants))
SERVICES = Capability("a lead that is a service", _services)
LATENCY = Capability("`recommend.latency`", lambda plan: bool(plan.latency_limits))
PREDICTION = Capability("`predict`", lambda plan: plan.prediction is not None)
CLASSES = Capability("`machines`", lambda plan: bool(plan.machines))
PROFILE = Capability("`profile`", lambda plan: bool(plan.profiles))
PRIMITIVES = Capability("`profile.primitives`", _profiled("primitives"))
FIRST_EPOCH = Capability("`profile.first_epoch`", _profiled("first_epoch"))
TRACES = Capability("`trace`", lambda plan: bool(plan.traces))
