"""What is special about some processors, through the real kernel: what Linux hides, what masks become, other masks."""

from pathlib import Path

import pytest

from castmates.linux.msr import read_msr
from castmates.machine.doctor.examine import examine
from castmates.machine.facts import machine_facts
from castmates.machine.topology import read_topology
from castmates.protocols import Held, HeldOtherwise
from castmates.rdt.choose import choose_allocator
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.rdt.resctrl.wanted_schemata import parse
from castmates.study.spec import Share

LEAD, OTHER = "lead@0", "other@1"
SECOND_MASKS = 0xD10
WHOLE = 0xFFFF  # of a second-level cache


def doctors_rows():
    topology = read_topology()
    return {check.name: check for check in examine(machine_facts(Path("/"), topology), topology)}


@pytest.fixture
def pair(resctrl, crowd):
    """An allocator with two members, on the first two CPUs."""
    allocator = choose_allocator(shares=True)
    allocator.prepare({LEAD: Held(crowd().pid, [0]), OTHER: Held(crowd().pid, [1])})
    yield allocator
    allocator.restore()


@pytest.mark.machines("skylake-sp")
def test_doctor_names_the_boot_words_that_switch_on_what_linux_hides(resctrl):
    assert " cat_l3 " in Path("/proc/cpuinfo").read_text()
    assert list(parse(resctrl.read("schemata"))) == ["MB"]
    assert "L3_MON" not in resctrl.names("info")
    assert read_cache().ways == 0
    row = doctors_rows()["CAT"]
    assert row.state == "no"
    assert "rdt=l3cat,cmt,mbmtotal,mbmlocal" in row.remedy


@pytest.mark.machines("skylake-sp-told")
def test_the_boot_words_that_doctor_names_work(resctrl):
    cache = read_cache()
    assert (cache.ways, cache.shareable, len(cache.events)) == (11, 0x600, 3)
    rows = doctors_rows()
    assert (rows["CMT"].state, rows["MBM"].state) == ("yes", "yes")
    assert rows["masks verified"].state != "yes"
    assert "--verify-rdt" in rows["masks verified"].remedy


@pytest.mark.machines("skylake-sp-told")
def test_what_the_processor_makes_of_masks_and_throttles_is_read_from_its_registers(pair):
    shares = (Share(member=LEAD, ways=0x3FF, bandwidth=70), Share(member=OTHER, ways=0x400, bandwidth=60))
    pair.apply(shares)
    assert pair.read_back()[OTHER] == "MB:0=60 L3:0=400"  # the kernel goes on showing what it was asked
    assert pair.processor().under[shares] == [
        HeldOtherwise(LEAD, "MB", 0, 70, 90),
        HeldOtherwise(LEAD, "L3", 0, 0x3FF, 0x7FF),
        HeldOtherwise(OTHER, "L3", 0, 0x400, 0x600),
    ]
    apart = (Share(member=LEAD, ways=0x1FF), Share(member=OTHER, ways=0x600))
    pair.apply(apart)
    assert pair.processor().under[apart] == []


@pytest.mark.machines("sapphire-rapids")
def test_masks_of_second_level_caches_bound_the_groups_and_are_left_alone(pair, resctrl):
    assert read_cache().groups == 7
    group = pair.groups[LEAD]
    resctrl.write(f"{group}/schemata", "L2:0=f0\n")  # somebody else's
    assert pair.apply([Share(member=LEAD, ways=0x3)])
    shown = parse(resctrl.read(f"{group}/schemata"))
    assert (shown["L3"][0], shown["L2"]) == (0x3, {0: 0xF0, 1: WHOLE, 2: WHOLE, 3: WHOLE})
    assert pair.about()["left as they are"] == "L2"
    held = [read_msr(cpu, SECOND_MASKS + number) for cpu in (0, 1) for number in range(8)]
    assert sorted(held) == [0xF0, *[WHOLE] * 15]
    assert "(L2)" in doctors_rows()["other controls"].finding
