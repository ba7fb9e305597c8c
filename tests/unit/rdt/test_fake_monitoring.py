"""What the fake does beyond the transcripts, after the kernel's sources: readings, limbo, other kernel versions."""

from dataclasses import replace

import pytest

from castmates.rdt.fake import LAB, LAB_TWO_SOCKETS, SUB_NUMA, V6_1, V6_12, V7_2, FakeResctrl, SetNumbers, Throttle
from tests.unit.rdt.refused import refused, status

OCCUPANCY = "mon_data/mon_L3_00/llc_occupancy"


def test_a_control_groups_events_are_the_sum_of_what_can_be_read():
    told = SetNumbers()
    fake = FakeResctrl(source=told)
    for path, lying in (("g", 3 << 20), ("g/mon_groups/m", 1 << 20), ("g/mon_groups/n", 100_000)):
        fake.make(path)
        told.lying[path, 0] = lying
        told.moved[path, 0] = 1 << 30
    assert fake.read(f"g/{OCCUPANCY}") == f"{(4 << 20) + 65536}\n"
    assert fake.read("g/mon_data/mon_L3_00/mbm_local_bytes") == f"{(3 << 30) * 3 // 4}\n"
    fake.fail("g", "llc_occupancy", "Error")
    assert fake.read(f"g/{OCCUPANCY}") == f"{(1 << 20) + 65536}\n"
    fake.fail("g/mon_groups/m", "llc_occupancy", "Unavailable")
    fake.fail("g/mon_groups/n", "llc_occupancy", "Unassigned", domain=0)
    assert fake.read(f"g/{OCCUPANCY}") == "Unassigned\n"
    assert fake.read(f"g/mon_groups/m/{OCCUPANCY}") == "Unavailable\n"
    fake.fail("g", "llc_occupancy", None)
    assert fake.read(f"g/{OCCUPANCY}") == f"{3 << 20}\n"


def test_sub_numa_nodes_have_monitors_of_their_own():
    told = SetNumbers()
    fake = FakeResctrl(SUB_NUMA, source=told)
    told.lying["", 1] = 5 << 20
    assert fake.names("mon_data/mon_L3_01")[-2:] == ["mon_sub_L3_02", "mon_sub_L3_03"]
    assert fake.read("mon_data/mon_L3_01/llc_occupancy") == f"{5 << 20}\n"
    assert fake.read("mon_data/mon_L3_01/mon_sub_L3_03/llc_occupancy") == f"{5 << 19}\n"
    assert (
        refused(fake.make, "mon_data/mon_L3_01/x")
        == refused(fake.remove, "mon_data/mon_L3_01/mon_sub_L3_02")
        == "EPERM"
    )


def test_a_failure_may_pass_after_some_reads():
    fake = FakeResctrl()
    fake.fail("", "llc_occupancy", "Unavailable", reads=2)
    assert [fake.read(OCCUPANCY) for _ in range(3)] == ["Unavailable\n", "Unavailable\n", "0\n"]


@pytest.mark.parametrize("kernel", [V6_1, V6_12])
def test_an_rmid_waits_in_limbo_until_its_lines_are_gone(kernel):
    told = SetNumbers()
    fake = FakeResctrl(replace(LAB, rmids=2), kernel, told)
    told.lying["g", 0] = 10 << 20
    fake.make("g")
    assert refused(fake.make, "h") == "ENOSPC"
    fake.remove("g")
    assert refused(fake.make, "h") == "EBUSY"
    fake.advance(5)
    assert refused(fake.make, "h") == "EBUSY"
    fake.fail("", "llc_occupancy", "Error")
    told.lying["g", 0] = 9 << 20  # the threshold: half the cache, with two RMIDs
    fake.advance(1)
    assert refused(fake.make, "h") == "EBUSY"
    fake.write("info/L3_MON/max_threshold_occupancy", "10000000\n")
    fake.advance(1)
    fake.make("h")


