"""What is read of a machine's caches, against the kernel's own resctrl."""

import pytest

from castmates.rdt.choose import choose_allocator, choose_monitor
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.mounting import why_not_mounted
from castmates.study.cache import Bandwidth, Cache
from tests.lab import guest

PER_CENT = Bandwidth(unit="%", least=10, step=10, most=100, by_core=True)
EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")
ALL = Cache(
    domains=(0,),
    ways=12,
    way_bytes=1572864,
    least_ways=1,
    sparse=False,
    shareable=0xC00,
    groups=7,  # 16 classes of the cache, but 8 of bandwidth, and the default group has one
    cdp=False,
    bandwidth=PER_CENT,
    events=EVENTS,
    monitored_groups=31,
)
NO_EVENTS = {"events": (), "monitored_groups": 0}
NO_MASKS = {"ways": 0, "way_bytes": None, "shareable": 0, "groups": 0, "bandwidth": None}
EXPECTED = {
    "linux-6.1": ALL,
    "linux-6.12": ALL,
    "linux-7.2": ALL,
    "two-sockets": ALL.model_copy(update={"domains": (0, 1)}),
    "two-sockets-6.1": ALL.model_copy(update={"domains": (0, 1)}),
    "cat-only": ALL.model_copy(update={"ways": 11, "shareable": 0x600, "groups": 15, "bandwidth": None, **NO_EVENTS}),
    "monitoring-only": ALL.model_copy(update=NO_MASKS),
    "two-sockets-sparse-7.2": ALL.model_copy(update={"domains": (0, 1), "sparse": True}),
    "sparse": ALL.model_copy(update={"sparse": True}),
    "few-groups": ALL.model_copy(update={"groups": 3, "monitored_groups": 7, "way_bytes": 131072}),
}


@pytest.mark.machines(*EXPECTED)
def test_capabilities_are_those_of_the_processor(machine, resctrl):
    assert read_cache() == EXPECTED[machine.name]


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_code_and_data_masks_halve_the_classes_of_the_cache(state):
    guest.mount("cdp")
    try:
        assert read_cache() == ALL.model_copy(update={"cdp": True})  # 8 classes of the cache, 8 of bandwidth
    finally:
        guest.unmount()


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_masks_of_the_default_group_bound_members_and_do_not_change_what_a_way_holds(resctrl):
    resctrl.write("schemata", "L3:0=7\nMB:0=30\n")
    assert read_cache() == ALL.model_copy(
        update={"allowed": 0b111, "bandwidth": PER_CENT.model_copy(update={"allowed": 30})}
    )


@pytest.mark.machines("linux-6.1")
def test_bandwidth_in_megabytes_is_known_from_the_mount(state):
    guest.mount("mba_MBps")
    try:
        assert read_cache().bandwidth.unit == "MiB/s"
    finally:
        guest.unmount()


@pytest.mark.machines("skylake")
def test_machine_without_rdt_is_told_and_used_all_the_same(state):
    assert read_cache() is None
    assert "this machine has no resctrl" in why_not_mounted()
    assert choose_allocator(shares=True).name == "none"
    assert choose_monitor().name == "none"
    assert not guest.is_mounted()


@pytest.mark.machines("linux-6.1")
def test_resctrl_that_nobody_mounted_is_told(state):
    assert read_cache() is None
    assert "resctrl is not mounted" in why_not_mounted()
