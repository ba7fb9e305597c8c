"""The allocator against the kernel's own resctrl."""

import os
import signal

import pytest

from castmates.errors import CastmatesError
from castmates.machine.topology import read_topology
from castmates.protocols import Held
from castmates.rdt.choose import choose_allocator
from castmates.rdt.resctrl.foreign import foreign_groups
from castmates.rdt.resctrl.wanted_schemata import parse
from castmates.study.spec import REST, Share
from tests.lab import guest

KERNELS = ("linux-6.1", "linux-6.12", "linux-7.2")
ALLOCATING = (*KERNELS, "two-sockets", "two-sockets-sparse-7.2", "cat-only", "sparse", "few-groups")
LEAD, OTHER = "lead@0", "other@1"


@pytest.fixture
def pair(resctrl, crowd):
    """An allocator with two members, on the first and the last CPU."""
    lead, other = crowd(), crowd()
    allocator = choose_allocator(shares=True)
    allocator.prepare({LEAD: Held(lead.pid, [0]), OTHER: Held(other.pid, [os.cpu_count() - 1])})
    yield allocator, lead, other
    allocator.restore()


def share(member, **limits):
    return Share(member=member, **limits)


def masks(tree, group, resource="L3"):
    return parse(tree.read(f"{group}/schemata".lstrip("/")))[resource]


def full_mask(tree):
    return int(tree.read("info/L3/cbm_mask"), 16)


@pytest.mark.machines(*ALLOCATING)
def test_every_member_has_a_group_with_everything(pair, resctrl):
    allocator, *crowds = pair
    assert len(set(allocator.groups.values())) == 2
    for group, crowd in zip(allocator.groups.values(), crowds, strict=True):
        assert set(masks(resctrl, group).values()) == {full_mask(resctrl)}
        assert {guest.group_of(tid) for tid in crowd.tids} == {group}


@pytest.mark.machines(*ALLOCATING)
def test_masks_are_in_force_and_read_back(pair, resctrl):
    allocator, *_ = pair
    full = full_mask(resctrl)
    assert allocator.apply([share(LEAD, ways=0x3), share(OTHER, ways=full & ~0x3)])
    said = allocator.read_back()
    for member, mask in ((LEAD, 0x3), (OTHER, full & ~0x3)):
        there = masks(resctrl, allocator.groups[member])
        assert mask in there.values()
        assert parse(said[member])["L3"] == there
    assert not allocator.apply([share(LEAD, ways=0x7), share(OTHER, ways=full & ~0x3)])
    assert allocator.apply([share(LEAD, ways=0x7), share(OTHER, ways=full & ~0x7)])
    assert not allocator.apply([])
    assert {*masks(resctrl, allocator.groups[LEAD]).values(), *masks(resctrl, "").values()} == {full}


@pytest.mark.machines("two-sockets")
def test_mask_holds_on_the_members_own_cache_alone(pair, resctrl):
    allocator, *_ = pair
    own, others = sorted(masks(resctrl, ""))
    allocator.apply([share(LEAD, ways=0x1), share(REST, ways=0xF0)])
    assert masks(resctrl, allocator.groups[LEAD]) == {own: 0x1, others: 0xFFF}
    assert masks(resctrl, allocator.groups[OTHER]) == {own: 0xFFF, others: 0xFFF}
    assert masks(resctrl, "") == {own: 0xF0, others: 0xF0}
    allocator.restore()
    assert masks(resctrl, "") == {own: 0xFFF, others: 0xFFF}


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_threads_and_children_that_come_later_are_in_the_group(pair):
    allocator, lead, _ = pair
    lead.grow()
    assert len(lead.tids) == 5
    assert {guest.group_of(tid) for tid in lead.tids} == {allocator.groups[LEAD]}
    assert allocator.misplaced() == []


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_thread_that_somebody_moves_is_named(pair, resctrl):
    allocator, lead, _ = pair
    lead.grow()
    resctrl.write("tasks", f"{lead.tids[-1]}\n")
    [told] = allocator.misplaced()
    assert LEAD in told
    assert str(lead.tids[-1]) in told


@pytest.mark.machines("linux-6.1", "two-sockets")
def test_bandwidth_is_throttled_in_steps(pair, resctrl):
    allocator, *_ = pair
    allocator.apply([share(LEAD, bandwidth=20), share(OTHER, ways=0xF, bandwidth=55)])
    assert 20 in masks(resctrl, allocator.groups[LEAD], "MB").values()
    assert 60 in masks(resctrl, allocator.groups[OTHER], "MB").values()  # rounded up by the kernel
    assert "60" in allocator.read_back()[OTHER]


@pytest.mark.machines("cat-only")
def test_throttle_that_the_processor_lacks_is_told(pair):
    allocator, *_ = pair
    with pytest.raises(CastmatesError, match="no throttle of memory bandwidth"):
        allocator.apply([share(LEAD, bandwidth=50)])


