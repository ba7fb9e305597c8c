"""The last-level caches of a plan: one without classes of nodes, else one for each class."""

from castmates.study.cache import Cache
from castmates.study.class_names import class_of
from castmates.study.spec import Plan


def cache_of(plan: Plan, name: str) -> Cache | None:
    """The cache that the partitions of this lead, member or mix were made for; None where there are none."""
    caches = {machine.name: machine.cache for machine in plan.machines}
    return caches.get(class_of(name), plan.cache)


def is_watched(plan: Plan) -> bool:
    """Whether a machine of the plan reports what its last-level caches hold."""
    caches = [plan.cache, *(machine.cache for machine in plan.machines)]
    return any(cache is not None and cache.events for cache in caches)
