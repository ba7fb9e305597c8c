"""Who mounts unmounts, and nobody else's mount or groups are touched."""

import pytest

from castmates.errors import CastmatesError
from castmates.machine.journal import journals
from castmates.protocols import Held
from castmates.rdt.choose import choose_allocator, choose_monitor
from castmates.rdt.resctrl.mounting import lease
from castmates.study.spec import Share
from tests.lab import guest


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "cat-only", "monitoring-only")
def test_what_we_mounted_is_unmounted_by_the_last_user(state):
    first, second = lease(), lease()
    assert guest.is_mounted()
    assert first.release() == []
    assert guest.is_mounted()
    assert second.release() == []
    assert not guest.is_mounted()
    assert [entry for journal in journals() for entry in journal.entries()] == []


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_what_was_mounted_before_stays_mounted(resctrl):
    one = lease()
    one.release()
    assert guest.is_mounted()


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_options_of_a_mount_that_is_not_ours_are_kept(state):
    guest.mount("cdp")
    try:
        one = lease(cdp=False)
        assert one.options == ["cdp"]
        one.release()
        assert guest.is_mounted()
    finally:
        guest.unmount()


@pytest.mark.machines("linux-6.1")
def test_code_and_data_masks_can_be_mounted(state):
    one = lease(cdp=True)
    assert "L3CODE" in guest.groups()[""]["schemata"]
    one.release()
    assert not guest.is_mounted()


@pytest.mark.machines("linux-6.1")
def test_our_mount_stays_while_others_have_groups_in_it(state):
    one = lease()
    guest.ROOT.joinpath("somebody").mkdir()
    told = one.release()
    assert "somebody" in " ".join(told)
    assert guest.is_mounted()
    guest.ROOT.joinpath("somebody").rmdir()
    guest.unmount()


@pytest.mark.machines("skylake")
def test_mounting_without_rdt_is_told(state):
    with pytest.raises(CastmatesError, match="this machine has no resctrl"):
        lease()


@pytest.mark.machines("monitoring-only")
def test_options_that_the_processor_lacks_are_told(state):
    with pytest.raises(CastmatesError, match="cdp"):
        lease(cdp=True)


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "two-sockets")
def test_whole_life_of_a_launch_leaves_nothing(state, crowd):
    allocator, monitor = choose_allocator(shares=True), choose_monitor()
    held = {"lead@0": Held(crowd().pid, [0]), "other@1": Held(crowd().pid, [1])}
    allocator.prepare(held)
    monitor.attach(held)
    allocator.apply([Share(member="lead@0", ways=0x3)])
    monitor.start()
    monitor.stop()
    monitor.close()
    allocator.restore()
    assert not guest.is_mounted()
    assert [entry for journal in journals() for entry in journal.entries()] == []
