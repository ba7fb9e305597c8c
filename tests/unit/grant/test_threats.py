"""What a user with granted groups can do to others in resctrl, which the fake answers like the kernel: nothing."""

import errno

import pytest

from castmates.rdt.fake import LAB, V6_1, V6_12, V7_2, FakeResctrl

USER, OTHER = 1000, 1001
MINE, THEIRS = "castmates-1000-0", "castmates-1001-0"


@pytest.fixture(params=[V6_1, V6_12, V7_2], ids=lambda kernel: kernel.name)
def fake(request):
    """Root has granted groups to two users, as `castmates doctor --grant` does, and a third is root's."""
    fake = FakeResctrl(LAB, request.param)
    for group in (MINE, THEIRS, "COS1"):
        fake.make(group)
    for group, uid in ((MINE, USER), (THEIRS, OTHER)):
        for name in ("tasks", "schemata"):
            fake.chown(f"{group}/{name}", uid, uid)
    return fake


def refused(action, *arguments):
    with pytest.raises(OSError) as problem:
        action(*arguments)
    return errno.errorcode[problem.value.errno]


def test_a_granted_user_touches_nobody_elses_masks_and_groups(fake):
    me = fake.processes.fork(uid=USER)
    before = {group: fake.read(f"{group}/schemata") for group in (THEIRS, "COS1", "")}
    with fake.acting(me):
        for group in (THEIRS, "COS1", ""):
            assert refused(fake.write, f"{group}/schemata".lstrip("/"), "L3:0=1\n") == "EACCES"
        assert refused(fake.make, "mine") == "EACCES"
        assert refused(fake.make, f"{MINE}/mon_groups/mine") == "EACCES"
        for group in (MINE, THEIRS, "COS1"):
            assert refused(fake.remove, group) == "EACCES"
        for name in ("cpus", "cpus_list", "mode"):
            assert refused(fake.write, f"{MINE}/{name}", "1\n") == "EACCES"
        assert refused(fake.write, "info/L3_MON/max_threshold_occupancy", "0\n") == "EACCES"
        assert refused(fake.umount) == "EPERM"
        fake.write(f"{MINE}/schemata", "L3:0=f\n")
    assert {group: fake.read(f"{group}/schemata") for group in before} == before


def test_a_granted_user_moves_only_processes_of_their_own(fake):
    me, mine = fake.processes.fork(uid=USER), fake.processes.fork(uid=USER)
    theirs, roots = fake.processes.fork(uid=OTHER), fake.processes.fork()
    with fake.acting(me):
        for foreign in (theirs, roots, 1):
            assert refused(fake.write, f"{MINE}/tasks", f"{foreign}\n") == "EPERM"
        assert refused(fake.write, f"{THEIRS}/tasks", f"{mine}\n") == "EACCES"
        fake.write(f"{MINE}/tasks", f"{mine}\n")
    assert fake.read(f"{MINE}/tasks").split() == [str(mine)]
