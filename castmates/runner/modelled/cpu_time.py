"""What processes get of their CPUs' time, and what busy cores and siblings cost them: quotas, shared CPUs, SMT."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from castmates.study.modelled import MachineModel

Taker = tuple[tuple[int, ...], float]  # the CPUs of a process, and the share of their time that it may take at most


@dataclass(frozen=True)
class CpuTime:
    """What each of some processes comes to."""

    shares: tuple[float, ...]  # of the time of its CPUs, on average
    slowed: tuple[float, ...]  # the factor on the time of its computing


@lru_cache(maxsize=1024)
def cpu_time(takers: tuple[Taker, ...], machine: MachineModel) -> CpuTime:
    """Divide each CPU evenly among those on it; what one may not take for its quota is left to the others."""
    given: dict[tuple[int, int], float] = {}
    busy: dict[int, float] = {}
    for cpu in sorted({cpu for cpus, _ in takers for cpu in cpus}):
        there = sorted((quota, number) for number, (cpus, quota) in enumerate(takers) if cpu in cpus)
        left = 1.0
        for place, (quota, number) in enumerate(there):
            given[number, cpu] = min(quota, left / (len(there) - place))
            left -= given[number, cpu]
        busy[cpu] = sum(given[number, cpu] for _, number in there)
    shares = [sum(given[number, cpu] for cpu in cpus) / len(cpus) for number, (cpus, _) in enumerate(takers)]
    return CpuTime(tuple(shares), tuple(_slowed(cpus, busy, machine) for cpus, _ in takers))


def _slowed(cpus: Sequence[int], busy: Mapping[int, float], machine: MachineModel) -> float:
    beside = sum(busy.get(sibling, 0.0) for sibling in _siblings(cpus, machine)) / len(cpus)
    return (1 + machine.turbo * _further_cores(cpus, busy, machine)) * (1 + machine.sibling * beside)


def _siblings(cpus: Sequence[int], machine: MachineModel) -> list[int]:
    return [(cpu + machine.all_cores) % (2 * machine.all_cores) for cpu in cpus] if machine.threads > 1 else []


def _further_cores(cpus: Sequence[int], busy: Mapping[int, float], machine: MachineModel) -> float:
    """How many cores are busy besides one, while a process runs on these CPUs: on its sockets, where there are some."""
    near = {machine.memory_of(machine.domain_of(cpu)) for cpu in cpus}
    own = {machine.core_of(cpu) for cpu in cpus}
    idle: dict[int, float] = {}
    for cpu, share in busy.items():
        core = machine.core_of(cpu)
        if core not in own and (machine.sockets is None or machine.memory_of(machine.domain_of(cpu)) in near):
            idle[core] = idle.get(core, 1.0) * (1.0 - share)
    return sum(1.0 - each for each in idle.values()) + len(own) - 1
