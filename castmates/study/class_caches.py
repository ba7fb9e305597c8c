"""The last-level caches of a plan: one without classes of nodes, else one for each class."""

from castmates.study.cache import Cache
from castmates.study.spec import Plan


def cache_of(plan: Plan, machine: str) -> Cache | None:
    """The cache that partitions were made for on a class of nodes, "" without classes; None where there are none."""
    caches = {each.name: each.cache for each in plan.machines}
    return caches.get(machine, plan.cache)


def is_watched(plan: Plan) -> bool:
    """Whether a machine of the plan reports what its last-level caches hold."""
    caches = [plan.cache, *(machine.cache for machine in plan.machines)]
    return any(cache is not None and cache.events for cache in caches)
