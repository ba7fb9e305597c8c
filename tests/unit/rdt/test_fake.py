"""What the fake does beyond the transcripts, after the kernel's sources: more domains, users, files, processes."""

import errno
import stat
import threading
from dataclasses import replace

import pytest

from castmates.rdt.fake import (
    AMD_CHIPLETS,
    HASWELL,
    LAB,
    LAB_MONITORING_ONLY,
    LAB_TWO_SOCKETS,
    NO_RDT,
    V6_1,
    V6_12,
    V7_2,
    FakeResctrl,
    Shape,
)
from tests.unit.rdt.refused import refused, status

OCCUPANCY = "mon_data/mon_L3_00/llc_occupancy"


def test_a_refusal_names_its_errno_and_its_path():
    with pytest.raises(FileNotFoundError, match="No such file or directory: '/sys/fs/resctrl/g/schemata'"):
        FakeResctrl().read("g/schemata")


# Shapes.


def test_domains_are_written_one_by_one():
    fake = FakeResctrl(LAB_TWO_SOCKETS)
    fake.make("g")
    fake.write("g/schemata", "L3:1=f\nMB:0=40;1=55\n")
    assert fake.read("g/schemata") == "    MB:0= 40;1= 60\n    L3:0=fff;1=00f\n"
    assert fake.read("g/size") == "    MB:0=40;1=60\n    L3:0=18874368;1=6291456\n"
    assert refused(fake.write, "g/schemata", "L3:0=3;1=5\n") == "EINVAL"
    assert fake.read("g/schemata").endswith("L3:0=fff;1=00f\n")
    assert fake.read("info/L3/bit_usage") == "0=XXSSSSSSSSSS;1=XXSSSSSSSSSS\n"


def test_ids_may_have_gaps_and_masks_holes_on_amd():
    fake = FakeResctrl(AMD_CHIPLETS, V7_2)
    assert [domain for domain in fake.online_domains if domain in (7, 8, 15, 16, 23)] == [7, 16, 23]
    assert fake.names("mon_data")[8] == "mon_L3_16"
    fake.write("schemata", "L3:16=a05;23=0\nMB:7=16\n")
    bandwidth, masks = (line.strip().split(":")[1].split(";") for line in fake.read("schemata").splitlines())
    assert (masks[8], masks[-1]) == ("16=a05", "23=0")
    assert (bandwidth[0], bandwidth[7]) == ("0=2048", "7=16")
    assert refused(fake.write, "schemata", "L3:8=f\n") == "EINVAL"
    assert status(fake) == "ok"
    assert "thread_throttle_mode" not in fake.names("info/MB")


def test_columns_are_as_wide_as_the_widest_value():
    assert FakeResctrl(AMD_CHIPLETS, V6_1).read("schemata").startswith("    MB:0=2048;1=2048")
    assert FakeResctrl(replace(LAB, ways=20), V6_12).read("schemata").splitlines()[0] == "    MB:0=  100"


def test_a_mask_needs_its_least_bits():
    fake = FakeResctrl(HASWELL)
    assert refused(fake.write, "schemata", "L3:0=8\n") == "EINVAL"
    assert status(fake) == "Need at least 2 bits in the mask"
    fake.write("schemata", "L3:0=18\n")


def test_exclusive_groups_may_take_everything():
    fake = FakeResctrl(Shape(ways=4, shareable=0))
    fake.make("a")
    fake.write("a/schemata", "L3:0=c\n")
    fake.write("schemata", "L3:0=3\n")
    fake.write("a/mode", "exclusive\n")
    fake.write("mode", "exclusive\n")
    assert fake.read("info/L3/bit_usage") == "0=EEEE\n"
    assert refused(fake.make, "b") == "ENOSPC"
    assert status(fake) == "No space on L3:0"
    assert "b" not in fake.names("")
    fake.write("mode", "shareable\n")
    fake.make("b")
    assert fake.mask(fake.group("b"), 0) == 3


