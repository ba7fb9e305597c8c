"""The doctor's rows on pages and on memory bandwidth; pure functions of facts."""

from collections.abc import Mapping
from typing import Any

from castmates.machine.doctor.check import Check
from castmates.study.memory_peak import COMMAND, Peak

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


def peak(facts: Mapping[str, Any]) -> Check:
    """Is it known how much memory bandwidth a package gives?"""
    name, found = "memory peak", Peak.of(facts.get("memory_peak"))
    if found is None:
        cost = "How busy a neighbour keeps the memory is not known, and no rate can be a share of its peak."
        return Check(name, "unknown", "not measured on this machine", cost, f"Run {COMMAND} (a minute).", COMMAND)
    finding = f"{found.highest() / 1e9:.3g} GB/s read by up to {found.cores} cores, measured at {found.at}"
    if not found.saturated:
        cost = "Bandwidth still grew with the last core that was tried: shares of this peak say little of the memory."
        return Check(name, "partly", finding, cost, "Measure where all cores of a package may be used.")
    return Check(name, "yes", f"{finding}; {found.saturating} saturate it")
