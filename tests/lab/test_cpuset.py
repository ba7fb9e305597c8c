"""An isolated cpuset partition in a real kernel: its CPUs are its processes' alone, and others' again afterwards."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.cgroups import HANDED_DOWN, ISOLATED, PARTITION, lacking
from castmates.linux.owner import myself
from castmates.machine.journal import Journal
from castmates.runner.processes.isolation import isolated

pytestmark = pytest.mark.machines("linux-6.1", "linux-6.12")
ROOT = Path("/sys/fs/cgroup")
ALL, OTHERS = "0-3", "0,2-3"  # CPUs of these guests; the group has CPU 1


@pytest.fixture
def group():
    """A group of castmates, and a process in it on CPU 1."""
    (home,) = cgroups.here(cgroups.unified)
    made = cgroups.make(home, "castmates.test")
    process = subprocess.Popen(["sleep", "600"])
    os.sched_setaffinity(process.pid, {1})
    cgroups.move(made, process.pid)
    before = os.sched_getaffinity(0)
    yield made
    process.kill()
    process.wait()
    cgroups.remove(made)
    os.sched_setaffinity(0, before)


def where_a_stranger_may_run():
    code = "import os; print(sorted(os.sched_getaffinity(0)))"
    return subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True).stdout


def effective(name):
    return (ROOT / name).read_text().strip()


def test_nobody_else_may_use_its_cpus_and_afterwards_everybody(state, group):
    assert lacking() == ""
    handed, journal = effective(HANDED_DOWN), Journal(state)
    with isolated(group, [1], journal, "a launch", str) as record:
        assert effective(f"{group.name}/{PARTITION}") == ISOLATED
        assert effective("cpuset.cpus.effective") == OTHERS
        assert where_a_stranger_may_run() == "[0, 2, 3]\n"
        assert record["set"][str(group / PARTITION)] == ISOLATED
        with pytest.raises(OSError, match="Invalid argument"):
            os.sched_setaffinity(0, {1})
    assert effective("cpuset.cpus.effective") == ALL
    assert effective(HANDED_DOWN) == handed
    assert journal.entries() == []
    os.sched_setaffinity(0, {1})


def test_a_killed_runner_leaves_it_to_the_journal(state, group):
    handed = effective(HANDED_DOWN)
    killed = isolated(group, [1], Journal(state, replace(myself(), born=1)), "a launch", str)
    killed.__enter__()
    assert effective("cpuset.cpus.effective") == OTHERS
    Journal(state).restore(lambda entry: entry.stale)
    assert effective("cpuset.cpus.effective") == ALL
    assert effective(HANDED_DOWN) == handed
    assert Journal(state).entries() == []


def test_the_kernels_reason_is_in_the_sentence(state, group):
    """Below a group that is no partition itself there can be none (remote ones, since 6.7, need their CPUs above)."""
    (group / "inner").mkdir()
    try:
        with pytest.raises(CastmatesError, match=r"cpuset cannot be 'isolated' here: .*leave it out"):
            isolated(group / "inner", [1], Journal(state), "a launch", str).__enter__()
    finally:
        (group / "inner").rmdir()
    assert effective("cpuset.cpus.effective") == ALL
    assert Journal(state).entries() == []


def test_we_need_a_cpu_too(state, group):
    with pytest.raises(CastmatesError, match=r"on every CPU that castmates may use \(0-3\)"):
        isolated(group, range(4), Journal(state), "a launch", str).__enter__()