def test_code_and_data_are_checked_against_each_other():
    fake = FakeResctrl(options="cdp")
    fake.make("a")
    fake.make("b")
    for group, mask in (("", "3f0"), ("b/", "3f0"), ("a/", "f")):
        fake.write(f"{group}schemata", f"L3CODE:0={mask}\nL3DATA:0={mask}\n")
    fake.write("a/mode", "exclusive\n")
    assert refused(fake.write, "b/schemata", "L3CODE:0=3f8\n") == "EINVAL"
    assert status(fake) == "Overlaps with exclusive group"
    fake.write("a/schemata", "L3CODE:0=3\nL3DATA:0=c\n")
    assert refused(fake.write, "b/schemata", "L3CODE:0=c\n") == "EINVAL"  # a's data
    fake.make("c")
    assert fake.read("c/schemata").splitlines()[1:] == ["L3DATA:0=ff0", "L3CODE:0=ff0"]  # nothing of a's code and data
    a = fake.group("a")
    assert (fake.mask(a, 0), fake.mask(a, 0, code=True)) == (0xC, 0x3)
    assert fake.read("info/L3CODE/num_closids") == "8\n"


def test_megabytes_per_second_are_taken_as_they_come():
    fake = FakeResctrl(options="mba_MBps")
    fake.make("g")
    assert fake.read("g/schemata").splitlines()[0] == "    MB:0=4294967295"
    assert refused(fake.write, "g/schemata", "MB:0=1234\nL3:0=5\n") == "EINVAL"
    # Not undone by the line that was refused: so it is in the kernel's sources.
    assert fake.read("g/schemata").splitlines() == ["    MB:0=1234", "    L3:0=fff"]


def test_without_monitoring_linear_throttle_or_code_and_data_options_are_refused():
    assert refused(FakeResctrl(replace(LAB, events=()), options=None).mount, "mba_MBps") == "EINVAL"
    assert refused(FakeResctrl(AMD_CHIPLETS, options=None).mount, "mba_MBps") == "EINVAL"
    assert refused(FakeResctrl(replace(LAB, cdp=False), options=None).mount, "cdp") == "EINVAL"


def test_a_machine_without_rdt_has_nothing():
    fake = FakeResctrl(NO_RDT)
    assert fake.proc("filesystems") == fake.proc("mounts") == ""
    assert [refused(call, "") for call in (fake.names, fake.read, fake.make)] == ["ENOENT"] * 3
    assert refused(fake.locked) == refused(fake.mount) == "ENOENT"


def test_a_machine_that_only_monitors_makes_monitoring_groups():
    fake = FakeResctrl(LAB_MONITORING_ONLY)
    fake.make("mon_groups/m")
    pid = fake.processes.fork()
    fake.write("mon_groups/m/tasks", f"{pid}\n")
    assert fake.read("mon_groups/m/tasks") == f"{pid}\n"
    assert fake.read("tasks") == ""  # the kernel lists threads of control groups by what they may allocate
    assert fake.proc(f"{pid}/cpu_resctrl_groups") == "res:/\nmon:m\n"


# Mounting.


def test_mounting_and_unmounting():
    fake = FakeResctrl(options=None)
    assert fake.names("") == []
    assert refused(fake.read, "schemata") == "ENOENT"
    assert refused(fake.make, "g") == "EPERM"
    assert refused(fake.umount) == "EINVAL"
    assert fake.proc("1/cpu_resctrl_groups") == "res:\nmon:\n"
    fake.mount("debug,cdp")
    assert fake.proc("mounts") == "resctrl /sys/fs/resctrl resctrl rw,relatime,cdp,debug 0 0\n"
    fake.make("g")
    assert (fake.read("g/ctrl_hw_id"), fake.read("g/mon_hw_id")) == ("1\n", "1\n")
    fake.write("g/tasks", "1\n")
    handle = fake.open("g/schemata")
    assert refused(fake.umount) == "EBUSY"
    handle.close()
    fake.umount()
    fake.mount()
    assert fake.proc("1/cpu_resctrl_groups") == "res:/\nmon:\n"
    assert "g" not in fake.names("")


# CPUs.


def test_a_domain_goes_and_comes_with_its_last_cpu():
    fake = FakeResctrl(LAB_TWO_SOCKETS)
    fake.make("g")
    fake.write("g/schemata", "L3:0=f;1=f\n")
    fake.write("g/cpus_list", "2-3\n")
    fake.set_online(2, False)
    assert fake.read("g/cpus_list") == "3\n"
    fake.set_online(3, False)
    assert fake.read("g/schemata").endswith("L3:0=00f\n")
    assert fake.names("g/mon_data") == fake.names("mon_data") == ["mon_L3_00"]
    assert refused(fake.write, "g/schemata", "L3:1=3\n") == "EINVAL"
    fake.set_online(2, True)
    assert fake.names("g/mon_data") == ["mon_L3_00", "mon_L3_01"]
    assert fake.read("g/schemata").endswith("L3:0=00f;1=fff\n")  # what it had there is forgotten
    assert fake.read("cpus_list") == "0-2\n"


