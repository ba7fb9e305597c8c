"""What is granted is written down, is not given twice, and is taken back."""

import os
from contextlib import nullcontext
from dataclasses import replace

import pytest

from castmates.errors import CastmatesError
from castmates.grant import grant, group_rights, perf
from castmates.grant.perf import Grantee, Granting, find_grantee, granted, lines_of, record, take_back
from castmates.linux.owner import boot_id
from castmates.runner.cleanup.restore import Restored
from tests.needs import lacks
from tests.unit import sysfs
from tests.unit.snapshots import assert_as_before, refusal

ME = Grantee("somebody", os.geteuid(), os.getegid())  # whom everybody may give files to
PARANOID = "proc/sys/kernel/perf_event_paranoid"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path / "state"))


@pytest.fixture
def root(tmp_path):
    """A machine whose resctrl is mounted: a plain tree, in which a group is an empty folder."""
    here = tmp_path / "root"
    sysfs.write(here / "proc/filesystems", "nodev\tresctrl")
    sysfs.write(here / "proc/self/mountinfo", "30 1 0:9 / /sys/fs/resctrl rw - resctrl resctrl rw")
    sysfs.write(here / "sys/fs/resctrl/schemata", "L3:0=fff")
    (here / "sys/fs/resctrl/info").mkdir()
    sysfs.write(here / PARANOID, "3")
    return here


def granting():
    said = []
    return Granting(ME, record(), said.append), said


def test_groups_are_made_once_and_removed_again(root):
    mine = root / "sys/fs/resctrl" / f"castmates-{ME.uid}-1"
    giver, said = granting()
    group_rights.give_groups(giver, 2, False, root)
    assert mine.is_dir()
    assert not giver.refused
    assert [line for line in said if f"undo: rmdir {mine}" in line]
    before = record().path.read_bytes()
    again, said = granting()
    group_rights.give_groups(again, 2, False, root)
    assert record().path.read_bytes() == before
    assert all("already" in line for line in said)
    assert len(lines_of(granted())) == 2
    take_back()
    assert not mine.exists()
    assert granted() == []


def test_the_default_group_is_given_only_when_asked_for(root, monkeypatch):
    asked = []
    monkeypatch.setattr(Granting, "give", lambda _, step, *_more: asked.append((step.kind, step.target)) or True)
    for default in (False, True):
        asked.clear()
        group_rights.give_groups(granting()[0], 1, default, root)
        assert (("owner", root / "sys/fs/resctrl/schemata") in asked) == default


def test_masks_of_the_default_group_that_cannot_be_read_are_a_refusal(root):
    schemata = root / "sys/fs/resctrl/schemata"
    schemata.unlink()
    schemata.mkdir()
    giver, _ = granting()
    group_rights.give_groups(giver, 1, True, root)
    assert "Is a directory" in giver.refused[0]


def test_files_of_a_group_change_hands_and_come_back(root):
    group = root / "sys/fs/resctrl" / f"castmates-{ME.uid}-0"
    for name in ("tasks", "schemata", "cpus", "cpus_list", "size"):
        sysfs.write(group / name, "")
    if os.geteuid() != 0:
        lacks("root", "only root gives files away")
    other = replace(ME, uid=65534, gid=65534)
    group.rename(group.with_name("castmates-65534-0"))
    group = group.with_name("castmates-65534-0")
    giver = Granting(other, record(), print)
    group_rights.give_groups(giver, 1, False, root)
    owned = {file.name for file in group.iterdir() if file.stat().st_uid == other.uid}
    assert owned == {"tasks", "schemata"}
    assert group.stat().st_uid == os.geteuid()
    take_back()
    assert {file.stat().st_uid for file in (group, *group.iterdir())} == {os.geteuid()}


def test_no_class_for_another_group_is_told_and_is_no_error(root, monkeypatch):
    from castmates.machine import journal

    def full(path, state):
        if state == "there" and len(list(path.parent.glob("castmates-*"))) == 3:
            raise OSError(28, os.strerror(28))
        group.write(path, state)

    group = journal.KINDS["group"]
    monkeypatch.setitem(journal.KINDS, "group", replace(group, write=full))
    giver, said = granting()
    group_rights.give_groups(giver, 6, False, root)
    assert not giver.refused
    assert "  no more than 3 groups: the processor has no class for another one" in said
    assert len(granted()) == 3


