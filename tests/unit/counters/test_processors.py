"""Every set of events on every processor of which perf's lists are recorded: events that are there, or a reason."""

import pytest

from castmates.counters.events.budget import Tried, probe
from castmates.counters.events.counting import _instead
from castmates.counters.events.resolving import NO_PERF, NONE_LISTED, choose, list_names, names_in, resolve
from castmates.counters.topdown.probe import Known, wanted_groups
from castmates.study.counter_keys import (
    KERNEL_SETS,
    LAST_LEVEL,
    MEMORY_PART,
    PROCESSOR_SETS,
    SETS,
    TREE,
    category,
    children,
    is_miss,
    is_stall,
)
from castmates.study.event_spelling import names_of
from tests.unit.counters.processors import NAMES, processor
from tests.unit.snapshots import assert_as_before


def resolved(here, group):
    return resolve([(group, SETS[group])], here.ask, lambda: names_in(here.listed()))


@pytest.mark.parametrize("group", PROCESSOR_SETS)
def test_a_processors_own_set_is_of_events_that_perf_lists_there_or_gives_a_reason(group):
    """What it comes to on each processor, in order, is in the file of words."""
    told = {}
    for name in NAMES:
        here = processor(name)
        events = resolved(here, group)
        known = [event for event in events if event.attrs]
        assert {event.name for event in known} <= here.events.keys()
        attrs = [attr for event in known for attr in event.attrs if here.encoded(event.name)]
        assert len(set(attrs)) == len(attrs), "no two names of one thing are counted"
        if known:
            assert events == known, "what another processor has is no row here"
        else:
            (event,) = events
            assert (event.name, event.refusal) == (group, ("not supported", NONE_LISTED))
            assert here.asked == []
        told[name] = [event.name for event in known]
    assert_as_before(f"counter-sets-{group}", told)


@pytest.mark.parametrize("group", KERNEL_SETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_set_of_the_kernels_names_counts_or_the_refusal_points_to_the_processors_own(name, group, tmp_path):
    here = processor(name)
    events = resolved(here, group)
    assert all(event.attrs for event in events), "perf knows the kernel's names everywhere"
    assert len({attr.unit for event in events if not event.in_software for attr in event.attrs}) <= 1 + here.hybrid

    def attempt(tried):
        refused = {event.name: "not supported: no counter" for event in tried if event.name in here.lacks}
        return Tried({event.name: 1.0 for event in tried if event.name not in refused}, refused)

    budget = probe([*events, *resolved(here, "basic")], [0], tmp_path, attempt)
    assert set(budget.refused) == {event.name for event in events} & here.lacks
    assert bool(_instead(budget, events)) == bool(set(budget.refused) & LAST_LEVEL)


def test_which_processors_lack_the_kernels_names_of_the_last_cache():
    assert {"LLC-loads", "LLC-load-misses", "node-loads"} <= processor("zen4").lacks
    assert processor("skylake-sp").lacks == set()
    assert not processor("neoverse-n1").lacks & {"LLC-loads", "LLC-load-misses"}


def test_every_name_that_a_set_offers_is_listed_for_some_processor_but_those_named_here():
    listed = {name for one in NAMES for name in processor(one).events}
    offered = {name for choices in PROCESSOR_SETS.values() for words in choices for name in names_of(words)}
    # Of Arm's processors of which no list is recorded; aliases of names that are.
    assert offered - listed == {"remote_access", "stall_backend_mem"}


@pytest.mark.parametrize("name", ["sierra-forest", "grand-ridge", "clearwater-forest"])
def test_efficient_servers_show_what_their_last_cache_lacked_and_what_they_waited_for(name):
    sources, stalls = ([one.name for one in resolved(processor(name), group)] for group in ("sources", "stalls"))
    beyond = {f"mem_load_uops_l3_miss_retired.{where}" for where in ("all", "local_dram")}
    assert beyond <= {name for name in sources if is_miss(name)}
    assert {one.partition("_load.")[2].split("_localmem")[0] for one in stalls} >= {"llc_hit", "llc_miss"}


def test_what_misses_and_what_stalls_is_seen_by_its_name():
    missed = {name for one in NAMES for name in processor(one).events if is_miss(name)}
    assert {
        "ls_any_fills_from_sys.dram_io_near",
        "mem_load_retired.l3_miss",
        "l2_rqsts.miss",
        "ll_cache_miss_rd",
        "l2_rqsts.demand_data_rd_miss",
        "mem_load_uops_l3_miss_retired.all",
    } <= missed
    assert not any(
        is_miss(name)
        for name in (
            "ls_any_fills_from_sys.local_l2",
            "ls_refills_from_sys.ls_mabresp_lcl_l2",
            "mem_load_retired.l2_hit",
            "l2_rqsts.references",
            "l2_rqsts.all_demand_data_rd",
            "instructions",
        )
    )
    assert is_miss("LLC-load-misses")
    assert is_stall("memory_activity.stalls_l3_miss")
    assert not is_stall("cycles")


def test_perf_is_asked_for_its_names_only_where_there_is_a_choice():
    def nobody():
        raise AssertionError("perf was asked")

    assert choose([("basic", ["cycles"])], nobody) == ([("basic", ["cycles"])], {})
    sets, lacking = choose([("basic", ["cycles"]), ("sources", SETS["sources"])], lambda: None)
    assert sets == [("basic", ["cycles"]), ("sources", [])]
    assert lacking == {"sources": ("not supported", NO_PERF)}


def test_an_event_with_two_names_is_known_by_its_own_whichever_of_them_perf_lists():
    assert {"page-faults", "context-switches"} <= names_in("alignment-faults cs faults task-clock")
    assert {"page-faults", "context-switches"} <= names_in("context-switches page-faults task-clock")
    assert "cpu-migrations" not in names_in("cs faults")


@pytest.mark.needs("perf")
def test_this_machines_perf_lists_names():
    names = list_names()
    assert names is None or {"page-faults", "task-clock"} <= names


TOPDOWN = {"TopdownL1": 4, "PipelineL1": 5, "TopdownL2": 8, "PipelineL2": 8}  # categories of these groups


@pytest.mark.parametrize("name", [one for one in NAMES if processor(one).metrics])
def test_all_of_perfs_top_down_metrics_have_a_place_in_the_tree(name):
    metrics = processor(name).metrics
    known = {metric: Known(tuple(groups.split(";"))) for metric, groups in metrics.items()}
    levels = 1 if name.startswith("neoverse") else 2
    wanted = wanted_groups(known, 2, smt=False)
    assert len([group for group in wanted if group[0].startswith(("Top", "Pipe"))]) == levels
    for (group,) in wanted[:levels]:
        found = {category(metric).name for metric, one in known.items() if group in one.groups and category(metric)}
        assert len(found) >= TOPDOWN[group], f"{name}: {group} has {sorted(found)}"
        level = int(group[-1])
        assert {each.level for each in TREE if each.name in found} == {level}
    if levels == 2 and name != "alder-lake":
        families = ("Frontend_Bound", "Bad_Speculation", "Backend_Bound")
        there = {category(metric).name for metric in metrics if category(metric)}
        assert all(set(children(parent)) <= there for parent in families)
    assert not set(MEMORY_PART) & {category(metric).name for metric in metrics if category(metric)}
