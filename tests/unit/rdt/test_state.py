"""What of resctrl is written in the journal is put back, whoever died when; tried on plain folders and files."""

import dataclasses
import errno
from pathlib import Path

import pytest

from castmates.linux.owner import delegated_to, maker_of_resctrl_group, myself, resctrl_group_name
from castmates.machine import resctrl_state
from castmates.machine.journal import KINDS, Change, Journal
from castmates.machine.resctrl_state import groups_at, read_mount, write_mount
from castmates.rdt.resctrl import leftovers, mounting
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.tree import KernelTree
from castmates.runner.cleanup import restore
from castmates.study.spec import REST, Share
from tests.unit.rdt import trees
from tests.unit.rdt.fakes import Bench

DEAD = dataclasses.replace(myself(), pid=2**22 + 1)


@pytest.fixture
def here(tmp_path):
    point = tmp_path / "resctrl"
    (point / "mon_groups").mkdir(parents=True)
    (point / "info").mkdir()
    (point / "schemata").write_text("    MB:0= 70\n    L3:0=0ff;1=fff\n")
    return point


def heal(folder):
    return {one.entry.change.knob: one.how for one in Journal(folder).restore(lambda entry: entry.stale)}


def test_groups_of_a_dead_run_go(here, tmp_path):
    entries = ResctrlJournal(Journal(tmp_path, DEAD), here, "a test")
    for path in ("castmates.1-2-3.0", "mon_groups/castmates.1-2-3.1000", "never.made"):
        entries.announce_group(path)
    (here / "castmates.1-2-3.0").mkdir()
    (here / "mon_groups/castmates.1-2-3.1000").mkdir()
    assert [one.how for one in Journal(tmp_path).restore(lambda entry: entry.stale)] == [
        "already",
        "restored",
        "restored",
    ]
    assert groups_at(here) == []


@pytest.mark.parametrize("now", ["L3:0=3;1=3", "L3:0=00c;1=00c\n", "L3:0=c"])
def test_default_schemata_of_a_dead_run_are_put_back_from_any_it_has_set(here, tmp_path, now):
    entries = ResctrlJournal(Journal(tmp_path, DEAD), here, "a test")
    for new in ("L3:0=3;1=3", "L3:0=c;1=c", "L3:0=3;1=3"):
        entries.announce_schemata("", "L3:0=ff;1=fff", new)
    (here / "schemata").write_text(now)
    assert heal(tmp_path) == {"resctrl schemata": "restored"}
    expected = "L3:0=ff\n" if "1=" not in now else "L3:0=ff;1=fff\n"  # the second cache may have gone offline
    assert (here / "schemata").read_text().startswith(expected.strip())
    assert Journal(tmp_path).path.read_bytes() == b""


def test_what_somebody_else_has_set_is_left(here, tmp_path):
    ResctrlJournal(Journal(tmp_path, DEAD), here, "a test").announce_schemata("", "L3:0=ff;1=fff", "L3:0=3;1=3")
    (here / "schemata").write_text("L3:0=7;1=7\n")
    assert heal(tmp_path) == {"resctrl schemata": "foreign"}
    assert (here / "schemata").read_text() == "L3:0=7;1=7\n"


def test_schemata_that_are_padded_otherwise_are_as_they_were(here, tmp_path):
    ResctrlJournal(Journal(tmp_path, DEAD), here, "a test").announce_schemata("", "MB:0=70 L3:0=ff;1=fff", "L3:0=3;1=3")
    assert heal(tmp_path) == {"resctrl schemata": "already"}


def test_unmounted_meanwhile(here, tmp_path):
    entries = ResctrlJournal(Journal(tmp_path, DEAD), here, "a test")
    entries.announce_group("castmates.1-2-3.0")
    entries.announce_schemata("", "L3:0=ff", "L3:0=3")
    (here / "schemata").unlink()
    assert heal(tmp_path) == {"resctrl schemata": "gone", "resctrl group": "already"}