def test_a_refusal_is_told_and_leaves_no_entry(root):
    (root / "sys/fs/resctrl" / f"castmates-{ME.uid}-0").write_text("in the way")
    giver, _ = granting()
    group_rights.give_groups(giver, 1, False, root)
    assert "File exists" in giver.refused[0]
    assert granted() == []


def test_without_resctrl_nothing_is_given(root):
    sysfs.write(root / "proc/filesystems", "nodev\tsysfs")
    giver, said = granting()
    group_rights.give_groups(giver, 1, False, root)
    assert "no resctrl" in said[0]
    assert granted() == []


@pytest.mark.parametrize(("before", "after"), [("4", "1"), ("2", "1"), ("1", "1"), ("-1", "-1")])
def test_perf_gets_the_least(root, before, after):
    sysfs.write(root / PARANOID, before)
    perf.give_counting(granting()[0], root)
    assert (root / PARANOID).read_text().strip() == after
    take_back()
    assert (root / PARANOID).read_text().strip() == before


def test_what_somebody_else_has_set_since_is_left(root):
    perf.give_counting(granting()[0], root)
    sysfs.write(root / PARANOID, "0")
    assert [one.how for one in take_back()] == ["foreign"]
    assert (root / PARANOID).read_text().strip() == "0"


def test_a_restart_undoes_everything_by_itself(root):
    perf.give_counting(granting()[0], root)
    journal = record().path
    journal.write_text(journal.read_text().replace(boot_id(), "an earlier boot"))
    assert granted() == []
    assert [one.how for one in take_back()] == ["restarted"]
    assert (root / PARANOID).read_text().strip() == "1"


def test_a_grant_outlives_the_command_and_restore(root):
    from castmates.machine.journal import journals

    perf.give_counting(granting()[0], root)
    assert not granted()[0].stale
    assert not [entry for journal in journals() for entry in journal.entries()]


def test_who_is_asked_for_is_said():
    of = [(None, {}), ("no-such-user", {}), ("root", {}), (None, {"SUDO_USER": "root"})]
    assert_as_before("grantees", {f"{name} {there}": refusal(find_grantee, name, there) for name, there in of})


def test_who_called_sudo_is_meant():
    assert find_grantee(None, {"SUDO_USER": "nobody"}).name == "nobody"


@pytest.mark.parametrize(
    ("call", "option"),
    [(lambda: grant.undo(print), "--undo"), (lambda: grant.give("nobody", 1, False, None, print), "--grant")],
)
def test_only_root_may(call, option, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CastmatesError, match=f"needs root, this once: sudo castmates doctor {option}$"):
        call()


def test_masks_of_the_default_group_come_back_whatever_the_user_left(root):
    if os.geteuid() != 0:
        lacks("root", "only root gives files away")
    schemata = root / "sys/fs/resctrl/schemata"
    other = replace(ME, uid=65534, gid=65534)
    assert "grant --default-group" in group_rights.not_given(other, root)
    for _ in range(2):
        group_rights.give_groups(Granting(other, record(), print), 1, True, root)
        schemata.write_text("L3:0=00f\n")  # a run that was killed with its warden; its journal is the user's
    assert group_rights.not_given(other, root) == ""
    assert [one.how for one in take_back()].count("restored") == len(record().entries()) + 3
    assert schemata.read_text().strip() == "L3:0=fff"
    assert schemata.stat().st_uid == 0


def test_what_killed_runs_left_goes_before_what_was_given(monkeypatch):
    order = []
    monkeypatch.setattr(grant, "must_be_root", lambda _: None)
    monkeypatch.setattr(grant, "repair_lock", lambda *_, **__: nullcontext())
    monkeypatch.setattr(grant, "heal", lambda: order.append("heal") or Restored(["a member"]))
    monkeypatch.setattr(grant, "take_back", lambda: order.append("take back") or [])
    grant.undo(order.append)
    assert order == ["heal", "a member", "take back", "nothing is granted"]
