"""The fake and the real kernel do the same random things side by side, with the same results."""

import errno
import os
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from castmates.rdt.fake import (
    LAB,
    LAB_ALLOCATION_ONLY,
    LAB_MONITORING_ONLY,
    LAB_TWO_SOCKETS,
    V6_1,
    V6_12,
    V7_2,
    FakeResctrl,
    Throttle,
)
from castmates.rdt.resctrl.tree import KernelTree
from tests.lab import guest
from tests.lab.kit.transcript import ROOT
from tests.unit.rdt.stories import CONTROLS, GROUPS, Story, below, take

FAKES = {
    "linux-6.1": (LAB, V6_1),
    "linux-6.12": (LAB, V6_12),
    "linux-7.2": (LAB, V7_2),
    "two-sockets-sparse-7.2": (replace(LAB_TWO_SOCKETS, sparse=True), V7_2),
    "two-sockets": (LAB_TWO_SOCKETS, V6_12),
    "two-sockets-6.1": (LAB_TWO_SOCKETS, V6_1),
    "cat-only": (LAB_ALLOCATION_ONLY, V6_1),
    "monitoring-only": (LAB_MONITORING_ONLY, V6_1),
    "sparse": (replace(LAB, sparse=True), V6_12),
    "few-groups": (replace(LAB, closids=4, throttle=Throttle(closids=4), rmids=8), V6_1),
}
STEPS = 100
LIMBO = 1.5  # seconds until a clean id can be had again


@pytest.fixture
def sleepers():
    """In a guest: four processes that do nothing."""
    made = [subprocess.Popen(["sleep", "1000"]) for _ in range(4)]
    yield [process.pid for process in made]
    for process in made:
        process.kill()
        process.wait()


@pytest.mark.machines(*FAKES)
@pytest.mark.parametrize("option", ["", "cdp"], ids=["plain", "cdp"])
def test_fake_answers_random_things_as_the_kernel_does(machine, option, sleepers):
    shape, kernel = FAKES[machine.name]
    if option and not shape.cdp:
        pytest.skip("this machine cannot tell code from data")
    guest.mount(option)
    try:
        compare(
            FakeResctrl(shape, kernel, options=option),
            Story(sum(map(ord, machine.name + option)), shape, option),
            sleepers,
        )
    finally:
        guest.unmount()


@pytest.mark.machines("two-sockets", "two-sockets-6.1", "two-sockets-sparse-7.2")
def test_fake_loses_and_regains_cpus_as_the_kernel_does(machine, resctrl):
    compare_hotplug(FakeResctrl(*FAKES[machine.name]), resctrl)


def compare_hotplug(fake, tree):
    """Switch off a whole domain, and on again, with limits and CPUs given to a group that has one inside it."""
    for one in (fake, tree):
        for group in ("a", "a/mon_groups/x"):
            one.make(group)
        one.write("a/schemata", "L3:0=f;1=f\nMB:0=50;1=50\n")
        one.write("a/cpus_list", "1-2\n")
        one.write("a/mon_groups/x/cpus_list", "2\n")
    for cpu, online in ((2, 0), (3, 0), (3, 1), (1, 0), (2, 1), (1, 1)):
        fake.set_online(cpu, bool(online))
        Path(f"/sys/devices/system/cpu/cpu{cpu}/online").write_text(f"{online}\n")
        assert seen(fake, set()) == seen(tree, set()), f"CPU {cpu} is switched {'on' if online else 'off'}"
        assert fake.names("a/mon_data") == tree.names("a/mon_data")
        assert outcome(lambda: fake.write("a/cpus_list", "2\n")) == outcome(lambda: tree.write("a/cpus_list", "2\n"))


def compare(fake, story, sleepers):
    tree, me = KernelTree(ROOT), os.getpid()
    for pid in (me, *sleepers):
        fake.processes.fork(pid=pid)
    known = {"1", "2", str(me), *map(str, sleepers)}
    with fake.acting(me):
        for number in range(STEPS):
            step = real_processes(story.step(), sleepers)
            if step[0] in ("fork", "exit", "advance"):
                continue
            real, said = outcome(lambda step=step: act(tree, step)), outcome(lambda step=step: take(fake, step))
            if step[0] == "remove" and real == "OK":
                time.sleep(LIMBO)
                fake.advance(LIMBO)
            story_so_far = f"step {number}: {step}"
            assert said == real, story_so_far
            assert seen(fake, known) == seen(tree, known), story_so_far


def real_processes(step, sleepers):
    """Put the numbers of real processes for 3 to 6."""
    if step[0] != "tasks":
        return step
    return (*step[:2], re.sub(r"(?<![\w-])[3-6](?!\w)", lambda found: str(sleepers[int(found[0]) - 3]), step[2]))


def act(tree, step):
    verb, *texts = step
    match verb:
        case "make" | "remove":
            getattr(tree, verb)(*texts)
        case "rename":
            (ROOT / texts[0]).rename(ROOT / texts[1])
        case file:
            tree.write(below(texts[0], file), texts[1])


def outcome(call):
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "OK"


def seen(tree, known):
    """Return the last command's status, and what all groups' files hold, of these processes only."""
    found = {"status": tree.read("info/last_cmd_status"), "names": tree.names("")}
    for group in GROUPS:
        files = ["cpus_list", "tasks"] + ["schemata", "mode"] * (group in CONTROLS)
        for file in files:
            path = below(group, file)
            try:
                text = tree.read(path)
            except OSError as error:
                text = errno.errorcode[error.errno]
            found[path] = sorted(known & set(text.split())) if file == "tasks" else text
    for name in tree.names("info"):
        if "bit_usage" in (tree.names(f"info/{name}") if name != "last_cmd_status" else ()):
            found[name] = tree.read(f"info/{name}/bit_usage")
    return found