def test_a_journal_line_is_written_before_each_new_value_and_only_then(here, tmp_path):
    journal = Journal(tmp_path)
    entries = ResctrlJournal(journal, here, "a test")
    for new in ("L3:0=3", "L3:0=c", "L3:0=3", "L3:0=c", "L3:0=ff"):
        entries.announce_schemata("", "L3:0=ff", new)
    assert len(journal.path.read_text().splitlines()) == 2
    [entry] = journal.entries()
    assert entry.change == Change(
        "resctrl schemata", "resctrl-schemata", str(here / "schemata"), "L3:0=ff", "L3:0=3 | L3:0=c"
    )
    entries.strike("")
    entries.strike("")
    assert journal.entries() == []


def test_a_run_leaves_no_line_in_the_journal(tmp_path):
    bench = Bench(journal=Journal(tmp_path))
    allocator = bench.prepared()
    monitor = bench.monitor()
    monitor.attach(bench.held)
    allocator.apply([Share(member=REST, ways=0x3)])
    assert {entry.change.kind for entry in Journal(tmp_path).entries()} == {"group", "resctrl-schemata"}
    monitor.close()
    allocator.restore()
    assert Journal(tmp_path).entries() == []


def test_a_group_that_is_refused_leaves_no_line(tmp_path):
    bench = Bench(journal=Journal(tmp_path))
    for number in range(7):
        bench.fake.make(f"other{number}")
    with pytest.raises(Exception, match="Out of CLOSIDs"):
        bench.prepared()
    assert Journal(tmp_path).entries() == []


def test_nothing_is_unmounted_while_groups_are_left(here):
    (here / "COS1").mkdir()
    (here / "mon_groups/pqos-1").mkdir()
    with pytest.raises(OSError, match="COS1, mon_groups/pqos-1") as refused:
        write_mount(here, resctrl_state.ABSENT)
    assert refused.value.errno == errno.EBUSY


def test_what_is_not_mounted_is_absent(here):
    assert read_mount(here) == resctrl_state.ABSENT
    assert KINDS["resctrl-mount"].read(here) == resctrl_state.ABSENT


def test_names_tell_who_made_a_group():
    assert maker_of_resctrl_group(resctrl_group_name(3)) == myself()
    assert maker_of_resctrl_group("castmates-1000-3") is None
    assert maker_of_resctrl_group("castmates.x") is None
    assert (delegated_to("castmates-1000-3"), delegated_to(resctrl_group_name(3))) == (1000, None)


def test_leftovers_of_the_dead_go_and_nobody_elses(tmp_path):
    here = trees.record(tmp_path, trees.XEON)
    dead = (
        resctrl_group_name(0)
        .replace(f".{DEAD.pid}-", ".")
        .replace(f"castmates.{myself().pid}-", f"castmates.{DEAD.pid}-")
    )
    for path in (dead, resctrl_group_name(1), "COS1", "castmates-1000-0", f"mon_groups/{dead}"):
        (here / path).mkdir(parents=True)
        (here / path / "tasks").write_text("")
    for path in (dead, f"mon_groups/{dead}"):  # a real group's files vanish with it
        (here / path / "tasks").unlink()
        (here / path / "tasks").symlink_to("/dev/null")
    done, left = leftovers.remove_from(_Emptying(here), here)
    assert left == []
    assert [said.split(":")[0] for said in done] == [str(here / "mon_groups" / dead), str(here / dead)]
    assert sorted(groups_at(here)) == sorted([resctrl_group_name(1), "COS1", "castmates-1000-0"])


class _Emptying(KernelTree):
    """Plain folders, of which rmdir takes the files too, as resctrl's does."""

    def remove(self, path):
        for file in (self.root / path).iterdir():
            file.unlink()
        super().remove(path)


