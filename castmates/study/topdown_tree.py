"""The Top-Down tree: its categories in TMA's words, and who is whose child; pure.

Values are shares: of all slots on levels 1 and 2, which therefore add up; on level 3 of the cycles, which do not.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Category(NamedTuple):
    """One box of the tree."""

    name: str
    level: int
    parent: str
    aliases: tuple[str, ...] = ()  # what perf calls it elsewhere, in lower case and without "tma_"


# AMD's two halves of Retiring are cut elsewhere than TMA's light and heavy operations, and keep their own names.
# Perf's names of level 2 on Zen 5 (…_by_…, …_from_…) differ from those on Zen 4.
TREE = (
    Category("Frontend_Bound", 1, ""),
    Category("Bad_Speculation", 1, "", ("slots_lost_misspeculation_fraction", "lost")),
    Category("Retiring", 1, "", ("retired_fraction",)),
    Category("Backend_Bound", 1, ""),
    Category("SMT_Contention", 1, ""),
    Category(
        "Fetch_Latency",
        2,
        "Frontend_Bound",
        ("frontend_bound_latency", "frontend_bound_by_latency", "frontend_latency"),
    ),
    Category(
        "Fetch_Bandwidth",
        2,
        "Frontend_Bound",
        ("frontend_bound_bandwidth", "frontend_bound_by_bandwidth", "frontend_bandwidth"),
    ),
    Category(
        "Branch_Mispredicts", 2, "Bad_Speculation", ("bad_speculation_mispredicts", "bad_speculation_from_mispredicts")
    ),
    Category(
        "Machine_Clears",
        2,
        "Bad_Speculation",
        ("bad_speculation_pipeline_restarts", "bad_speculation_from_pipeline_restarts"),
    ),
    Category("Light_Operations", 2, "Retiring"),
    Category("Heavy_Operations", 2, "Retiring"),
    Category("Retiring_Fastpath", 2, "Retiring", ("retiring_from_fastpath",)),
    Category("Retiring_Microcode", 2, "Retiring", ("retiring_from_microcode",)),
    Category("Memory_Bound", 2, "Backend_Bound", ("backend_bound_memory", "backend_bound_by_memory")),
    Category("Core_Bound", 2, "Backend_Bound", ("backend_bound_cpu", "backend_bound_by_cpu")),
    Category("L1_Bound", 3, "Memory_Bound"),
    Category("L2_Bound", 3, "Memory_Bound"),
    Category("L3_Bound", 3, "Memory_Bound"),
    Category("DRAM_Bound", 3, "Memory_Bound"),
    Category("Store_Bound", 3, "Memory_Bound"),
)
LEVEL_ONE = ("Frontend_Bound", "Bad_Speculation", "Retiring", "Backend_Bound")  # that every processor has
BY_NAME = {category.name: category for category in TREE}
_BY_ALIAS = {alias: each for each in TREE for alias in (each.name.lower(), f"{each.name.lower()}_smt", *each.aliases)}
MEMORY_PART = tuple(each.name for each in TREE if each.level == 3)


def category(perf_name: str) -> Category | None:
    """The category that perf means by tma_frontend_bound, Frontend_Bound or frontend_bound; None for other metrics."""
    return _BY_ALIAS.get(perf_name.strip().lower().removeprefix("tma_"))


def of_level(level: int) -> tuple[str, ...]:
    """The names of a level, in the order in which they are drawn."""
    return tuple(each.name for each in TREE if each.level == level)


def children(parent: str) -> tuple[str, ...]:
    """The names right below a category."""
    return tuple(each.name for each in TREE if each.parent == parent)


def remainders(shares: Mapping[str, float]) -> dict[str, float]:
    """What is missing from a whole: of level 1 (key "") to one, of each parent's children to the parent.

    Only complete families are reported; SMT contention, which few processors report, may be missing.
    """
    missing: dict[str, float] = {}
    if set(LEVEL_ONE) <= shares.keys():
        missing[""] = 1.0 - sum(shares.get(name, 0.0) for name in of_level(1))
    for parent in of_level(1):
        known = [name for name in children(parent) if name in shares]
        if parent in shares and len(known) == 2:
            missing[parent] = shares[parent] - sum(shares[name] for name in known)
    return missing
