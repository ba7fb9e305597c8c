"""The doctor's row on the source of memory latencies."""

from collections.abc import Mapping
from typing import Any

from castmates.machine.doctor.check import Check

NAME = "memory latencies"
COST = "Where loads were served from, and how long they took, is not in traces."


def memory_latencies(facts: Mapping[str, Any]) -> Check:
    """Does the processor sample loads with their latency?"""
    found: Mapping[str, str] | None = facts.get("latency_source")
    if found:
        return Check(NAME, "yes", f"{found['source']}, by perf's {found['events']}; not tried on real hardware yet")
    if facts.get("hypervisor_flag"):
        return Check(
            NAME, "no", "no PEBS, IBS or SPE in this guest", COST, "Use bare metal; few hypervisors pass it on."
        )
    return Check(NAME, "no", "no PEBS, IBS or SPE", COST, "Use a processor that has one, with its kernel driver.")