def machine(root: Path, filesystems: str, mounted: bool = False, container: bool = False) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/filesystems").write_text(filesystems)
    (root / "proc/self/mountinfo").write_text("1 0 0:1 / /proc rw - proc proc rw\n")
    if container:
        (root / ".dockerenv").touch()
    if mounted:
        trees.record(root, trees.XEON)
    return root


def test_why_nothing_is_mounted(tmp_path):
    none = machine(tmp_path / "none", "nodev\tproc\n")
    assert "has no resctrl" in mounting.why_not_mounted(none)
    plain = machine(tmp_path / "plain", "nodev\tresctrl\n")
    assert "sudo mount -t resctrl" in mounting.why_not_mounted(plain)
    inside = machine(tmp_path / "inside", "nodev\tresctrl\n", container=True)
    assert "in this container" in mounting.why_not_mounted(inside)
    assert mounting.why_not_mounted(machine(tmp_path / "there", "nodev\tresctrl\n", mounted=True)) == ""


@pytest.mark.parametrize(
    ("number", "options", "words"),
    [
        (errno.EBUSY, [], "EBUSY.*only one mount is possible"),
        (errno.EPERM, [], "EPERM.*(CAP_SYS_ADMIN|container)"),
        (errno.ENOENT, [], "there is no /sys/fs/resctrl"),
        (errno.EINVAL, ["cdp"], "with 'cdp'.*take it out of the study"),
        (errno.EIO, [], "EIO.*try by hand"),
    ],
)
def test_a_refused_mount_is_one_sentence(number, options, words):
    said = mounting.refused(OSError(number, "no"), options)
    assert pytest.raises(AssertionError, match=words).matches(AssertionError(said))
    assert "\n" not in said


def test_kernel_tree_names_who_holds_the_lock(tmp_path):
    from castmates.linux.host import flock_holder
    from castmates.rdt.resctrl.tree import in_words

    with KernelTree(tmp_path).locked():
        assert in_words(flock_holder(tmp_path.stat())).startswith(f"process {myself().pid} (")
    assert "cannot be identified" in in_words(flock_holder(tmp_path.stat()))


def test_kernel_tree_waits_for_others_and_gives_up(tmp_path, monkeypatch):
    from castmates.errors import CastmatesError
    from castmates.rdt.resctrl import tree as trees_module

    monkeypatch.setattr(trees_module, "LOCK_S", 0.05)
    tree = KernelTree(tmp_path)
    with tree.locked(exclusive=False), tree.locked(exclusive=False):
        pass
    with tree.locked(), pytest.raises(CastmatesError, match="has been locked"), tree.locked():
        pass


def test_a_mount_whose_masks_somebody_has_set_is_not_ours_to_unmount(tmp_path):
    here = trees.record(tmp_path, trees.XEON | {"schemata": "    MB:0=100;2=100\n    L3:0=7ff;2=00f\n"})
    with pytest.raises(OSError, match="masks of its default group"):
        write_mount(here, resctrl_state.ABSENT)


def test_a_class_of_pqos_in_which_somebody_lives_is_left(here, tmp_path):
    entries = ResctrlJournal(Journal(tmp_path, DEAD), here, "a test")
    entries.announce_group("COS1")
    (here / "COS1").mkdir()
    (here / "COS1/tasks").write_text("1234\n")
    [undone] = Journal(tmp_path).restore(lambda entry: entry.stale)
    assert (undone.how, undone.finding) == ("failed", "it has tasks, which are not of castmates")


def test_groups_of_killed_runs_go_before_the_mount_they_are_in(monkeypatch):
    order = []

    class Told:
        def restore(self, _):
            order.append("journal")
            return []

    monkeypatch.setattr(restore, "journals", lambda: [Told()])
    monkeypatch.setattr(restore, "remove_leftovers", lambda: order.append("groups") or (["a group"], []))
    monkeypatch.setattr(restore, "stale_groups", list)
    monkeypatch.setattr(restore, "stale_folders", list)
    assert restore.heal().sentences == ["a group"]
    assert order == ["groups", "journal"]
