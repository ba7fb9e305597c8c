"""How near a core is to the lead: the places that `distance` names."""

from collections.abc import Callable, Sequence

from castmates.study.placement.layout import Core, Cpu, Layout

SAME_CPUS, SIBLINGS, FURTHER_IN_CACHE = "cpu", "smt", "llc"


class Nearness:
    """The cores around a lead on its CPUs, by place; each core is at one place."""

    def __init__(self, lead: Sequence[int], layout: Layout) -> None:
        mine = [layout.by_id[cpu] for cpu in lead]
        self._cores = {cpu.core for cpu in mine}
        self._llcs = {cpu.llc for cpu in mine} - {None}
        self._packages = {cpu.package for cpu in mine} - {None}
        self._close = _closeness(mine, layout)
        # Where the whole cache is as near as can be, its cores are meant by `llc` too.
        self._has_further = any(self._place(core) == FURTHER_IN_CACHE for core in layout.cores)

    def at(self, place: str, cores: Sequence[Core]) -> list[Core]:
        """Those of the cores that are at this place, in their order."""
        wanted = "core" if place == FURTHER_IN_CACHE and not self._has_further else place
        return [core for core in cores if self._place(core) == wanted]

    def _place(self, core: Core) -> str:
        if core.first.core in self._cores:
            return SIBLINGS
        if core.llc in self._llcs:
            return "core" if self._close(core.first) else FURTHER_IN_CACHE
        if core.package is None or not self._packages:
            return ""  # which socket it is on is not known
        return "socket" if core.package in self._packages else "other-socket"


def _closeness(mine: Sequence[Cpu], layout: Layout) -> Callable[[Cpu], bool]:
    """What makes a core of the lead's cache a near one: a common L2 where several cores have one, else the node."""
    clusters = {cpu.cluster for cpu in mine} - {None}
    own = {cpu.core for cpu in mine}
    if any(cpu.cluster in clusters and cpu.core not in own for cpu in layout.cpus):
        return lambda cpu: cpu.cluster in clusters
    nodes = {cpu.node for cpu in mine}
    return lambda cpu: cpu.node in nodes
