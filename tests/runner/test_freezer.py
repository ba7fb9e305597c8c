"""Freezing, thawing and killing real process trees, by control groups and by signals."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from castmates.counters.proc.cpu_time import spent_by
from castmates.counters.proc.procstat import last_cpus, read_tree
from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.processes import Family, is_stopped, living, read_process, tree_of
from castmates.runner.processes.freezer import CgroupFreezer, SignalFreezer, choose_freezer
from tests.needs import lacks
from tests.waiting import wait_for

# Four workers count in separate files: the main thread, another thread, a child, and a child that calls setsid.
TREE = """
import os, sys, threading, time
def count(name):
    with open(os.path.join(sys.argv[1], name), "wb", buffering=0) as out:
        while True:
            out.write(b"x")
            time.sleep(0.002)
if os.fork() == 0:
    count("child")
if os.fork() == 0:
    os.setsid()
    count("setsid")
threading.Thread(target=count, args=("thread",), daemon=True).start()
count("main")
"""
WORKERS = ("main", "thread", "child", "setsid")


def sizes(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_size if (folder / name).exists() else 0 for name in WORKERS}


def wait_for_progress(folder: Path) -> None:
    before = sizes(folder)
    wait_for(lambda: all(sizes(folder)[name] > before[name] for name in WORKERS), f"all go on from {before}")


@pytest.fixture(scope="module")
def home():
    return cgroups.find_home()


@pytest.fixture(params=["cgroup", "signals"])
def freezer(request, home):
    if request.param == "cgroup":
        if home is None:
            lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
        made = CgroupFreezer(home, "test")
    else:
        made = SignalFreezer()
    yield made
    made.close()


@pytest.fixture
def launch(tmp_path):
    launched = []

    def start(code: str = TREE) -> subprocess.Popen:
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], start_new_session=True)
        launched.append((process, Family(process.pid)))
        return process

    yield start
    for process, family in launched:
        left = family.kill(5)
        process.wait()
        assert left == []


def test_freeze_stops_every_worker_and_thaw_resumes_it(freezer, launch, tmp_path):
    member = launch()
    freezer.adopt("lead", member.pid)
    wait_for_progress(tmp_path)
    assert len(freezer.stragglers("lead")) == 3
    assert not freezer.is_frozen("lead")
    for _ in range(3):
        freezer.freeze("lead")
        before = sizes(tmp_path)
        assert freezer.is_frozen("lead")
        time.sleep(0.1)
        assert sizes(tmp_path) == before
        freezer.thaw("lead")
        wait_for_progress(tmp_path)
        assert not freezer.is_frozen("lead")


def test_kill_of_a_frozen_tree_leaves_nobody(freezer, launch, tmp_path):
    member = launch()
    freezer.adopt("lead", member.pid)
    wait_for_progress(tmp_path)
    family = Family(member.pid)
    pids = [process.pid for process in family.living()]
    freezer.freeze("lead")
    freezer.kill("lead")
    assert freezer.stragglers("lead") == []
    assert not freezer.is_frozen("lead")
    assert [pid for pid in pids if (process := read_process(pid)) and process.alive] == []
    freezer.kill("lead")


def test_stragglers_are_those_who_outlive_their_leader(freezer, launch, tmp_path):
    member = launch()
    freezer.adopt("lead", member.pid)
    wait_for_progress(tmp_path)
    assert len(freezer.stragglers("lead")) == 3
    member.kill()
    member.wait()
    assert len(freezer.stragglers("lead")) == 2
    freezer.kill("lead")
    assert freezer.stragglers("lead") == []


def test_members_are_frozen_one_by_one(freezer, launch):
    sleepers = {name: launch("import time; time.sleep(600)") for name in ("one", "two/three")}
    for name, process in sleepers.items():
        freezer.adopt(name, process.pid)
    freezer.freeze("one")
    assert freezer.is_frozen("one")
    assert not freezer.is_frozen("two/three")
    freezer.close()
    assert [process.wait() for process in sleepers.values()] == [-9, -9]
    assert not any(group.exists() for group in freezer.groups())


def test_a_member_that_ended_at_once_is_named(freezer, launch):
    process = launch("pass")
    process.wait()
    with pytest.raises(CastmatesError, match="member lead ended right after its start"):
        freezer.adopt("lead", process.pid)


def test_a_tree_that_forks_without_end_does_not_escape(freezer, launch, tmp_path):
    member = launch(
        "import os, time\nwhile True:\n"
        "    if os.fork():\n        os._exit(0)\n"  # the leader is gone at once: only the session shows it
        "    open(os.sys.argv[1] + '/main', 'ab').write(b'x'); time.sleep(0.001)"
    )
    freezer.adopt("lead", member.pid)
    wait_for(lambda: sizes(tmp_path)["main"] > 5, "the chain has started")
    freezer.freeze("lead")
    before = sizes(tmp_path)
    time.sleep(0.05)
    assert sizes(tmp_path) == before
    freezer.kill("lead")
    time.sleep(0.05)
    assert sizes(tmp_path) == before


def test_a_shell_that_always_starts_programs_is_frozen_every_time(freezer, launch, tmp_path):
    # A parent in vfork cannot stop before its child has called exec.
    shell = 'while :; do for i in $(seq 2000); do /bin/true; echo >>"$0"; done; done'
    member = launch(f"import os, sys\nos.execvp('sh', ['sh', '-c', {shell!r}, sys.argv[1] + '/main'])")
    freezer.adopt("lead", member.pid)
    for _ in range(200):
        lines = sizes(tmp_path)["main"]
        wait_for(lambda lines=lines: sizes(tmp_path)["main"] > lines, "the shell goes on")
        freezer.freeze("lead")
        assert freezer.is_frozen("lead")
        freezer.thaw("lead")
    assert member.poll() is None


def test_a_reused_number_is_not_taken_for_the_member(launch):
    stranger = launch("import time; time.sleep(600)")
    born = read_process(stranger.pid).born
    assert Family(stranger.pid, born - 1).living() == []
    assert Family(stranger.pid, born - 1).kill(1) == []
    assert stranger.poll() is None


def test_a_dead_leader_with_a_living_thread_is_alive_and_can_be_stopped(launch):
    code = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # end this thread only
"""
    process = launch(code)
    wait_for(lambda: read_process(process.pid).state == "Z", "the leader has ended")
    family = Family(process.pid)
    assert [p.pid for p in family.living()] == [process.pid]
    assert not is_stopped(process.pid)
    assert family.stop(5) == []
    assert is_stopped(process.pid)


