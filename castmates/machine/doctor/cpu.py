"""The doctor's rows on cores, caches, memory and frequency; pure functions of facts and topology."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from castmates.machine.topology import CacheDomain, Topology, parse_cpu_list
from castmates.study.cpus import format_cpu_list

# One row of the doctor's table.

GRANT = "sudo castmates doctor --grant"  # what most lacks of permissions take
State = Literal["yes", "no", "partly", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """Whether the machine offers one thing, what its lack costs a study, and how to change it.

    A remedy that begins with "See" names the row whose lack is the cause.
    """

    name: str
    state: State
    finding: str
    cost: str = ""
    remedy: str = ""
    change: str = ""  # what its user can do here, in a line: mostly a command; "" where only another machine helps


DEFAULT_STUDY_CORES = 2  # a lead and an antagonist
LISTED_DOMAINS = 4
NOTABLE_STEAL = 0.001
GREAT_STEAL = 0.01
CPU_DIR = "/sys/devices/system/cpu"
_NESTED = re.compile(r"(?:^|\s)([\w.-]*nested\w*=[1yY])(?=\s|$)")


def cores(topology: Topology) -> Check:
    """Are there cores enough for a lead, an antagonist and the runner beside them?"""
    count = len(topology.cores())
    online = sum(cpu.online for cpu in topology.cpus)
    finding = f"{count} usable (CPUs {format_cpu_list(topology.allowed) or 'none'} of {online} online); "
    finding += f"a study needs {DEFAULT_STUDY_CORES}, and one more for the runner"
    remedy = "Use a machine with more cores, or widen what taskset, the cpuset or the container allows."
    change = "widen what taskset, the cpuset or the container allows" if online > len(topology.allowed) else ""
    if count < DEFAULT_STUDY_CORES:
        return Check("cores", "no", finding, "A program and its antagonist cannot each have a core.", remedy, change)
    if count == DEFAULT_STUDY_CORES:
        cost = "No core is left for Castmates itself, which takes a little time from the programs it watches."
        return Check("cores", "partly", finding, cost, remedy, change)
    return Check("cores", "yes", finding)


def spare(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Is a CPU left beside a lead and an antagonist for whatever else runs?"""
    usable = sorted({cpu.id for cpu in topology.cpus if cpu.online} & set(topology.allowed))
    if len(usable) > DEFAULT_STUDY_CORES:
        return Check("spare CPU", "yes", f"{len(usable)} usable, {DEFAULT_STUDY_CORES} for a lead and an antagonist")
    threads: dict[str, float] = facts.get("damon_threads") or {}
    others = [f"{name} has had {share:.1%} of a CPU since boot" for name, share in threads.items() if share > 0]
    nested = _NESTED.search(facts.get("cmdline") or "")
    others += [f"this machine is set up for nested virtual machines ({nested[1]})"] if nested else []
    finding = "; ".join([f"none: {len(usable)} usable", *others])
    cost = (
        "Other programs run on the lead's CPU whenever an antagonist runs, and on an idle one beside the lead alone: "
        "part of a small loss may be theirs (others_points in effects.csv)."
    )
    remedy = "Use a machine with more CPUs, or widen what taskset, the cpuset or the container allows."
    online = sum(cpu.online for cpu in topology.cpus)
    change = "widen what taskset, the cpuset or the container allows" if online > len(usable) else ""
    return Check("spare CPU", "partly", finding, cost, remedy, change)


def equal_cores(topology: Topology) -> Check:
    """Are all usable cores of one kind?"""
    kinds = sorted({cpu.kind for cpu in topology.cpus if cpu.kind is not None and cpu.id in topology.allowed})
    if len(kinds) < 2:
        return Check("equal cores", "yes", f"one kind{f' ({kinds[0]})' if kinds else ''}")
    cost = "A program runs at another speed on another kind of core, so placements cannot be compared."
    first = format_cpu_list(cpu.id for cpu in topology.cpus if cpu.kind == kinds[0] and cpu.id in topology.allowed)
    change = f"taskset -c {first} castmates …"
    remedy = f"Keep a mix on one kind of core, for example: {change}"
    return Check("equal cores", "partly", "several kinds: " + ", ".join(kinds), cost, remedy, change)


