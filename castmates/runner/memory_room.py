"""Refuses a launch that the kernel would end for want of memory: it might kill anybody, and says so nowhere."""

from collections.abc import Callable, Mapping

from castmates.errors import CastmatesError
from castmates.machine.memory import free_memory, limited_memory
from castmates.study.spec import Cohort


def refuse_too_little(
    cohort: Cohort,
    needs: Mapping[str, int],
    evictors: Mapping[str, int],
    free: Callable[[], int | None] = free_memory,
    roofs: int = 0,
) -> None:
    """Compare what everyone of a launch takes, by the catalogue and the sizes in the plan, with what is free now."""
    parts = [(member.workload, needs.get(member.workload, 0)) for member in cohort.members]
    parts += [("the eviction of the cache", sum(evictors.values()))] if evictors else []
    parts += [("the measuring of roofs", roofs)] if roofs else []
    wanted, here = sum(size for _, size in parts), free()
    if here is None or wanted <= here:
        return
    limit = limited_memory()
    within = f" of the {limit / 1e9:.1f} GB that its control group allows" if limit is not None else ""
    listed = " + ".join(f"{name} {size / 1e9:.1f}" for name, size in parts if size)
    raise CastmatesError(
        f"this launch takes about {wanted / 1e9:.1f} GB of memory ({listed}), and only {here / 1e9:.1f} GB{within} are "
        "free now; end other programs, raise the limit, or use a smaller size of its workloads."
    )