def test_cpus_move_between_groups():
    fake = FakeResctrl()
    for group in ("a", "b", "a/mon_groups/m", "a/mon_groups/n"):
        fake.make(group)
    fake.write("a/cpus_list", "1-3\n")
    fake.write("a/mon_groups/m/cpus_list", "1-2\n")
    fake.write("a/mon_groups/n/cpus_list", "2\n")
    assert fake.read("a/mon_groups/m/cpus_list") == "1\n"
    fake.write("b/cpus_list", "2\n")
    assert [fake.read(f"{group}cpus_list").strip() for group in ("", "a/", "b/")] == ["0", "1,3", "2"]
    assert [fake.read(f"a/mon_groups/{group}/cpus_list").strip() for group in "mn"] == ["1", ""]
    fake.write("a/cpus_list", "1,3\n")  # what is written anew takes the CPUs out of the groups inside
    assert fake.read("a/mon_groups/m/cpus_list") == "\n"
    fake.remove("b")
    assert fake.read("cpus_list") == "0,2\n"


def test_a_threads_group_goes_before_its_cpus_group():
    fake = FakeResctrl()
    fake.make("seat")
    fake.make("own")
    fake.make("seat/mon_groups/m")
    fake.write("seat/cpus_list", "1\n")
    fake.write("seat/mon_groups/m/cpus_list", "1\n")
    pid = fake.processes.fork()
    assert [group.path for group in fake.ruling(pid, 0)] == ["", ""]
    assert [group.path for group in fake.ruling(pid, 1)] == ["seat", "seat/mon_groups/m"]
    fake.write("own/tasks", f"{pid}\n")
    assert [group.path for group in fake.ruling(pid, 1)] == ["own", "own"]


# Processes and users.


def test_threads_move_alone_and_children_inherit():
    fake = FakeResctrl()
    fake.make("g")
    first = fake.processes.fork()
    second = fake.processes.clone(first)
    fake.write("g/tasks", f"{second}\n")
    third, child = fake.processes.clone(second), fake.processes.fork(second)
    assert fake.read("g/tasks").split() == [str(tid) for tid in (second, third, child)]
    assert fake.processes.threads(first) == [first, second, third]
    fake.processes.exit(first)
    assert fake.read("g/tasks") == f"{child}\n"
    assert refused(fake.proc, f"{second}/cpu_resctrl_groups") == "ENOENT"


def test_threads_fall_to_the_group_above():
    fake = FakeResctrl()
    for group in ("a", "b", "a/mon_groups/m", "a/mon_groups/n"):
        fake.make(group)
    pid = fake.processes.fork()
    assert refused(fake.write, "a/mon_groups/m/tasks", f"{pid}\n") == "EINVAL"
    assert status(fake).startswith("Can't move task to different control group\n")
    for group in ("a", "a/mon_groups/m"):
        fake.write(f"{group}/tasks", f"{pid}\n")
    fake.remove("a/mon_groups/m")
    assert fake.proc(f"{pid}/cpu_resctrl_groups") == "res:a\nmon:\n"
    fake.write("a/mon_groups/n/tasks", f"{pid}\n")
    fake.remove("a")
    assert fake.proc(f"{pid}/cpu_resctrl_groups") == "res:/\nmon:\n"


def test_a_user_does_what_permissions_let_him():
    fake = FakeResctrl()
    fake.make("g")
    user, other = fake.processes.fork(uid=1000), fake.processes.fork(uid=1001)
    mine = fake.processes.fork(uid=1000)
    for path in ("g/tasks", "g/schemata", "g/mon_groups"):
        fake.chown(path, 1000, 1000)
    with fake.acting(user):
        fake.write("g/schemata", "L3:0=3\n")
        fake.write("g/tasks", f"{mine},0\n")
        assert refused(fake.write, "g/tasks", f"{other}\n") == "EPERM"
        assert status(fake) == f"No permission to move task {other}\nError while processing task {other}"
        assert refused(fake.write, "g/mode", "exclusive\n") == "EACCES"
        assert refused(fake.make, "h") == refused(fake.remove, "g") == "EACCES"
        assert refused(fake.mount) == refused(fake.umount) == refused(fake.chown, "g/mode", 1000, 1000) == "EPERM"
        fake.make("g/mon_groups/m")
        fake.write("g/mon_groups/m/tasks", f"{mine}\n")
        fake.chmod("g/mon_groups/m", 0o700)
    assert fake.stat("g/mon_groups/m/tasks").uid == 1000
    assert fake.read("g/tasks").split() == [str(user), str(mine)]
    with fake.acting(other):
        assert refused(fake.read, "g/mon_groups/m/tasks") == "EACCES"


