"""A runner that is killed at any moment leaves nothing that `castmates doctor --restore` does not put back.

The course is the same each time; CASTMATES_SEED chooses another one, as `make test-nightly` does.
"""

import os
import random
import signal
import sys
import time

import pytest

from castmates.cli import main
from castmates.machine import lock  # noqa: F401 - imported before the children are forked, for it takes long here
from castmates.machine.journal import journals
from castmates.protocols import Held
from castmates.rdt.choose import choose_allocator, choose_monitor
from castmates.runner.cleanup import restore  # noqa: F401
from castmates.study.spec import REST, Share
from tests.lab import guest
from tests.seeds import chance

KILLS = 5
STEPS = 6  # of a runner: chosen, prepared, watched, shares given …


@pytest.fixture
def members(crowd):
    return {f"member@{cpu}": Held(crowd().pid, [cpu]) for cpu in range(2)}


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_masks_groups_and_default_group_are_put_back(resctrl, members):
    resctrl.make("COS1")
    resctrl.write("COS1/schemata", "L3:0=3\n")
    resctrl.write("schemata", "L3:0=7ff\nMB:0=80\n")
    before = guest.groups()
    course, changed = chance("crashes"), []
    for _ in kills(changed):
        moment = kill_a_runner(members, course)
        changed.append(guest.groups() != before)
        castmates_restore()
        assert guest.groups() == before, moment
        assert open_entries() == []
    assert sum(changed) >= KILLS / 4


@pytest.mark.machines("linux-6.1", "linux-6.12", "linux-7.2")
def test_mount_that_was_not_there_is_undone(state, members):
    course, changed = chance("crashes"), []
    for _ in kills(changed):
        moment = kill_a_runner(members, course)
        changed.append(guest.is_mounted())
        castmates_restore()
        assert not guest.is_mounted(), moment
        assert open_entries() == []
    assert sum(changed) >= KILLS / 4


@pytest.mark.machines("linux-6.1")
def test_restore_that_is_killed_is_done_by_the_next(resctrl, members):
    before = guest.groups()
    course, usual = chance("crashes"), 0.2
    for _ in range(KILLS):
        moment = kill_a_runner(members, course)
        restoring = guest.forked(cli_restore)
        time.sleep(course.uniform(0, usual))
        os.kill(restoring, signal.SIGKILL)
        os.waitpid(restoring, 0)
        begin = time.monotonic()
        castmates_restore()
        usual = time.monotonic() - begin
        assert guest.groups() == before, moment
        assert open_entries() == []


def kills(changed):
    """So many, and up to four times as many until a few came in the midst of something: the others prove nothing."""
    for kill in range(4 * KILLS):
        if kill < KILLS or sum(changed) < KILLS / 4:
            yield kill


def kill_a_runner(members, course):
    """Let a process partition the cache again and again, and kill it in the midst of a step, or after it."""
    ours, theirs = os.pipe()
    seed, steps = course.random(), course.randrange(STEPS)
    begin = time.monotonic()
    runner = guest.forked(lambda: partition_for_ever(members, random.Random(seed), theirs))
    os.close(theirs)
    for _ in range(steps):
        assert os.read(ours, 1), "the runner ended by itself"
    # About as long as a step takes here: an emulated machine is slow, and not always equally so.
    wait = course.uniform(0, (time.monotonic() - begin) / max(1, steps))
    time.sleep(wait)
    os.kill(runner, signal.SIGKILL)
    _, status = os.waitpid(runner, 0)
    os.close(ours)
    assert os.WIFSIGNALED(status), f"the runner ended by itself: {os.waitstatus_to_exitcode(status)}"
    return f"{wait:.3f} s after step {steps}"


def partition_for_ever(members, course, done):
    while True:
        allocator, monitor = choose_allocator(shares=True), choose_monitor(rate=50)
        os.write(done, b".")
        allocator.prepare(members)
        os.write(done, b".")
        monitor.attach(members)
        os.write(done, b".")
        for _ in range(2):
            masks = [((1 << course.randint(1, 6)) - 1) << course.randint(0, 5) for _ in range(3)]
            allocator.apply([Share(member=name, ways=mask) for name, mask in zip([*members, REST], masks, strict=True)])
            os.write(done, b".")
            monitor.start()
            monitor.stop()
        monitor.close()
        allocator.restore()


def castmates_restore():
    _, status = os.waitpid(guest.forked(cli_restore), 0)
    assert status == 0


def cli_restore():
    sys.argv = ["castmates", "doctor", "--restore"]
    main.main()


def open_entries():
    return [str(entry) for journal in journals() for entry in journal.entries()]
