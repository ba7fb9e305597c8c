"""A plain user partitions the real kernel's cache with what root gave him once, and can do nothing else to it."""

import json
import os
import re
import subprocess
import tempfile

import pytest

from castmates.errors import CastmatesError
from castmates.grant import group_rights, perf
from castmates.grant.perf import Grantee, Granting, granted, record, take_back
from castmates.machine.journal import journals
from castmates.protocols import Held
from castmates.rdt.choose import choose_allocator
from castmates.study.spec import REST, Share
from tests.lab import guest
from tests.lab.kit.transcript import ROOT

NOBODY = Grantee("nobody", 65534, 65534)


def as_nobody(do):
    """What a function returns that a child process of the user's runs, with a journal in a folder of his own."""
    folder = tempfile.mkdtemp(dir="/dev/shm")  # pytest's are closed to others
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chown(folder, NOBODY.uid, NOBODY.gid)
            os.environ["CASTMATES_STATE"] = str(folder)
            os.setgroups([])
            os.setgid(NOBODY.gid)
            os.setuid(NOBODY.uid)
            os.write(writing, json.dumps(do()).encode())
        except BaseException as error:
            os.write(writing, json.dumps({"failed": repr(error)}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = json.loads(answers.read())
    os.waitpid(child, 0)
    return said


def partition():
    """Launch two processes, give them masks, look, and put everything back."""
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    members = {f"member@{cpu}": Held(one.pid, [cpu]) for cpu, one in enumerate(sleepers, start=1)}
    allocator = choose_allocator()
    try:
        allocator.prepare(members)
        allocator.apply([Share(member="member@1", ways=0xF), Share(member="member@2", ways=0xFF0)])
        said = {"given": allocator.read_back(), "misplaced": allocator.misplaced()}
        try:
            allocator.apply([Share(member="member@1", ways=0xF), Share(member=REST, ways=0xFF0)])
            said["rest"] = "given"
        except CastmatesError as problem:
            said["rest"] = str(problem)
        return said | {"refused": [refusal(attempt) for attempt in (move_init, make_group, take_cpus, touch_others)]}
    finally:
        allocator.restore()
        for one in sleepers:
            one.kill()
            one.wait()


def move_init():
    (ROOT / "castmates-65534-0/tasks").write_text("1\n")


def make_group():
    (ROOT / "mine").mkdir()


def take_cpus():
    (ROOT / "castmates-65534-0/cpus_list").write_text("0-3\n")


def touch_others():
    (ROOT / "COS1/schemata").write_text("L3:0=f\n")


def refusal(attempt):
    try:
        attempt()
    except PermissionError:
        return attempt.__name__
    return "was not refused"


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2", "two-sockets")
@pytest.mark.parametrize("default_group", [False, True])
def test_a_plain_user_partitions_and_can_do_nothing_else(state, default_group):
    assert not guest.is_mounted()
    giver = Granting(NOBODY, record(), print)
    group_rights.give_groups(giver, 3, default_group)
    perf.give_counting(giver)
    assert not giver.refused
    (ROOT / "COS1").mkdir()
    before = guest.groups()
    said = as_nobody(partition)
    assert "failed" not in said
    lines = {name: re.search(r"L3:(\S+)", schemata)[1] for name, schemata in said["given"].items()}
    # On two sockets each has its mask in its own cache, and everything in the other.
    masks = {name: set(re.findall(r"=(\w+)", line)) - {"fff"} for name, line in lines.items()}
    assert masks == {"member@1": {"f"}, "member@2": {"ff0"}}
    assert said["misplaced"] == []
    assert (said["rest"] == "given") == default_group
    assert said["refused"] == ["move_init", "make_group", "take_cpus", "touch_others"]
    assert guest.groups() == before

    (ROOT / "COS1").rmdir()
    # The run has put the default group's masks back by itself.
    assert {one.how for one in take_back()} == ({"restored", "already"} if default_group else {"restored"})
    assert not guest.is_mounted()
    assert granted() == []
    assert not [entry for journal in journals() for entry in journal.entries()]


@pytest.mark.machines("few-groups")
def test_no_more_groups_than_there_are_classes(state):
    said = []
    giver = Granting(NOBODY, record(), said.append)
    group_rights.give_groups(giver, 6, False)
    assert not giver.refused
    assert any("no more than 3 groups" in line for line in said)
    before = guest.groups()
    again = Granting(NOBODY, record(), said.append)
    group_rights.give_groups(again, 6, False)
    assert guest.groups() == before
    take_back()
    assert not guest.is_mounted()


@pytest.mark.machines("linux-6.1")
def test_resctrl_stays_mounted_while_others_use_it(state):
    group_rights.give_groups(Granting(NOBODY, record(), print), 1, False)
    (ROOT / "COS1").mkdir()
    assert [one.how for one in take_back()].count("failed") == 1
    assert guest.is_mounted()
    assert not (ROOT / "castmates-65534-0").exists()
    (ROOT / "COS1").rmdir()
    assert [one.how for one in take_back()] == ["restored"]
    assert not guest.is_mounted()