def test_what_nobody_may_root_may_not_either():
    fake = FakeResctrl()
    fake.chmod("schemata", 0o444)
    assert refused(fake.write, "schemata", "L3:0=f\n") == "EACCES"
    fake.chmod("size", 0o666)
    assert refused(fake.write, "size", "1\n") == "EINVAL"
    fake.chmod(OCCUPANCY, 0o666)
    assert refused(fake.write, OCCUPANCY, "0\n") == "EACCES"
    assert stat.filemode(fake.stat("mon_groups").mode) == "dr-xr-xr-x"


# Files.


def test_a_handle_keeps_what_it_has_read_until_it_goes_back():
    fake = FakeResctrl()
    with fake.open("schemata", "rw") as handle:
        assert handle.read(10) == b"    MB:0=1"
        handle.write(b"L3:0=f\n")
        assert handle.read() == b"00\n    L3:0=fff\n"
        assert handle.read() == b""
        handle.rewind()
        assert handle.read().endswith(b"L3:0=00f\n")
        assert handle.pread(3, 4) == b"MB:"
    with fake.open("schemata") as handle:
        assert refused(handle.write, b"L3:0=f\n") == "EBADF"


def test_a_page_is_the_longest_write():
    fake = FakeResctrl()
    fake.write("cpus_list", "0-3," * 1023 + "0-3\n")
    assert refused(fake.write, "cpus_list", "0-3," * 1024 + "0") == "E2BIG"


def test_last_command_status_takes_no_more_than_its_buffer():
    fake = FakeResctrl(kernel=V6_12)
    for _ in range(40):
        assert refused(fake.write, "cpus_list", "x\n") == "EINVAL"
    assert status(fake) == "\n".join(["Bad CPU list/mask"] * (511 // 18))
    fake.write("schemata", "L3:0=fff\n")
    assert status(fake) == "ok"


def test_names_are_looked_up_as_paths_are():
    fake = FakeResctrl()
    fake.make("g/")
    assert fake.read("g//../g/./mode") == "shareable\n"
    assert refused(fake.read, "mode/x") == refused(fake.remove, "mode") == refused(fake.names, "mode") == "ENOTDIR"
    assert refused(fake.read, "g") == "EISDIR"
    assert refused(fake.make, "x" * 4096) == "ENAMETOOLONG"
    assert refused(fake.remove, "") == "EBUSY"


def test_paths_of_a_rename_are_looked_up_first():
    fake = FakeResctrl()
    for group in ("a", "a/mon_groups/m"):
        fake.make(group)
    assert refused(fake.write, "schemata", "#\n") == "EINVAL"
    assert refused(fake.rename, "a", "a/mon_groups/x") == "EINVAL"
    assert refused(fake.rename, "a/mon_groups/m", "a") == "ENOTEMPTY"
    assert refused(fake.rename, "a/mon_groups/m", "") == refused(fake.rename, "", "a") == "EXDEV"
    assert refused(fake.rename, "nobody", "") == "EXDEV"
    assert refused(fake.rename, "nobody/x", "") == refused(fake.rename, "nobody", "b") == "ENOENT"
    assert refused(fake.rename, "a/mode", "mon_groups") == "EISDIR"
    assert refused(fake.rename, "a", "mode") == "ENOTDIR"
    fake.rename("a/mon_groups/m", "a/mon_groups/m")
    assert status(fake) == "Missing ':'"  # none of these has come to resctrl


def test_a_lock_is_shared_or_waited_for():
    fake = FakeResctrl()
    order = []

    def shared():
        with fake.locked(exclusive=False):
            order.append("other")

    thread = threading.Thread(target=shared)
    with fake.locked():
        assert refused(fake.locked().__enter__) == errno.errorcode[errno.EDEADLK]
        thread.start()
        order.append("first")
    thread.join(10)
    assert order == ["first", "other"]