def smt(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Does each core run one thread only?"""
    shared = [core for core in topology.cores() if len(core) > 1]
    if shared:
        cost = "Programs on siblings share L1, L2 and execution units, so a loss is not the LLC's alone."
        change = f"echo off | sudo tee {CPU_DIR}/smt/control"
        finding = f"{len(shared)} cores with siblings, such as CPUs {format_cpu_list(shared[0])}"
        remedy = f"Leave siblings idle, or switch SMT off: {change}"
        return Check("SMT off", "partly", finding, cost, remedy, change)
    if facts.get("hypervisor_flag") is not False:
        cost = "Two virtual CPUs may be siblings of one core, unseen from here."
        remedy = "Ask for virtual CPUs pinned to whole cores, or use bare metal."
        return Check("SMT off", "unknown", "no siblings shown, but the host may hide them", cost, remedy)
    return Check("SMT off", "yes", "no siblings in use")


def llc(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Is there a last-level cache that several usable cores share?"""
    name = "shared LLC"
    if not topology.llcs:
        cost = "Which CPUs share a cache is not known, so no placement can be called shared or separate."
        return Check(name, "no", "sysfs shows no unified cache", cost, "Run on the host, with its /sys visible.")
    finding = _describe(topology.llcs)
    cores = topology.cores()
    most = max(sum(any(cpu in llc.cpus for cpu in core) for core in cores) for llc in topology.llcs)
    if most < 2:
        cost = "No two usable cores share a last-level cache, so there is no loss in it to be seen."
        together = format_cpu_list(topology.llcs[0].cpus)
        change = f"taskset -c {together} castmates …"
        return Check(name, "no", finding, cost, f"Allow CPUs of one domain, for example: {change}", change)
    if facts.get("hypervisor_flag"):
        cost = "The hypervisor reports size and sharing, and unseen guests may use the same cache."
        return Check(name, "partly", finding, cost, "Use bare metal where the cache's size matters.")
    return Check(name, "yes", finding)


def _describe(llcs: tuple[CacheDomain, ...]) -> str:
    texts = []
    for llc in llcs[:LISTED_DOMAINS]:
        size = f" {llc.bytes / 2**20:.4g} MiB" if llc.bytes else ""
        ways = f" {llc.ways} ways" if llc.ways else ""
        texts.append(f"L{llc.level}:{llc.id}{size}{ways}, CPUs {format_cpu_list(llc.cpus)}")
    more = len(llcs) - LISTED_DOMAINS
    return "; ".join(texts) + (f"; and {more} more" if more > 0 else "")


def numa(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Does memory stay where it was placed?"""
    if not topology.nodes:
        cost = "Where a program's memory lies is not known."
        return Check("NUMA", "unknown", "sysfs shows no nodes", cost, "Run on the host, with its /sys visible.")
    finding = "; ".join(
        f"node {node.id}: {f'CPUs {format_cpu_list(node.cpus)}' if node.cpus else 'memory only'}"
        for node in topology.nodes
    )
    if len(topology.nodes) > 1 and facts.get("numa_balancing"):
        cost = "The kernel moves pages between nodes during measurements, which slows programs down."
        change = "sudo sysctl kernel.numa_balancing=0"
        found = f"{finding}; automatic balancing is on"
        return Check("NUMA", "partly", found, cost, f"Switch it off: {change}", change)
    return Check("NUMA", "yes", finding)


def balanced(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Does the scheduler balance all the CPUs that we may use?"""
    isolated = set(parse_cpu_list(facts.get("isolated_cpus") or "")) & set(topology.allowed)
    if not isolated:
        return Check("balanced CPUs", "yes", "no usable CPU is isolated")
    cost = "Threads of a program on several isolated CPUs are not spread and pile up on one."
    remedy = "Remove isolcpus= from the kernel's command line, or give each program one isolated CPU."
    finding = f"CPUs {format_cpu_list(isolated)} are isolated"
    return Check("balanced CPUs", "partly", finding, cost, remedy, "remove isolcpus= from the kernel's command line")


def governor(facts: Mapping[str, Any]) -> Check:
    """Is the frequency governor the steady one on all CPUs?"""
    governors: dict[str, str] | None = facts.get("governors")
    if not governors:
        cost = "The frequency may change unseen during a measurement."
        return Check(
            "governor", "unknown", "the kernel does not control the frequency here", cost, "Set it on the host."
        )
    finding = ", ".join(f"{governor} on CPUs {cpus}" for governor, cpus in governors.items())
    if set(governors) == {"performance"}:
        return Check("governor", "yes", finding)
    cost = "Frequency follows load, so freezing or thawing one program changes the clock of others."
    change = f"echo performance | sudo tee {CPU_DIR}/cpu*/cpufreq/scaling_governor"
    return Check("governor", "partly", finding, cost, f"Set it: {change}", change)


def turbo(facts: Mapping[str, Any]) -> Check:
    """Is turbo off, so that idle antagonists do not raise the frequency?"""
    state: dict[str, Any] | None = facts.get("turbo")
    if state is None:
        cost = "A busy antagonist may lower the program's frequency; only the placebo baseline shows it."
        return Check("turbo off", "unknown", "no switch is visible", cost, "Look at the host or the firmware.")
    if not state["on"]:
        return Check("turbo off", "yes", "off")
    cost = "A busy antagonist lowers the program's frequency; the placebo baseline separates this from the cache."
    off = 1 if state["switch"].endswith("no_turbo") else 0
    change = f"echo {off} | sudo tee {state['switch']}"
    return Check("turbo off", "partly", "on", cost, f"Switch it off: {change}", change)


def swap(facts: Mapping[str, Any]) -> Check:
    """Is no swap in use?"""
    state: dict[str, int] | None = facts.get("swap")
    if state is None:
        return Check("swap unused", "unknown", "/proc/meminfo does not show it", "Swapping may disturb measurements.")
    if not state["used_bytes"]:
        return Check("swap unused", "yes", "none in use" if state["total_bytes"] else "there is none")
    cost = "A program whose pages come back from disk loses time that no antagonist took."
    finding = f"{state['used_bytes'] / 2**20:.0f} MiB in use"
    change = "sudo swapoff -a"
    return Check("swap unused", "partly", finding, cost, f"Switch it off if memory suffices: {change}", change)


def steal(facts: Mapping[str, Any]) -> Check:
    """Do programs get all of their CPU time from the hypervisor?"""
    share: float | None = facts.get("steal_share")
    if share is None:
        return Check("no steal", "unknown", "/proc/stat does not show it", "Time lost to other guests is not seen.")
    finding = f"{share:.2%} of CPU time since boot"
    if share < NOTABLE_STEAL:
        return Check("no steal", "yes", finding)
    cost = "Measurements in which other guests take CPU time are rejected and repeated: a study takes longer."
    remedy = "Use a dedicated host or bare metal, or measure at a quieter hour."
    return Check("no steal", "no" if share >= GREAT_STEAL else "partly", finding, cost, remedy)