@pytest.mark.machines("sparse", "two-sockets-sparse-7.2")
def test_masks_may_have_holes_where_the_processor_allows_it(pair, resctrl):
    allocator, *_ = pair
    allocator.apply([share(LEAD, ways=0x505)])
    assert 0x505 in masks(resctrl, allocator.groups[LEAD]).values()


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_refused_mask_is_told_in_the_kernels_words(pair, resctrl):
    allocator, *_ = pair
    with pytest.raises(CastmatesError, match=r"EINVAL.*non-consecutive 1-bits"):
        allocator.apply([share(LEAD, ways=0x505)])
    assert set(masks(resctrl, allocator.groups[LEAD]).values()) == {full_mask(resctrl)}


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_overlap_with_an_exclusive_group_of_others_is_told(pair, resctrl):
    allocator, *_ = pair
    allocator.apply([share(LEAD, ways=0x0F0), share(OTHER, ways=0x0F0), share(REST, ways=0xFF0)])
    resctrl.make("COS1")
    resctrl.write("COS1/schemata", "L3:0=f\n")
    resctrl.write("COS1/mode", "exclusive\n")
    try:
        with pytest.raises(CastmatesError, match=r"(?i)overlaps with exclusive group"):
            allocator.apply([share(LEAD, ways=0x03F), share(OTHER, ways=0x0F0), share(REST, ways=0xFF0)])
    finally:
        resctrl.remove("COS1")


@pytest.mark.machines("few-groups")
def test_more_members_than_classes_are_told_and_nothing_is_left(resctrl, crowd):
    before = guest.groups()
    allocator = choose_allocator(shares=True)
    held = {f"member@{n}": Held(crowd().pid, [n]) for n in range(4)}
    with pytest.raises(CastmatesError, match=r"ENOSPC.*Out of CLOSIDs"):
        allocator.prepare(held)
    allocator.restore()
    assert guest.groups() == before


@pytest.mark.machines("few-groups")
def test_groups_of_others_are_named_where_classes_are_short(resctrl, crowd):
    resctrl.make("COS1")
    resctrl.make("COS2")
    allocator = choose_allocator(shares=True)
    with pytest.raises(CastmatesError, match=r"COS1.*pqos"):
        allocator.prepare({f"member@{n}": Held(crowd().pid, [n]) for n in range(2)})
    allocator.restore()
    assert sorted(guest.groups()) == ["", "COS1", "COS2"]


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "cat-only")
def test_groups_of_others_are_named_and_left_alone(resctrl, crowd):
    theirs = crowd()
    resctrl.make("COS1")
    resctrl.write("COS1/schemata", "L3:0=3\n")
    resctrl.write("COS1/tasks", f"{theirs.pid}\n")
    resctrl.make("somebody")
    before = guest.groups()
    named = {one.path: one for one in foreign_groups(resctrl)}
    assert "pqos" in str(named["COS1"])
    assert named["COS1"].tasks == 1
    assert "somebody" in named
    allocator = choose_allocator(shares=True)
    allocator.prepare({LEAD: Held(crowd().pid, [0])})
    allocator.apply([share(LEAD, ways=0x1), share(REST, ways=0x30)])
    assert {"COS1", "somebody"} == {one.path for one in foreign_groups(resctrl)}
    assert guest.groups()["COS1"] == before["COS1"]
    allocator.restore()
    assert guest.groups() == before
    assert guest.group_of(theirs.pid) == "COS1"


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "two-sockets")
def test_everything_is_put_back_as_it_was_found(resctrl, crowd):
    resctrl.write("schemata", "MB:0=70\nL3:0=7f0\n")
    before = guest.groups()
    allocator = choose_allocator(shares=True)
    allocator.prepare({LEAD: Held(crowd().pid, [0]), OTHER: Held(crowd().pid, [1])})
    with pytest.raises(CastmatesError, match="found in a class with"):
        allocator.apply([share(LEAD, ways=0x1)])  # which the administrator has denied it
    allocator.apply([share(LEAD, ways=0x010), share(OTHER, ways=0x7E0, bandwidth=10), share(REST, ways=0xFFF)])
    assert "7f0" in resctrl.read("schemata"), "nobody else gets more than was found"
    allocator.restore()
    allocator.restore()
    assert guest.groups() == before


@pytest.mark.machines("linux-6.1")
def test_member_that_dies_keeps_nothing_from_being_put_back(pair, resctrl):
    allocator, lead, _ = pair
    os.killpg(lead.pid, signal.SIGKILL)
    allocator.apply([share(LEAD, ways=0x1)])
    assert allocator.misplaced() == []
    allocator.restore()
    assert sorted(guest.groups()) == [""]


@pytest.mark.machines("linux-6.1")
def test_group_that_somebody_removes_is_told(pair, resctrl):
    allocator, *_ = pair
    resctrl.remove(allocator.groups[LEAD])
    with pytest.raises(CastmatesError, match="the group is gone"):
        allocator.apply([share(LEAD, ways=0x1)])
    assert allocator.misplaced() != []


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_code_and_data_have_masks_of_their_own(state, crowd):
    guest.mount("cdp")
    allocator = choose_allocator(shares=True)
    try:
        allocator.prepare({LEAD: Held(crowd().pid, [0])})
        allocator.apply([share(LEAD, ways=0x00F, code=0xF00)])
        said = parse(allocator.read_back()[LEAD])
        assert (said["L3DATA"][0], said["L3CODE"][0]) == (0x00F, 0xF00)
        allocator.apply([share(LEAD, ways=0x0F0)])
        said = parse(allocator.read_back()[LEAD])
        assert (said["L3DATA"][0], said["L3CODE"][0]) == (0x0F0, 0x0F0)
    finally:
        allocator.restore()
        guest.unmount()


@pytest.mark.machines("linux-6.1")
def test_code_mask_without_cdp_is_told(pair):
    allocator, *_ = pair
    with pytest.raises(CastmatesError, match="without cdp"):
        allocator.apply([share(LEAD, ways=0x00F, code=0xF00)])


@pytest.mark.machines("two-sockets")
def test_caches_are_told_apart_by_their_ids(resctrl):
    assert sorted({cpu.llc for cpu in read_topology().cpus}) == sorted(masks(resctrl, ""))
