"""The doctor's rows on pages and on memory bandwidth; pure functions of facts."""

from collections.abc import Mapping
from typing import Any

from castmates.machine.doctor.check import Check
from castmates.machine.topology import Topology
from castmates.study.last_level import MEMORY_SHARE
from castmates.study.memory_peak import COMMAND, Peak

LARGER = 4  # times the cache: the size of what streams through memory (4llc)
SWITCH = "/sys/kernel/mm/transparent_hugepage/enabled"


def huge_pages(facts: Mapping[str, Any]) -> Check:
    """Can a program have huge pages where it asks for them?"""
    name, word = "huge pages", facts.get("transparent_hugepages")
    cost = (
        "Pointer chasing and the dials of cache capacity run on usual pages: address translation is part of their cost."
    )
    if word is None:
        return Check(name, "unknown", "the kernel does not show transparent_hugepage", cost, "Look at the host.")
    if word == "never":
        change = f"echo madvise | sudo tee {SWITCH}"
        remedy = f"Allow them where a program asks: {change}, or 'machine.prepare: {{thp: madvise}}' in the study."
        return Check(name, "no", "transparent_hugepage is never", cost, remedy, change)
    default = "also where it does not ask" if word == "always" else "where it asks"
    return Check(name, "yes", f"transparent_hugepage is {word}: a program has them {default}")


def room(facts: Mapping[str, Any], topology: Topology) -> Check:
    """Is there memory for what has to be larger than the cache?"""
    name, total, limit = "memory", facts.get("memory_bytes"), facts.get("memory_limit")
    cache = max((llc.bytes or 0 for llc in topology.llcs), default=0)
    if total is None:
        return Check(name, "unknown", "the kernel does not show it", "No mix is refused for want of memory.", "")
    usable = total if limit is None else limit
    finding = f"{usable / 1e9:.3g} GB"
    if limit is not None:
        finding += f" of {total / 1e9:.3g} GB, which a control group allows"
    if LARGER * cache <= MEMORY_SHARE * usable:
        return Check(name, "yes", finding)
    cost = (
        f"What is to go through memory is cut to less than {LARGER} times the {cache / 2**20:.4g} MiB of a last-level "
        "cache; a mix that takes more than there is is refused."
    )
    remedy = "Give the container or job more memory." if limit is not None else "Use a machine with more memory."
    return Check(name, "partly", finding, cost, remedy)


def peak(facts: Mapping[str, Any]) -> Check:
    """Is it known how much memory bandwidth a package gives?"""
    name, found = "memory peak", Peak.of(facts.get("memory_peak"))
    if found is None:
        cost = "How busy an antagonist keeps the memory is not known, and no rate can be a share of its peak."
        return Check(name, "unknown", "not measured on this machine", cost, f"Run {COMMAND} (a minute).", COMMAND)
    finding = f"{found.highest() / 1e9:.3g} GB/s read by up to {found.cores} cores, measured at {found.at}"
    if not found.saturated:
        cost = "Bandwidth still grew with the last core that was tried: shares of this peak say little of the memory."
        return Check(name, "partly", finding, cost, "Measure where all cores of a package may be used.")
    return Check(name, "yes", f"{finding}; {found.saturating} saturate it")
