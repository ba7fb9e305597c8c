"""What an event is for perf, read from its own output; and the table for where there is no perf."""

from pathlib import Path

import pytest

from castmates.counters.events.resolving import ask_perf, attributes, resolve
from castmates.linux.event_names import look_up
from castmates.linux.perf_event import EXCLUDE_HV, EXCLUDE_KERNEL, Attr
from castmates.study.counter_keys import KERNEL_SETS
from tests.needs import lacks

RULE = "------------------------------------------------------------\n"


DATA = Path(__file__).parents[2] / "data/perf_events"
# Recorded: perf 6.1.187, `perf stat -vv -e cycles:u -e page-faults true`, a machine without hardware counters.
RECORDED = (DATA / "recorded-6.1.txt").read_text()
# Public: what perf 6.15 prints on a Raptor Lake, from github.com/intel/perfmon/issues/317 (one event of it).
RAPTOR_LAKE = (DATA / "raptor-lake-6.15.txt").read_text()


def asked(kind, config, times="TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING", more=""):
    """Synthetic: an event in perf's words."""
    return f"{RULE}perf_event_attr:\n  type  {kind}\n  config  {config}\n  read_format  {times}\n{more}{RULE}"


def test_an_event_is_read_out_of_perfs_words_also_where_it_cannot_be_counted():
    first, second = RECORDED.split("Warning:")
    assert attributes(first) == (Attr(0, 0, exclude=EXCLUDE_KERNEL | EXCLUDE_HV),)
    assert attributes(second) == (Attr(1, 2),)
    assert attributes(RAPTOR_LAKE) == (Attr(4, 0x1C6, config1=0x11),)
    assert attributes(RAPTOR_LAKE)[0].encoding == "type=4 config=0x1c6 config1=0x11"


def test_what_takes_a_word_that_is_not_passed_on_is_refused_with_the_reason_and_not_counted_as_another_event():
    far = asked("10", "0x1", more="  config3  0x2\n")
    answers = {"far": far, "near": asked("10", "0x1"), "dummy:u": asked("1", "9")}
    far, near = resolve([("mine", ["far", "near"])], lambda words: "".join(answers[word] for word in words))
    assert (far.attrs, near.attrs) == ((), (Attr(10, 1),))
    assert str(far.refusal) == "not supported: perf gives it the word config3, which castmates does not hand on"


def test_a_hybrid_processor_has_an_event_of_each_kind_of_core():
    (event,) = resolve([("basic", ["cycles"])], lambda _: asked("0", "0x400000000") + asked("0", "0xa00000000"))
    assert [attr.unit for attr in event.attrs] == [4, 10]


def test_perf_tries_again_with_less_and_tries_out_things_for_itself():
    again = asked("9", "0x1", more="  exclude_guest  1\n") + asked("9", "0x1")
    own = asked("0", "0x400000000", times="")  # of a newer perf: are there several units?
    assert attributes(own + again) == (Attr(9, 1),)


HYBRID = asked("0", "0x400000000") + asked("0", "0xa00000000")
SAYS = {"cycles": HYBRID, "page-faults": asked("1", "0x2") * 2, "num_cpus": "", "dummy:u": asked("1", "0x9")}
BOTH_CORES = (Attr(0, 0x400000000), Attr(0, 0xA00000000))


def test_all_events_are_asked_for_at_once_and_a_mark_tells_them_apart():
    calls = []

    def ask(words):
        calls.append(list(words))
        return "".join(SAYS[word] for word in words)

    cycles, faults = resolve([("one", ["cycles", "page-faults"]), ("two", ["cycles"])], ask)
    assert calls == [["cycles", "dummy:u", "page-faults", "dummy:u"]]
    assert (cycles.attrs, cycles.group, faults.attrs) == (BOTH_CORES, "one", (Attr(1, 2),))
    calls.clear()
    cycles, nothing = resolve([("one", ["cycles", "num_cpus"])], ask)  # as many tries as events, and yet not theirs
    assert calls[1:] == [["cycles"], ["num_cpus"]]
    assert (cycles.attrs, nothing.attrs) == (BOTH_CORES, ())


def test_what_perf_measures_itself_is_no_counter_and_is_not_asked_for():
    def ask(words):
        return "".join(SAYS.get(word, SAYS["dummy:u"]) for word in words)

    names = ["duration_time", "user_time", "system_time:u", "dummy", "bpf-output"]
    *own, config, faults = resolve([("mine", [*names, "software/config=9/", "page-faults"])], ask)
    assert {(one.attrs, str(one.refusal)) for one in own} == {
        ((), "not supported: perf measures it itself; it is no counter")
    }
    assert config.attrs == ()
    assert faults.attrs == (Attr(1, 2),)


def test_what_perf_does_not_know_says_so_in_perfs_words():
    said = "event syntax error: 'nonsense'\n                     \\___ Cannot find PMU `cpu'. Missing kernel support?\n"
    (event,) = resolve([("mine", ["nonsense"])], lambda _: said)
    assert not event.attrs
    assert str(event.refusal).startswith(
        "not supported: perf does not know this event here (event syntax error: 'nonsense';"
    )
    assert "Cannot find PMU" in event.refusal.why


def test_without_perf_the_kernels_own_events_are_known():
    for events in KERNEL_SETS.values():
        assert all(event.attrs for event in resolve([("all", events)], lambda _: None))
    assert look_up("LLC-load-misses") == Attr(3, 0x10002)
    assert look_up("instructions:u") == Attr(0, 1, exclude=EXCLUDE_KERNEL | EXCLUDE_HV)
    assert look_up("r01a8") == Attr(4, 0x1A8)
    (event,) = resolve([("mine", ["cpu/event=0xd1,umask=0x20,name=l3_miss/"])], lambda _: None)
    assert (event.name, event.attrs) == ("l3_miss", ())
    assert "without perf" in event.refusal.why


@pytest.mark.needs("perf")
def test_the_table_agrees_with_perf_where_perf_is():
    if ask_perf(["page-faults"]) is None:
        lacks("perf", "the perf that is installed is not for this kernel")
    for event in resolve(list(KERNEL_SETS.items())):
        table = look_up(event.words)
        assert event.attrs, event
        assert {(attr.kind, attr.config & 0xFFFFFFFF) for attr in event.attrs} <= {(table.kind, table.config)}, event
