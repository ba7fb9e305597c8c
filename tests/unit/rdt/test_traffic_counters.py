"""Counters for traffic that the kernel assigns to groups: enough of them, too few, and those of others."""

from dataclasses import replace

import pytest

from castmates.rdt.fake import AMD_CHIPLETS, V6_12, V7_2, FakeResctrl
from castmates.rdt.resctrl.tree import NO_COUNT_WORDS, TrafficCounters
from tests.unit.rdt.fakes import Bench
from tests.unit.rdt.refused import refused
from tests.unit.rdt.test_monitor import LEAD, OTHER, Steady, series, values, watching

EVENTS = ("mbm_total_bytes", "mbm_local_bytes")


def turin(counters):
    """So many counters in each cache; the default group and each group take one for each of two events."""
    return replace(AMD_CHIPLETS, mbm_counters=counters)


def test_groups_have_counters_from_the_beginning():
    bench = Bench(turin(6), V7_2, source=Steady())
    bench.prepared()
    monitor = watching(bench)
    assert monitor.about()["traffic counters"].startswith("assigned to groups (l3:0 6; l3:1 6")
    assert "traffic not counted" not in monitor.about()
    assert None not in values(series(monitor), OTHER, "mbm_total")


def test_a_group_without_counters_is_reported_and_the_others_go_on():
    bench = Bench(turin(4), V7_2, source=Steady())
    bench.prepared()
    monitor = watching(bench)
    [said] = [said for said in bench.said if "traffic" in said]
    assert said.startswith("the traffic of other@1 is not counted: no counter for mbm_total_bytes in l3:0 (ENOSPC, ")
    assert "'Failed to allocate counter for mbm_total_bytes in domain 0'" in said
    assert "0 of 4 are free" in said
    assert OTHER in monitor.about()["traffic not counted"]
    samples = series(monitor)
    assert {one.note for one in samples if (one.subject, one.metric) == (OTHER, "mbm_total")} == {
        NO_COUNT_WORDS["Unassigned"]
    }
    assert None not in values(samples, LEAD, "mbm_total")
    assert None not in values(samples, OTHER, "llc_occupancy")


def test_counters_that_are_free_again_are_claimed():
    bench = Bench(turin(6), V7_2, source=Steady())
    bench.fake.make("mon_groups/forgotten")
    allocator = bench.prepared()
    place = f"{allocator.groups[OTHER]}/mbm_L3_assignments"
    assert "mbm_total_bytes:0=_" in bench.fake.read(place)
    bench.fake.remove("mon_groups/forgotten")
    monitor = watching(bench)
    assert "mbm_total_bytes:0=e" in bench.fake.read(place)
    assert not monitor.about().get("traffic not counted")
    assert None not in values(series(monitor), OTHER, "mbm_total")


def test_groups_of_others_are_left_as_they_are():
    fake = FakeResctrl(turin(4), V7_2)
    fake.make("first")
    fake.make("castmates-1000-0")
    counters = TrafficCounters(fake)
    counters.claim(LEAD, "castmates-1000-0", [(event, 0) for event in EVENTS])
    fake.remove("first")
    counters.claim(OTHER, "castmates-1000-0", [(event, 0) for event in EVENTS])
    assert counters.missing[OTHER] == "no counter is assigned to mbm_total_bytes in l3:0 of a group of others"
    assert "=e" not in fake.read("castmates-1000-0/mbm_L3_assignments")


@pytest.mark.parametrize(("shape", "kernel"), [(AMD_CHIPLETS, V7_2), (turin(4), V6_12)])
def test_without_such_counters_nothing_is_written_or_described(shape, kernel):
    bench = Bench(shape, kernel, source=Steady())
    bench.prepared()
    assert "traffic counters" not in watching(bench).about()


def test_in_the_other_mode_the_hardware_chooses():
    bench = Bench(turin(4), V7_2, source=Steady())
    bench.fake.write("info/L3_MON/mbm_assign_mode", "default\n")
    bench.prepared()
    monitor = watching(bench)
    assert monitor.about()["traffic counters"] == "given by the hardware (mode default)"
    assert None not in values(series(monitor), OTHER, "mbm_total")


def test_the_fake_answers_as_the_kernels_documentation_has_it():
    fake = FakeResctrl(turin(4), V7_2)
    assert fake.read("info/L3_MON/mbm_assign_mode") == "[mbm_event]\ndefault\n"
    assert fake.read("info/L3_MON/num_mbm_cntrs").startswith("0=4;1=4;")
    assert fake.read("info/L3_MON/available_mbm_cntrs").startswith("0=2;1=2;")
    fake.make("a")
    fake.make("b")  # it gets none, and is made all the same
    assert fake.read("info/last_cmd_status").splitlines()[0] == (
        "Failed to allocate counter for mbm_total_bytes in domain 0"
    )
    assert fake.read("b/mon_data/mon_L3_00/mbm_total_bytes") == "Unassigned\n"
    assert refused(fake.write, "b/mbm_L3_assignments", "mbm_total_bytes:0=e\n") == "ENOSPC"
    fake.write("a/mbm_L3_assignments", "mbm_total_bytes:*=_\n")
    fake.write("b/mbm_L3_assignments", "mbm_total_bytes:0=e\n")
    assert fake.read("b/mon_data/mon_L3_00/mbm_total_bytes") == "0\n"
    assert refused(fake.write, "a/mbm_L3_assignments", "mbm_total_bytes:0=x\n") == "EINVAL"
    fake.write("info/L3_MON/mbm_assign_mode", "default\n")
    assert refused(fake.read, "a/mbm_L3_assignments") == "EINVAL"
    assert refused(fake.read, "info/L3_MON/available_mbm_cntrs") == "EINVAL"
    assert refused(fake.write, "info/L3_MON/mbm_assign_mode", "none\n") == "EINVAL"


def test_what_events_count_is_recorded_where_it_can_be_chosen():
    def recorded(shape):
        bench = Bench(shape, V6_12, source=Steady())
        bench.prepared()
        return watching(bench).about().get("traffic counts", "")

    assert recorded(replace(AMD_CHIPLETS, configurable=True)) == "mbm_local_bytes 0x15; mbm_total_bytes 0x7f"
    assert recorded(replace(AMD_CHIPLETS, configurable=False)) == ""
