"""The monitor against the kernel's own resctrl; the numbers are the emulated processor's inventions."""

import subprocess
import time

import pytest

from castmates.protocols import Held
from castmates.rdt.choose import choose_allocator, choose_monitor
from castmates.rdt.resctrl.foreign import monitoring_groups
from castmates.study.spec import Share
from tests.lab import guest
from tests.lab.kit.transcript import ERROR, EVENTS, UNAVAILABLE, spoil
from tests.waiting import wait_for

LEAD, IDLE = "lead@1", "idle@0"
WAY = 1572864
METRICS = {"llc_occupancy", "mbm_total", "mbm_local"}


@pytest.fixture
def watched(resctrl, crowd):
    """A monitor at work, with a busy member and an idle one."""
    monitor = choose_monitor(rate=10)
    with guest.busy(cpu=1) as pid:
        monitor.attach({LEAD: Held(pid, [1]), IDLE: Held(crowd().pid, [0])})
        yield monitor
        monitor.close()


def series(monitor, seconds):
    monitor.start()
    time.sleep(seconds)
    return monitor.stop()


def values(samples, member, metric):
    return [one.value for one in samples if (one.subject, one.metric) == (member, metric)]


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "monitoring-only", "two-sockets")
def test_series_tell_who_uses_the_cache(watched):
    samples = series(watched, 1.5)
    assert {one.metric for one in samples} == METRICS
    occupied = values(samples, LEAD, "llc_occupancy")
    assert len(occupied) >= 3
    assert max(occupied) > max(values(samples, IDLE, "llc_occupancy"))
    assert max(values(samples, LEAD, "mbm_total")) > 0
    assert [one.t_ns for one in samples] == sorted(one.t_ns for one in samples)


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_member_with_a_group_of_its_own_is_watched_there_and_held_by_its_mask(resctrl):
    allocator, monitor = choose_allocator(shares=True), choose_monitor()
    with guest.busy(cpu=1) as pid:
        held = {LEAD: Held(pid, [1])}
        allocator.prepare(held)
        monitor.attach(held)
        assert monitor.groups.paths == allocator.groups
        allocator.apply([Share(member=LEAD, ways=0x3)])
        occupied = values(series(monitor, 2), LEAD, "llc_occupancy")
        assert 0 < occupied[-1] <= 2 * WAY
        monitor.close()
        allocator.restore()
    assert sorted(guest.groups()) == [""]


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "monitoring-only")
@pytest.mark.parametrize(("fault", "word"), [(UNAVAILABLE, "Unavailable"), (ERROR, "Error")])
def test_reading_that_the_hardware_refuses_is_missing_with_the_reason(watched, fault, word):
    for event in EVENTS:
        spoil(event, range(32), fault)
    try:
        samples = series(watched, 0.3)
    finally:
        for event in EVENTS:
            spoil(event, range(32), 0)
    assert {one.metric for one in samples if word in one.note} == METRICS
    assert {one.value for one in samples} == {None}
    assert values(series(watched, 0.3), LEAD, "llc_occupancy")[-1] is not None


@pytest.mark.machines("monitoring-only")
def test_without_allocation_members_are_watched_in_monitoring_groups(watched, resctrl):
    assert sorted(guest.groups()) == [""]
    assert sorted(watched.groups.paths.values()) == monitoring_groups(resctrl)
    assert choose_allocator(shares=True).name == "none"
    watched.close()
    assert monitoring_groups(resctrl) == []


@pytest.mark.machines("cat-only")
def test_processor_that_cannot_count_is_told(state):
    monitor = choose_monitor()
    assert monitor.name == "none"
    assert "counts nothing" in " ".join(monitor.about().values())
    assert not guest.is_mounted()


@pytest.mark.machines("few-groups")
def test_members_beyond_the_monitoring_ids_are_named_and_the_others_watched(resctrl, crowd):
    monitor = choose_monitor()
    members = {f"member@{n}": Held(crowd().pid, [n % 4]) for n in range(9)}  # 7 ids besides the default group's
    monitor.attach(members)
    assert len(monitor.groups.paths) == 7
    assert all("Out of RMIDs" in why for why in monitor.groups.missing.values())
    samples = series(monitor, 0.2)
    told = {one.subject for one in samples if one.value is None and "Out of RMIDs" in one.note}
    assert told == {"member@7", "member@8"}
    monitor.close()
    assert monitoring_groups(resctrl) == []


@pytest.mark.machines("few-groups")
def test_ids_in_limbo_are_waited_for(resctrl, crowd):
    """A freed id comes back when what it brought has left the cache, of which so much may be left."""
    threshold = "info/L3_MON/max_threshold_occupancy"
    usual = resctrl.read(threshold)
    resctrl.write(threshold, "0\n")
    groups = [f"mon_groups/used{n}" for n in range(7)]
    for group in groups:
        resctrl.make(group)
    with guest.busy(cpu=2) as pid:
        resctrl.write(f"{groups[0]}/tasks", f"{pid}\n")
        occupancy = f"{groups[0]}/mon_data/mon_L3_00/llc_occupancy"
        wait_for(lambda: int(resctrl.read(occupancy)) > 0, "the group has used the cache")
        resctrl.remove(groups[0])
    said = []

    def say(sentence):
        said.append(sentence)
        resctrl.write(threshold, usual)

    monitor = choose_monitor(say=say)
    monitor.attach({IDLE: Held(crowd().pid, [0])})
    monitor.close()
    assert monitor.groups.missing == {}
    assert any("limbo" in sentence for sentence in said)


@pytest.mark.machines("linux-6.1")
def test_group_that_somebody_removes_leaves_gaps_with_the_reason(watched, resctrl):
    subprocess.run(["rmdir", guest.ROOT / watched.groups.paths[LEAD]], check=True)
    samples = series(watched, 0.3)
    gone = [one for one in samples if one.subject == LEAD]
    assert {one.value for one in gone} == {None}
    assert all("removed" in one.note or "gone" in one.note for one in gone)
    assert values(samples, IDLE, "llc_occupancy")[-1] is not None
