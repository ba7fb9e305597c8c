"""Families of real processes are followed thread by thread, and their places read as the kernel writes them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from castmates.rdt.resctrl.tasks import UNMOUNTED, KernelTasks, Place, parse_place

# A process with two threads more, a child, and a grandchild that has left the session and lost its parent.
FAMILY = """
import os, threading, time
for _ in range(2):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep({pause})
        os.setsid()
        time.sleep({linger})
        print("alone", flush=True)
        time.sleep(60)
    time.sleep({linger})
    os._exit(0)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def family():
    running = []

    def start(pause=60, linger=60):
        code = FAMILY.format(pause=pause, linger=linger)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
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
        process.stdout.close()


def until(true):
    deadline = time.monotonic() + 20
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert true()


def test_threads_children_and_grandchildren_are_found(family):
    process, tasks = family(), KernelTasks()
    until(lambda: len(tasks.threads([process.pid])[process.pid]) == 5)
    assert process.pid in tasks.threads([process.pid])[process.pid]


def test_who_leaves_the_session_and_loses_its_parent_is_still_known(family):
    process, tasks = family(pause=0.5, linger=0.5), KernelTasks()
    until(lambda: len(tasks.threads([process.pid])[process.pid]) == 5)
    everybody = set(tasks.threads([process.pid])[process.pid])
    for _ in range(100):  # it is seen on the way, as it is between two windows
        tasks.threads([process.pid])
        time.sleep(0.02)
    left = set(tasks.threads([process.pid])[process.pid])
    assert len(left) == 4  # the child is gone, the grandchild is not
    assert left < everybody
    os.kill(max(left - set(map(int, os.listdir(f"/proc/{process.pid}/task")))), signal.SIGKILL)  # noqa: PTH208


def test_a_process_that_has_ended_has_no_threads():
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    assert KernelTasks().threads([process.pid]) == {process.pid: []}


def test_several_families_are_told_apart(family):
    one, other, tasks = family(), family(), KernelTasks()
    pids = [one.pid, other.pid]
    until(lambda: all(len(found) == 5 for found in tasks.threads(pids).values()))
    found = tasks.threads(pids)
    assert not set(found[one.pid]) & set(found[other.pid])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("res:/\nmon:\n", Place("", "")),
        ("res:g1\nmon:\n", Place("g1", "")),
        ("res:g1\nmon:m1\n", Place("g1", "m1")),
        ("res:/\nmon:m1\n", Place("", "m1")),
        ("res:\nmon:\n", Place(UNMOUNTED, "")),
    ],
)
def test_places(text, place):
    assert parse_place(text) == place
