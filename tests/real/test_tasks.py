"""Families of real processes are followed thread by thread."""

import os
import signal
import subprocess
import sys

import pytest

from castmates.linux import cgroups
from castmates.linux.owner import group_name
from castmates.linux.processes import tree_of
from castmates.protocols import Held
from castmates.rdt.resctrl.foreign import KernelTasks
from tests.needs import lacks
from tests.opened import opened
from tests.waiting import PATIENCE, wait_for

# A process with two threads more, a child, and a grandchild; when asked, the one ends and the other leaves the session.
FAMILY = """
import os, sys, threading, time
leave, let_leave = os.pipe()
end, let_end = os.pipe()
for _ in range(2):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
if os.fork() == 0:
    if os.fork() == 0:
        os.read(leave, 1)
        os.setsid()
        os.write(1, b"left\\n")
        time.sleep(600)
    os.read(end, 1)
    os._exit(0)
os.write(1, b"ready\\n")
for line in sys.stdin:
    os.write({"leave": let_leave, "end": let_end}[line.strip()], b".")
"""


@pytest.fixture
def family():
    running = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        running.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in running:
        for tid in KernelTasks().threads([held(process)])[process.pid]:
            try:
                os.kill(tid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        process.stdin.close()
        process.stdout.close()


def held(process, group=None):
    return Held(process.pid, (), group and str(group))


def ask(process, what):
    process.stdin.write(f"{what}\n".encode())
    process.stdin.flush()


def wait_until_there_are(count, tasks, *processes):
    members = [held(process) for process in processes]
    wait_for(lambda: all(len(found) == count for found in tasks.threads(members).values()), f"families of {count}")


def test_threads_children_and_grandchildren_are_found(family):
    process, tasks = family(), KernelTasks()
    wait_until_there_are(5, tasks, process)
    assert process.pid in tasks.threads([held(process)])[process.pid]


def test_who_leaves_the_session_and_loses_its_parent_is_still_known(family):
    process, tasks = family(), KernelTasks()
    wait_until_there_are(5, tasks, process)
    everybody = set(tasks.threads([held(process)])[process.pid])
    ask(process, "leave")
    assert process.stdout.readline() == b"left\n"
    tasks.threads([held(process)])  # it is seen on the way, as it is between two windows
    ask(process, "end")
    wait_until_there_are(4, tasks, process)  # the child is gone, the grandchild is not
    left = set(tasks.threads([held(process)])[process.pid])
    assert left < everybody
    os.kill(max(left - set(map(int, os.listdir(f"/proc/{process.pid}/task")))), signal.SIGKILL)  # noqa: PTH208


def test_a_process_that_has_ended_has_no_threads():
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    assert KernelTasks().threads([held(process)]) == {process.pid: []}


def test_several_families_are_told_apart(family):
    one, other, tasks = family(), family(), KernelTasks()
    wait_until_there_are(5, tasks, one, other)
    found = tasks.threads([held(one), held(other)])
    assert not set(found[one.pid]) & set(found[other.pid])


@pytest.fixture
def group():
    """A control group with one more in it."""
    home = cgroups.find_home() or lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    folder = cgroups.make(home, group_name("tasks"))
    cgroups.make(folder, "inner")
    yield folder
    assert cgroups.kill(folder, PATIENCE)
    cgroups.remove(folder)


def test_the_threads_of_a_control_group_are_its_lists_and_no_other_process_is_looked_at(family, group):
    process, outsider, tasks = family(), family(), KernelTasks()
    wait_until_there_are(5, tasks, process)
    everybody = tasks.threads([held(process)])[process.pid]
    for pid in {pid for pid, _ in tree_of(process.pid)}:
        cgroups.move(group / "inner" if pid == max(everybody) else group, pid)
    with opened() as paths:
        found = tasks.threads([held(process, group)])
    assert sorted(found[process.pid]) == sorted(everybody)
    assert paths
    assert not [path for path in paths if path.startswith("/proc") or str(outsider.pid) in path]
    assert cgroups.kill(group, PATIENCE)
    assert tasks.threads([held(process, group)]) == {process.pid: []}
