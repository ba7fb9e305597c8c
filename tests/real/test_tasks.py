"""Families of real processes are followed thread by thread."""

import os
import signal
import subprocess
import sys

import pytest

from castmates.rdt.resctrl.foreign import KernelTasks
from tests.waiting import wait_for

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
        for tid in KernelTasks().threads([process.pid])[process.pid]:
            try:
                os.kill(tid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        process.stdin.close()
        process.stdout.close()


def ask(process, what):
    process.stdin.write(f"{what}\n".encode())
    process.stdin.flush()


def wait_until_there_are(count, tasks, *processes):
    pids = [process.pid for process in processes]
    wait_for(lambda: all(len(found) == count for found in tasks.threads(pids).values()), f"families of {count}")


def test_threads_children_and_grandchildren_are_found(family):
    process, tasks = family(), KernelTasks()
    wait_until_there_are(5, tasks, process)
    assert process.pid in tasks.threads([process.pid])[process.pid]


def test_who_leaves_the_session_and_loses_its_parent_is_still_known(family):
    process, tasks = family(), KernelTasks()
    wait_until_there_are(5, tasks, process)
    everybody = set(tasks.threads([process.pid])[process.pid])
    ask(process, "leave")
    assert process.stdout.readline() == b"left\n"
    tasks.threads([process.pid])  # it is seen on the way, as it is between two windows
    ask(process, "end")
    wait_until_there_are(4, tasks, process)  # the child is gone, the grandchild is not
    left = set(tasks.threads([process.pid])[process.pid])
    assert left < everybody
    os.kill(max(left - set(map(int, os.listdir(f"/proc/{process.pid}/task")))), signal.SIGKILL)  # noqa: PTH208


def test_a_process_that_has_ended_has_no_threads():
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    assert KernelTasks().threads([process.pid]) == {process.pid: []}


def test_several_families_are_told_apart(family):
    one, other, tasks = family(), family(), KernelTasks()
    pids = [one.pid, other.pid]
    wait_until_there_are(5, tasks, one, other)
    found = tasks.threads(pids)
    assert not set(found[one.pid]) & set(found[other.pid])
