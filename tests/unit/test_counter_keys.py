"""The key `counters` of a study: its defaults, its mistakes, and what launches are planned to count."""

from types import SimpleNamespace

from castmates.study.capabilities import EVENTS
from castmates.study.counter_keys import SETS, described, event_name
from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.reading import read_keys
from tests.unit.snapshots import assert_as_before, refusal

BASE = "name: one\nleads: [chase]\nantagonists: [stream]\n"


def study(counters):
    return read_keys(Study, f"{BASE}counters: {counters}\n", "study.yaml")


def counts_events(study):
    return EVENTS.asked(SimpleNamespace(launches=[SimpleNamespace(design=design_of(study))]))


def test_by_default_the_basic_and_the_cache_set_are_counted():
    design = design_of(read_keys(Study, BASE, "study.yaml"))
    assert design.counters.events == (("basic", SETS["basic"]), ("cache", SETS["cache"]))
    assert (design.counters.topdown, design.counters.how, design.counters.series) == (1, "auto", 10)
    assert (design.counters.profile, design.counters.cost_pairs) == (0, 0)


def test_a_control_is_counted_like_a_result_but_neither_profiled_nor_asked_for_costs():
    design = design_of(study("{profile: 5, cost_pairs: 3}"), is_control=True)
    assert design.counters.events
    assert (design.counters.profile, design.counters.cost_pairs) == (0, 0)


def test_a_modelled_machine_has_no_counters():
    modelled = read_keys(Study, BASE + "platform: modelled\n", "study.yaml")
    design = design_of(modelled)
    assert (design.counters.events, design.counters.topdown, design.counters.cost_pairs) == ((), 0, 0)
    assert not counts_events(modelled)
    assert counts_events(study("{}"))
    assert not counts_events(study("{events: []}"))


def test_sets_of_ones_own_stand_beside_the_named_ones():
    own = study('{events: [mine, faults], sets: {mine: [instructions:u, "cpu/event=0xd1,umask=0x20,name=l3_miss/"]}}')
    assert [name for name, _ in own.counters.chosen] == ["mine", "faults"]
    assert described(own.counters).startswith(
        "mine (instructions:u, l3_miss); faults (page-faults, minor-faults, major-faults); Top-Down level 1"
    )
    assert described(study("{events: [], topdown: 0}").counters) == "no events"
    assert "by thread" in described(study("{how: thread}").counters)


MISTAKES = (
    "{events: [basic, basics]}", "{events: [mine], sets: {min: [cycles]}}", "{events: [basic, basic]}",
    "{sets: {cache: [cycles]}}", "{sets: {mine: []}}", "{sets: {mine: ['cycles,instructions']}}",
    "{sets: {mine: ['{cycles}']}}", "{sets: {mine: ['-a']}}", "{sets: {mine: [r1a8, 'cpu/event=1,name=r1a8/']}}",
    "{events: [mine, basic], sets: {mine: ['cpu/event=0x76,name=cycles/']}}", "{sets: {mine: ['cycles:pp']}}",
    "{sets: {mine: ['instructions:uG']}}", "{sets: {mine: ['cpu/event=1/p']}}", "{topdown: 3}", "{how: process}",
    "{series: 1000}", "{event: [basic]}",
)  # fmt: skip


def test_mistakes_get_a_sentence():
    assert_as_before("counter-keys", {counters: refusal(study, counters) for counters in MISTAKES})


def test_one_event_in_two_sets_and_names_that_end_like_modes_are_no_mistake():
    chosen = study("{events: [mine, cache, memory], sets: {mine: ['sched:sched_switch:u', cpu/event=1/uk]}}").counters
    assert [name for name, _ in chosen.chosen] == ["mine", "cache", "memory"]


def test_an_event_is_called_what_it_calls_itself():
    assert event_name("cpu/event=0xd1,umask=0x20,name=l3_miss/") == "l3_miss"
    assert event_name("cpu/name=first,event=1/u") == "first"
    assert event_name("sched:sched_switch") == "sched:sched_switch"
