"""Nothing survives the runner: processes, groups and files, also after SIGKILL."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.processes import is_stopped, read_process
from castmates.runner.cleanup.leftovers import clean_up
from castmates.runner.cleanup.warden import NotCleanedUp, Warden
from castmates.runner.processes.freezer import CgroupFreezer
from tests.needs import lacks
from tests.waiting import wait_for

# Launches two members (one leaves its session in a child), freezes the first, prints who they are, and waits.
RUNNER = """
import json, os, subprocess, sys, time
from pathlib import Path
from castmates.linux.processes import Family
from castmates.linux import cgroups
from castmates.runner.processes.freezer import CgroupFreezer, SignalFreezer
from castmates.runner.cleanup.warden import NotCleanedUp, Warden
warden = Warden.start()
home = cgroups.find_home() if sys.argv[1] == "cgroup" else None
freezer = CgroupFreezer(home, "test") if home else SignalFreezer()
for group in freezer.groups():
    warden.guard_cgroup(group)
folder = Path(sys.argv[2], "scratch")
warden.guard_path(folder)
folder.mkdir()
(folder / "file").write_text("x")
warden.guard_orphan(Path(sys.argv[2], "orphan"))
Path(sys.argv[2], "orphan").write_text("x")
code = "import os, time; os.fork() or os.setsid(); time.sleep(600)"
pids = []
for name in ("frozen", "running"):
    member = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    warden.guard_process(member.pid)
    freezer.adopt(name, member.pid)
    while len(freezer.stragglers(name)) < 2:
        time.sleep(0.01)
    pids += freezer.stragglers(name)
freezer.freeze("frozen")
told = {"pids": pids, "warden": warden._process.pid, "groups": [str(group) for group in freezer.groups()]}
print(json.dumps(told), flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and process.alive


def scheduled(pid: int) -> str:
    return Path(f"/proc/{pid}/schedstat").read_text().split()[2]


def at_rest(pid: int) -> bool:
    """Whether it sleeps, and was on no processor for a moment: one that waits for a processor does not sleep."""
    before = scheduled(pid)
    time.sleep(0.1)
    return read_process(pid).state == "S" and scheduled(pid) == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["cgroup", "signals"])
def test_nothing_outlives_a_killed_runner(kind, number, tmp_path):
    if kind == "cgroup" and cgroups.find_home() is None:
        lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, kind, str(tmp_path)], stdout=subprocess.PIPE)
    told = json.loads(runner.stdout.readline())
    assert len(told["pids"]) == 4
    assert all(map(alive, told["pids"]))
    assert (tmp_path / "scratch" / "file").exists()
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(told["warden"], ignored)
    runner.send_signal(number)
    runner.wait()
    runner.stdout.close()
    wait_for(lambda: not alive(told["warden"]), "the warden has ended")
    assert not any(map(alive, told["pids"]))
    assert not any(Path(group).exists() for group in told["groups"])
    assert not (tmp_path / "scratch").exists()
    assert not (tmp_path / "orphan").exists()


def test_members_do_not_hold_the_pipe_and_waiting_costs_nothing():
    warden = Warden.start()
    pid = warden._process.pid
    wait_for(lambda: at_rest(pid), "the warden has come to rest")
    used = scheduled(pid)
    member = subprocess.Popen(["sleep", "600"], start_new_session=True, close_fds=False)
    try:
        time.sleep(0.3)
        assert scheduled(pid) == used  # it was not on a processor even once
        assert os.getsid(pid) == pid
        warden.release()  # returns although an unguarded member lives, which inherited whatever could be inherited
        assert member.poll() is None
    finally:
        member.kill()
        member.wait()


def test_a_dead_warden_is_noticed():
    warden = Warden.start()
    warden._process.kill()
    warden._process.wait()
    with pytest.raises(CastmatesError, match="the warden has ended"):
        warden.guard_path(Path("anything"))
    with pytest.raises(CastmatesError, match="the warden has ended"):
        warden.check()
    warden.release()


def guarding(folder: Path) -> tuple[Warden, "subprocess.Popen[bytes]", Path]:
    """A warden that guards a sleeper and a folder."""
    warden, left = Warden.start(), folder / "left"
    left.mkdir()
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    warden.guard_process(sleeper.pid)
    warden.guard_path(left)
    os.kill(warden._process.pid, signal.SIGSTOP)
    return warden, sleeper, left


@pytest.mark.parametrize("looked", [False, True])
def test_a_stopped_warden_goes_on(tmp_path, looked):
    warden, sleeper, left = guarding(tmp_path)
    if looked:
        warden.check()
        wait_for(lambda: not is_stopped(warden._process.pid), "the warden goes on")
    warden.release()
    assert sleeper.wait(10) == -signal.SIGKILL
    assert not left.exists()
    assert not alive(warden._process.pid)


def test_one_that_stays_stopped_is_done_without(tmp_path, monkeypatch):
    monkeypatch.setattr("castmates.runner.cleanup.warden.LONGEST_S", 0.5)
    warden, sleeper, left = guarding(tmp_path)
    os.kill(warden._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(warden, "_continue", lambda: True)  # as where somebody stops it faster than we continue it
    with pytest.raises(NotCleanedUp, match="was stopped again and again"):
        warden.release()
    assert sleeper.wait(10) == -signal.SIGKILL
    assert not left.exists()
    assert not alive(warden._process.pid)


def test_no_signal_goes_to_what_is_no_process():
    program = (
        "import signal; from castmates.linux.processes import send;send([0, -1 << 22], signal.SIGTERM); print('alive')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, start_new_session=True, timeout=60
    )
    assert done.stdout == b"alive\n"


def test_a_reused_number_is_spared():
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    clean_up([("process", [stranger.pid, read_process(stranger.pid).born - 1])])
    assert stranger.poll() is None
    clean_up([("process", [stranger.pid, read_process(stranger.pid).born])])
    assert stranger.wait() == -signal.SIGKILL


def test_a_failing_item_does_not_save_the_others(tmp_path):
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (tmp_path / "group").mkdir()
    clean_up([("cgroup", str(tmp_path / "group")), ("process", [sleeper.pid, read_process(sleeper.pid).born])])
    assert sleeper.wait() == -signal.SIGKILL


def test_a_frozen_group_is_swept():
    home = cgroups.find_home()
    if home is None:
        lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    freezer = CgroupFreezer(home, "test")
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    freezer.adopt("member", sleeper.pid)
    freezer.freeze("member")
    clean_up([("process", [sleeper.pid, read_process(sleeper.pid).born]), ("cgroup", str(freezer.groups()[0]))])
    assert sleeper.wait() == -signal.SIGKILL
    assert not freezer.groups()[0].exists()