def test_a_tree_has_what_any_thread_started_and_its_dead_have_no_threads_that_live(launch):
    code = """
import os, subprocess, threading, time
if os.fork() == 0:
    os._exit(0)  # never waited for
threading.Thread(target=subprocess.run, args=(["sh", "-c", "sleep 600 & wait"],)).start()
time.sleep(600)
"""
    leader = launch(code).pid
    wait_for(lambda: len(dict(tree_of(leader))) == 4, "all have begun")
    tree = dict(tree_of(leader))
    assert tree.keys() == {leader, *(child.pid for child in psutil.Process(leader).children(recursive=True))}
    assert sorted(len(threads) for threads in tree.values()) == [1, 1, 1, 2]
    (dead,) = (pid for pid in tree if not living(pid))
    assert read_process(dead).state == "Z"
    threads = {tid for pid in tree.keys() - {dead} for tid in tree[pid]}
    assert threads == last_cpus(leader).keys() == read_tree(leader).switches.keys()
    assert threads == spent_by(leader, waits=True).waited_ns.keys()
    assert not [*tree_of(ended())]


def ended() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


def test_choice_says_its_kind(home):
    freezer = choose_freezer("suite/program")
    assert freezer.kind == ("cgroup" if home else "signals")
    freezer.close()
    assert not any(group.exists() for group in freezer.groups())


MOUNTS = """\
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
"""


@pytest.mark.parametrize(
    ("mounts", "own", "expected"),
    [
        (MOUNTS, "1:cpu:/\n0::/", ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"]),
        (MOUNTS, "0::/user/me", ["/sys/fs/cgroup/unified/user/me", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"]),
        (
            MOUNTS.replace(" / ", " /jobs ", 1),
            "0::/jobs/7",
            ["/sys/fs/cgroup/unified/7", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"],
        ),
        (MOUNTS.replace(" / ", " /jobs ", 1), "0::/other", ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"]),
        (MOUNTS.replace("unified", r"my\040group"), "0::/", ["/sys/fs/cgroup/my group", "/sys/fs/cgroup/cpu"]),
        (MOUNTS.splitlines()[1], "1:cpu:/", ["/sys/fs/cgroup/cpu"]),
    ],
)
def test_candidates(mounts, own, expected):
    assert cgroups.candidates(mounts, own) == [Path(path) for path in expected]


def test_a_place_without_cgroups_is_refused_by_trying(tmp_path):
    assert not cgroups.works(tmp_path)
    assert list(tmp_path.iterdir()) == []
