"""The sets of events that every study may name: the kernel's own names, and those that perf lists for a processor.

An event of the second kind is a choice: the names that perf has for one thing on several processors, joined by bars.
Where a launch is measured, the first of them that perf lists there is counted, under that name.
"""

from collections.abc import Mapping

BETWEEN = "|"

# The kernel's own names, which every perf knows. What they count differs by vendor (docs/counters.md).
KERNEL_SETS: Mapping[str, tuple[str, ...]] = {
    "basic": ("cycles", "instructions", "task-clock"),
    "cache": (
        "cache-references",
        "cache-misses",
        "L1-dcache-loads",
        "L1-dcache-load-misses",
        "LLC-loads",
        "LLC-load-misses",
    ),
    "tlb": ("dTLB-loads", "dTLB-load-misses", "iTLB-loads", "iTLB-load-misses"),
    "memory": ("LLC-load-misses", "LLC-store-misses", "node-loads", "node-load-misses", "node-stores"),
    "faults": ("page-faults", "minor-faults", "major-faults"),
    "switches": ("context-switches", "cpu-migrations"),
}

# A line is one thing: AMD's names first, newer processors before older ones, then Intel's and Arm's. Those of Intel's
# efficient cores have lines of their own, because a hybrid processor has both.
PROCESSOR_SETS: Mapping[str, tuple[str, ...]] = {
    # Where the data came from that the first cache lacked.
    "sources": (
        "ls_any_fills_from_sys.local_l2|ls_any_fills_from_sys.lcl_l2|ls_refills_from_sys.ls_mabresp_lcl_l2|"
        "mem_load_retired.l2_hit",
        "ls_any_fills_from_sys.local_ccx|ls_any_fills_from_sys.int_cache|ls_refills_from_sys.ls_mabresp_lcl_cache|"
        "mem_load_retired.l3_hit|ll_cache_rd",
        "ls_any_fills_from_sys.remote_cache|l1_data_cache_fills_from_external_ccx_cache|"
        "ls_refills_from_sys.ls_mabresp_rmt_cache",
        "mem_load_retired.l3_miss|ll_cache_miss_rd",
        "ls_any_fills_from_sys.dram_io_near|ls_any_fills_from_sys.mem_io_local|"
        "ls_refills_from_sys.ls_mabresp_lcl_dram|mem_load_l3_miss_retired.local_dram",
        "ls_any_fills_from_sys.dram_io_far|ls_any_fills_from_sys.mem_io_remote|"
        "ls_refills_from_sys.ls_mabresp_rmt_dram|mem_load_l3_miss_retired.remote_dram|remote_access",
        "mem_load_uops_retired.l2_hit",
        "mem_load_uops_retired.l3_hit",
        "mem_load_uops_retired.dram_hit",
    ),
    # Requests to the second cache and misses there; of AMD also its prefetches, by what the third cache had.
    "l2": (
        "l2_request_g1.all_no_prefetch|l2_rqsts.references|l2_request.all|l2d_cache",
        "l2_cache_req_stat.ic_dc_miss_in_l2|l2_rqsts.miss|l2_request.miss|l2d_cache_refill",
        "l2_lines_in.all",
        "l2_pf_miss_l2_hit_l3.all|l2_pf_miss_l2_hit_l3.l1_dc_l2_hwpf|l2_pf_miss_l2_hit_l3",
        "l2_pf_miss_l2_l3.all|l2_pf_miss_l2_l3.l1_dc_l2_hwpf|l2_pf_miss_l2_l3",
        "l3d_cache",
        "l3d_cache_refill",
    ),
    # Cycles in which nothing went on because data was awaited.
    "stalls": (
        "ex_no_retire.load_not_complete|memory_activity.stalls_l2_miss|cycle_activity.stalls_l2_miss|stall_backend_mem",
        "memory_activity.stalls_l3_miss|cycle_activity.stalls_l3_miss",
        "stall_backend",
        "mem_bound_stalls.load|mem_bound_stalls_load.all",
        "mem_bound_stalls.load_dram_hit",
    ),
}
SETS: Mapping[str, tuple[str, ...]] = {**KERNEL_SETS, **PROCESSOR_SETS}

# Of the kernel's names, those that AMD's processors since Zen have no event for.
LAST_LEVEL = frozenset(name for name in (*SETS["cache"], *SETS["memory"]) if name.startswith(("LLC-", "node-")))


def names_of(words: str) -> tuple[str, ...]:
    """The names of a choice, in their order; of any other event its words."""
    return tuple(words.split(BETWEEN))


_OWN = {name: group for group, choices in PROCESSOR_SETS.items() for words in choices for name in names_of(words)}
_MISSED = ("dram", "mem_io", "l3_miss", "miss_rd", "miss_in_l2", "_miss_l2", ".miss", "cache_refill", "remote_access")


def is_miss(event: str) -> bool:
    """Whether an event counts what a cache lacked, so that it is worth seeing per 1000 instructions."""
    return event.endswith("misses") or (_OWN.get(event) in ("sources", "l2") and any(part in event for part in _MISSED))


def is_stall(event: str) -> bool:
    """Whether an event counts cycles, so that its share of all cycles says most."""
    return _OWN.get(event) == "stalls"
