"""The key `counters` of a study: which events are counted for each member, and how.

What an event is on a processor is asked of perf there, when a launch is measured: here are names alone.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from castmates.study.event_spelling import BETWEEN, as_perf_spells, names_of
from castmates.study.written import Name, Written

# The sets of events that every study may name: the kernel's own names, and those that perf lists for a processor.
#
# An event of the second kind is a choice: the names that perf has for one thing on several processors, joined by bars.
# Where a launch is measured, the first of them that perf lists there is counted, under that name.

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
        "mem_load_uops_l3_miss_retired.all",
        "mem_load_uops_retired.dram_hit|mem_load_uops_l3_miss_retired.local_dram",
        "mem_load_uops_l3_miss_retired.remote_dram_or_nofwd",
    ),
    # Requests to the second cache and misses there; of AMD also its prefetches, by what the third cache had. Of all
    # requests Ice Lake's servers count only parts: those of loads, and their misses.
    "l2": (
        "l2_request_g1.all_no_prefetch|l2_rqsts.references|l2_request.all|l2d_cache|l2_rqsts.all_demand_data_rd",
        "l2_cache_req_stat.ic_dc_miss_in_l2|l2_rqsts.miss|l2_request.miss|l2d_cache_refill|l2_rqsts.demand_data_rd_miss",
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
        "mem_bound_stalls.load_llc_hit|mem_bound_stalls_load.llc_hit",
        "mem_bound_stalls.load_dram_hit|mem_bound_stalls_load.llc_miss|mem_bound_stalls_load.llc_miss_localmem",
    ),
}
SETS: Mapping[str, tuple[str, ...]] = {**KERNEL_SETS, **PROCESSOR_SETS}

# Of the kernel's names, those that AMD's processors since Zen have no event for.
LAST_LEVEL = frozenset(name for name in (*SETS["cache"], *SETS["memory"]) if name.startswith(("LLC-", "node-")))


_OWN = {name: group for group, choices in PROCESSOR_SETS.items() for words in choices for name in names_of(words)}
_MISSED = (
    *("dram", "mem_io", "l3_miss", "miss_rd", "miss_in_l2", "_miss_l2"),
    *(".miss", "rd_miss", "cache_refill", "remote_access"),
)


def is_miss(event: str) -> bool:
    """Whether an event counts what a cache lacked, so that it is worth seeing per 1000 instructions."""
    return event.endswith("misses") or (_OWN.get(event) in ("sources", "l2") and any(part in event for part in _MISSED))


def is_stall(event: str) -> bool:
    """Whether an event counts cycles, so that its share of all cycles says most."""
    return _OWN.get(event) == "stalls"


FASTEST_SERIES = 100.0
MOST_PROFILED = 10  # what the makers of the profiler advise
MOST_RANGES = 500_000
_EVENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*(/[A-Za-z0-9_.,=:@-]+/[a-zA-Z]*)?")
_OTHER_MODES = re.compile(r".+(?::(?=[ukhpPGHSDIWeb]+$)|/)[ukh]*[^ukh/:][^/:]*")
_MODES = "no other letters behind an event than u, k and h (user mode, the kernel's part, the hypervisor's)"
_NAME = re.compile(r"[/,]name=([^,/]+)")
_WHAT = (
    "an event in perf's words, such as cache-misses or cpu/event=0xd1,umask=0x20,name=l3_miss/, or in PAPI's or "
    "Intel's (PAPI_L3_TCM, MEM_LOAD_RETIRED.L3_MISS), one to an entry"
)


def _event(text: str) -> str:
    words = as_perf_spells(text)
    if not all(_EVENT.fullmatch(name) for name in names_of(words)):
        raise ValueError(_WHAT)
    if any(_OTHER_MODES.fullmatch(name) for name in names_of(words)):
        raise ValueError(_MODES)
    return words


EventText = Annotated[str, AfterValidator(_event), Field(description=_WHAT)]


def event_name(event: str) -> str:
    """What the event is called in tables: the name that it gives itself, or its own words."""
    named = _NAME.search(event)
    return named[1] if named else event


class CounterKeys(Written):
    """What is counted in every window; more in docs/counters.md."""

    events: list[Name] = Field(
        default=["basic", "cache"],
        description=f"sets of events: {', '.join(SETS)}, or names of 'sets'; an empty list counts none",
    )
    sets: dict[Name, Annotated[list[EventText], Field(min_length=1)]] = Field(
        default_factory=dict, description="sets of your own: a name, and its events in perf's words"
    )
    topdown: Literal[0, 1, 2] = Field(default=1, description="level of the Top-Down analysis; 0 for none")
    how: Literal["auto", "cgroup", "thread", "cpu"] = Field(
        default="auto",
        description="what is counted: a member's control group, its threads with all that they start, or all that "
        "runs on its CPUs; auto takes the first of these that the kernel allows",
    )
    series: float = Field(
        default=10.0,
        ge=0,
        le=FASTEST_SERIES,
        description="readings of the events in a second of a window; 0 for its two edges alone",
    )
    profile: int = Field(
        default=0,
        ge=0,
        le=MOST_PROFILED,
        description="steps of each lead that are profiled in its 'alone' and co-run scenes after the rounds, kept "
        "apart from what is measured; 0 for none",
    )
    cost_pairs: int = Field(
        default=0,
        ge=0,
        le=100,
        description="pairs of windows of each launch, with and without each collector, that show what it costs; "
        "0 for none",
    )
    ranges: int = Field(
        default=0,
        ge=0,
        le=MOST_RANGES,
        description="annotations (phases, ranges, instants, epochs) that a launch keeps one by one of each member with "
        "'phases: true', at most; 0 keeps only their sums",
    )

    @model_validator(mode="after")
    def _known_and_clear(self) -> Self:
        taken = [name for name in self.sets if name in SETS]
        unknown = [name for name in self.events if name not in SETS and name not in self.sets]
        twice = sorted({name for name in self.events if self.events.count(name) > 1})
        known = ", ".join([*SETS, *(name for name in self.sets if name not in SETS)])
        wrong = {
            f"another name for the set {' and '.join(taken)}, which there is already": taken,
            f"sets of events ({known}), and not {' and '.join(unknown)}": unknown,
            f"each set once, and not {' and '.join(twice)} twice": twice,
        }
        for expected, holds in wrong.items():
            if holds:
                raise ValueError(expected)
        for name, words in self.sets.items():
            called = [event_name(event) for event in words]
            if len(set(called)) < len(called):
                raise ValueError(f"events of different names in the set {name}")
        first: dict[str, tuple[str, str]] = {}
        for name, events in self.chosen:
            for event in events:
                earlier, other = first.setdefault(event_name(event), (event, name))
                if earlier != event:
                    raise ValueError(
                        f"one event for each name, and not two for {event_name(event)}, in {other} and {name}"
                    )
        return self

    @property
    def chosen(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The sets that are counted, each with its events."""
        return tuple((name, SETS[name] if name in SETS else tuple(self.sets[name])) for name in self.events)


def described(keys: CounterKeys) -> str:
    """What is counted, in a line."""
    parts = [
        f"{name} (as perf lists them for the processor)"
        if name in PROCESSOR_SETS
        else f"{name} ({', '.join(event_name(event).replace(BETWEEN, ' or ') for event in events)})"
        for name, events in keys.chosen
    ]
    if keys.topdown:
        parts.append(f"Top-Down level {keys.topdown}")
    ranges = f"; up to {keys.ranges:,} annotations of each member with phases, one by one" if keys.ranges else ""
    if not parts:
        return f"no events{ranges}"
    how = {"auto": "", "cgroup": ", by control group", "thread": ", by thread", "cpu": ", by CPU"}[keys.how]
    return f"{'; '.join(parts)}{how}, as far as each machine can{ranges}"


# The Top-Down tree: its categories in TMA's words, and who is whose child; pure.
#
# Values are shares: of all slots on levels 1 and 2, which therefore add up; on level 3 of the cycles, which do not.


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