def test_a_clean_rmid_is_free_at_once_on_old_kernels_with_one_cache():
    shape = replace(LAB_TWO_SOCKETS, rmids=2)
    for kernel, domains, outcome in ((V6_1, 1, "OK"), (V6_1, 2, "EBUSY"), (V6_12, 1, "EBUSY")):
        fake = FakeResctrl(shape if domains == 2 else replace(LAB, rmids=2), kernel)
        fake.make("g")
        fake.remove("g")
        if outcome == "OK":
            fake.make("g")
        else:
            assert refused(fake.make, "g") == outcome
            fake.advance(0.9)
            assert refused(fake.make, "g") == outcome
            fake.advance(0.1)
            fake.make("g")


def test_as_much_as_the_threshold_is_clean_for_an_old_kernel():
    told = SetNumbers()
    fake = FakeResctrl(replace(LAB, rmids=2), V6_1, told)
    fake.write("info/L3_MON/max_threshold_occupancy", "65536\n")
    told.lying["g", 0] = 65536
    fake.make("g")
    fake.remove("g")
    fake.make("g")


def test_a_removed_groups_number_and_name_tell_a_source_whose_lines_are_left():
    asked = []

    class Asking(SetNumbers):
        def occupancy(self, group, _domain):
            asked.append((group.path, group.removed))
            return 0

    fake = FakeResctrl(source=Asking())
    fake.make("g")
    fake.remove("g")
    fake.advance(1)
    assert asked == [("g", True)]


def test_a_monitoring_group_moves_with_its_threads_and_its_number():
    fake = FakeResctrl()
    fake.make("a")
    fake.make("b")
    fake.make("a/mon_groups/m")
    pid = fake.processes.fork()
    fake.write("a/tasks", f"{pid}\n")
    fake.write("a/mon_groups/m/tasks", f"{pid}\n")
    rmid = fake.group("a/mon_groups/m").rmid
    fake.rename("a/mon_groups/m", "b/mon_groups/n")
    assert fake.proc(f"{pid}/cpu_resctrl_groups") == "res:b\nmon:n\n"
    assert fake.group("b/mon_groups/n").rmid == rmid
    assert fake.read("b/tasks") == fake.read("b/mon_groups/n/tasks") == f"{pid}\n"
    fake.write("b/cpus_list", "1\n")
    fake.write("b/mon_groups/n/cpus_list", "1\n")
    assert refused(fake.rename, "b/mon_groups/n", "a/mon_groups/n") == "EPERM"
    assert status(fake) == "Cannot move a MON group that monitors CPUs"
    fake.rename("b/mon_groups/n", "b/mon_groups/o")
    assert refused(fake.rename, "b/mon_groups/o", "c") == "EPERM"
    assert status(fake) == "Destination must be a mon_groups subdirectory"
    assert refused(fake.rename, "a/mode", "b/mode") == "EPERM"
    assert status(fake) == "Source and destination must be directories"


def test_the_newest_kernel_writes_no_padding_and_clears_its_status():
    fake = FakeResctrl(kernel=V7_2)
    fake.write("schemata", "L3:0=f\nMB:0=50\n")
    assert fake.read("schemata") == "    MB:0=50\n    L3:0=f\n"
    assert refused(fake.write, "cpus_list", "x\n") == "EINVAL"
    fake.write("cpus_list", "0-3\n")
    assert status(fake) == "ok"
    assert refused(fake.write, "schemata", "#\n") == "EINVAL"
    fake.make("g")
    assert status(fake) == "ok"
    assert refused(fake.make, "info/x") == "ENODEV"


def test_more_than_one_number_of_classes():
    fake = FakeResctrl(replace(LAB, closids=16, throttle=Throttle(closids=3)), V6_12)
    fake.make("a")
    fake.make("b")
    assert refused(fake.make, "c") == "ENOSPC"
    assert status(fake) == "Out of CLOSIDs"
