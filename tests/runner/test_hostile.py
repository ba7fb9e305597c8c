"""Programs that misbehave, and machines that do: a launch ends in good time, gives the reason, leaves no process."""

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups, marks, owner
from castmates.linux.processes import read_table
from castmates.pipeline.measure_launch import measure_launch
from castmates.results.columns.launch import RECORD
from castmates.runner import record, staging
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes import member_log, restarts
from castmates.runner.processes.freezer import SignalFreezer
from castmates.runner.processes.member_log import GuardedReader
from castmates.study.model import Workload
from castmates.study.plan_text import plan_text
from castmates.study.spec import Plan
from castmates.workloads import environments, heartbeat
from castmates.workloads.heartbeat import HeartbeatError
from tests.builds import fill
from tests.needs import insist, lacks
from tests.runner.stage import PYTHON, counter, measured, plan_of
from tests.runner.test_launch import nobody_left, start_runner, wait_for_round
from tests.unit.simulated.test_record import TABLES, outcome_of
from tests.waiting import PATIENCE, wait_for

needs_two = pytest.mark.needs("two-cpus")
needs_root = pytest.mark.needs("root")

# Behaves until it has been measured for a moment, and then does the deed.
PROGRAM = """
import os, signal, sys, time
from castmates.workloads.heartbeat import Writer
path = os.environ["CASTMATES_HEARTBEAT"]
beat = Writer.from_environment()
def runner():
    # The parent of who keeps this program.
    return int(open(f"/proc/{{os.getppid()}}/stat").read().rpartition(")")[2].split()[1])
def work(steps):
    for _ in range(steps):
        sum(range(20000))
        beat.beat()
{before}
beat.ready()
work(20)
{deed}
work(10**9)
"""
# Forked twice, in its own session, without environment: only a file that grows shows that it lives.
STRAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    loop = 'while :; do echo >> "$0"; sleep 0.002; done'
    os.execve("/bin/sh", ["sh", "-c", loop, sys.argv[1]], {})
os.wait()
"""


def hostile(deed: str, before: str = "", *words: str) -> Workload:
    command = [PYTHON, "-c", PROGRAM.format(deed=deed, before=before), *words]
    return Workload.model_validate({"command": command, "progress": "heartbeat", "unit": "step"})


def plan_with(bad: Workload, cache: Path, **budget: object) -> Plan:
    return plan_of({"lead": counter(), "bad": bad}, ["bad"], cache, **({"rounds": 1, "spare_rounds": 0} | budget))


def measured_with(bad: Workload, cache: Path, folder: Path) -> dict:
    return measured(plan_with(bad, cache), folder, cache)


@needs_two
@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("open(path, 'wb').close()", "has spoilt its heartbeat file"),
        ("os.remove(path)", "has spoilt its heartbeat file"),
        ("os.remove(path); open(path, 'wb').write(bytes(100))", "has spoilt its heartbeat file"),
        ("open(path, 'r+b').write(b'x' * 4096)", "heartbeat file"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        ("os.kill(os.getpid(), 40)", "was killed by signal 40"),
        ("os.fork() and os._exit(0)", "ended by itself with status 0"),
    ],
    ids=[
        "cut",
        "removed",
        "replaced",
        "rubbish",
        "kills itself",
        "by a signal without a name",
        "goes into the background",
    ],
)
def test_a_deed_that_fails_the_launch_is_a_sentence(cache, tmp_path, mark, deed, said):
    record = measured_with(hostile(deed), cache, tmp_path)
    assert record["status"] == "failed"
    assert "bad@1" in record["reason"]
    assert said in record["reason"]
    assert "\n" not in record["reason"]
    assert pd.read_parquet(tmp_path / "windows.parquet").empty
    assert nobody_left(mark)


@needs_two
@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("os.sched_setaffinity(0, {0})", "off its CPUs: a thread of bad@1 may run on 0"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "no progress: bad@1 made none"),
    ],
    ids=["moves to another CPU", "stops itself"],
)
def test_a_deed_that_spoils_windows_is_in_the_ledger(cache, tmp_path, mark, deed, said):
    if "SIGSTOP" in deed and cgroups.find_home() is None:
        lacks("cgroup", "where there are no control groups, whoever thaws it also wakes it")
    record = measured_with(hostile(deed), cache, tmp_path)
    assert record["status"] == "measured"
    assert pd.read_parquet(tmp_path / "windows.parquet")["reasons"].str.contains(said, regex=False).any()
    assert record["rounds"] == 0
    assert nobody_left(mark)


@needs_two
def test_a_member_that_will_not_be_ended_is_killed(cache, tmp_path, mark):
    stubborn = hostile("", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    record = measured_with(stubborn, cache, tmp_path)
    assert record["status"] == "measured"
    assert len(record["without_verdict"]) == 1
    assert nobody_left(mark)


@needs_two
def test_a_member_that_kills_the_runner_leaves_nobody_and_the_next_launch_is_measured(cache, tmp_path, mark):
    deed = "if not os.path.exists(sys.argv[1]): open(sys.argv[1], 'w').close(); os.kill(runner(), signal.SIGKILL)"
    plan = plan_with(hostile(deed, "", str(tmp_path / "done")), cache)
    runner = start_runner(plan, cache, tmp_path)
    runner.communicate(timeout=400)
    assert runner.returncode == -signal.SIGKILL
    assert not (tmp_path / "out/launch.json").exists()
    assert nobody_left(mark)
    assert start_runner(plan, cache, tmp_path).wait(400) == 0
    assert json.loads((tmp_path / "out/launch.json").read_text())["status"] == "measured"


# Leaves everything by which a member is known: parent, session, environment, mark and control groups.
ESCAPE = """
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    import resource
    resource.setrlimit(10, (1, 1))
    for mount in open("/proc/mounts"):
        _, point, kind, *_ = mount.split()
        if kind.startswith("cgroup") and os.path.exists(point + "/cgroup.procs"):
            try:
                open(point + "/cgroup.procs", "w").write(str(os.getpid()))
            except OSError:
                pass
    loop = 'while :; do echo >> "$0"; sleep 0.002; done'
    os.execve("/bin/sh", ["sh", "-c", loop, sys.argv[1]], {})
os.wait()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


@needs_two
@needs_root
@pytest.mark.parametrize("freezer", ["cgroup", "signals"])
def test_a_member_cannot_leave_the_launch(cache, tmp_path, mark, monkeypatch, freezer):
    if freezer == "signals":
        monkeypatch.setattr(staging, "choose_freezer", lambda *_: SignalFreezer())
    alive = tmp_path / "alive"
    record = measured_with(hostile("", ESCAPE, str(alive)), cache, tmp_path / "out")
    before = alive.stat().st_size
    time.sleep(0.2)
    assert alive.stat().st_size == before > 0
    if freezer == "cgroup":
        assert record["status"] == "failed"
        assert re.search(r"processes that had left their member were killed: \d+ \(sh\)", record["reason"])
    else:  # without groups it has left nothing: who keeps the program adopts it
        assert record["status"] == "measured", record["reason"]
    assert nobody_left(mark)


def test_orphans_that_have_ended_are_waited_for_and_a_members_own_end_is_not_taken_from_it():
    """Nobody else waits for them, and they count as processes of their member as long as nobody does."""
    code = "import os\nif os.fork() == 0: os.setsid(), os.fork() or os._exit(3), os._exit(0)\nos.wait(), os._exit(7)"
    us, adoption = os.getpid(), marks.Adoption()
    before = {process.pid for process in read_table().values() if process.parent == us}
    member = subprocess.Popen([PYTHON, "-c", code], start_new_session=True, preexec_fn=marks.in_child())
    try:
        dead = lambda: {p.pid for p in read_table().values() if p.parent == us and p.state == "Z"} - before  # noqa: E731
        wait_for(lambda: len(dead()) == 2 and member.pid in dead(), "the member and its orphan have ended")
        adoption.reap([member.pid])
        assert dead() == {member.pid}
    finally:
        assert adoption.end([member.pid], 10) == []
    assert member.wait() == 7


@needs_two
def test_a_member_that_stops_the_warden_costs_nothing(cache, tmp_path, mark):
    stop = """
us = runner()
for child in open(f"/proc/{us}/task/{us}/children").read().split():
    if b"cleanup.outliving" in open(f"/proc/{child}/cmdline", "rb").read():
        os.kill(int(child), signal.SIGSTOP)
        open(sys.argv[1], "w").close()
"""
    record = measured_with(hostile(stop, "", str(tmp_path / "done")), cache, tmp_path / "out")
    assert (tmp_path / "done").exists()
    assert record["status"] == "measured"
    assert record["left_behind"] == []
    assert not pd.read_parquet(tmp_path / "out/windows.parquet").empty
    assert nobody_left(mark)


@needs_two
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_of_words_does_not_fill_the_disk(cache, tmp_path, mark, monkeypatch, stream):
    monkeypatch.setattr(member_log, "LIMIT", 2 << 20)
    flood = f"print('one', flush=True)\nfor n in range(10**9): sys.{stream}.write('on and on' * 9999); work(1)"
    record = measured_with(hostile(flood), cache, tmp_path)
    log = tmp_path / "logs" / "bad@1.log"
    assert record["status"] == "measured"
    assert log.stat().st_size <= member_log.LIMIT
    text = log.read_bytes()
    assert text.startswith(b"one")
    assert b"[castmates cut " in text


def test_a_log_is_cut_in_the_middle_while_its_writer_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(member_log, "LIMIT", 1000)
    monkeypatch.setattr(member_log, "KEPT", 100)
    log = tmp_path / "log"
    output = member_log.create(log)
    try:
        os.write(output, b"a" * 500)
        assert not member_log.cut(log)
        os.write(output, b"b" * 600 + b"\nlast\n")
        assert member_log.cut(log)
        os.write(output, b"and on\n")
    finally:
        os.close(output)
    text = log.read_bytes()
    assert len(text) < 300
    assert text.startswith(b"a" * 100 + b"\n[castmates cut 906 bytes out of this log here]\nb")
    assert text.endswith(b"b\nlast\nand on\n")
    assert member_log.last_lines(log, 2) == ["last", "and on"]


@needs_two
def test_a_fork_bomb_is_bounded_and_named(cache, tmp_path, mark, monkeypatch):
    if cgroups.find_pids_home() is None:
        insist("root")
        if "pids" not in Path("/sys/fs/cgroup/cgroup.controllers").read_text():
            pytest.skip("no pids controller")
    monkeypatch.setattr(restarts, "TASKS", 50)
    bomb = """
for _ in range(200):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        time.sleep(0.01)
"""
    record = measured_with(hostile(bomb), cache, tmp_path)
    assert record["status"] == "failed"
    assert "bad@1 wanted more than 50 processes and threads at a time, as a fork bomb does" in record["reason"]
    assert nobody_left(mark)


MOUNTS = """\
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_groups_of_both_versions_are_looked_for_where_we_are():
    ours = "8:pids:/jobs/7\n1:name=systemd:/elsewhere\n0::/user/me"
    pids, unified = Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup/unified")
    assert cgroups.pids_of_version_1(MOUNTS, ours) == [pids / "jobs/7", pids]
    assert cgroups.candidates(MOUNTS, ours) == [unified / "user/me", unified, pids / "jobs/7", pids]


def test_a_log_that_cannot_be_cut_is_let_be(tmp_path):
    assert not member_log.cut(tmp_path / "removed")


def test_records_that_go_backwards_are_refused(tmp_path):
    file = tmp_path / "beats"
    heartbeat.create(file)
    reader = GuardedReader(file, "bad@1")
    writer = heartbeat.Writer(file)
    writer.beat(5)
    writer.beat(5)
    assert len(reader.beats().records) == 2
    with file.open("r+b") as raw:
        raw.seek(64 + 16 + 8)
        raw.write(struct.pack("Q", 1))
    with pytest.raises(HeartbeatError, match=r"bad@1 has spoilt .* do not go forward"):
        reader.beats()


@pytest.fixture
def stray(tmp_path):
    """Start a program whose child is nobody's; gives its number and the file in which the child shows that it lives."""
    words = [PYTHON, "-c", STRAY + "time.sleep(600)", str(tmp_path / "alive")]
    process = subprocess.Popen(words, start_new_session=True, preexec_fn=marks.in_child())
    yield process, tmp_path / "alive"
    assert marks.MarkedFamily(process.pid).kill(10) == []
    process.wait()


@pytest.mark.parametrize("freezer", ["cgroup", "signals"])
@needs_two
def test_a_warden_that_dies_during_a_launch_leaves_no_child_of_nobody(cache, tmp_path, monkeypatch, freezer):
    if freezer == "signals":
        monkeypatch.setattr(staging, "choose_freezer", lambda *_: SignalFreezer())
    alive = tmp_path / "alive"
    words = [PYTHON, "-c", STRAY + "time.sleep(600)", str(alive)]
    lead = Workload.model_validate({"command": words, "progress": "heartbeat", "unit": "step"})
    plan = plan_of({"lead": lead, "beside": counter()}, ["beside"], cache)

    really_guard = Warden.guard_process

    def die_first(warden, pid):
        wait_for(alive.exists, "the child has started")
        warden._process.kill()
        warden._process.wait()
        really_guard(warden, pid)

    monkeypatch.setattr(Warden, "guard_process", die_first)
    with pytest.raises(CastmatesError, match="warden"):
        measure_launch(plan, plan.launches[0].path, tmp_path / "out", cache)
    before = alive.stat().st_size
    time.sleep(0.2)
    assert alive.stat().st_size == before


def test_without_control_groups_a_child_of_nobody_is_frozen_and_killed_too(stray):
    process, file = stray
    wait_for(file.exists, "the child has started")
    freezer = SignalFreezer()
    freezer.adopt("member", process.pid)
    for _ in range(3):
        freezer.freeze("member")
        before = file.stat().st_size
        time.sleep(0.05)
        assert file.stat().st_size == before
        freezer.thaw("member")
        wait_for(lambda before=before: file.stat().st_size > before, "the child goes on")
    process.kill()
    process.wait()
    assert freezer.stragglers("member")
    freezer.kill("member")
    before = file.stat().st_size
    time.sleep(0.05)
    assert file.stat().st_size == before


def test_a_kernel_without_cgroup_kill_kills_one_by_one(stray, monkeypatch):
    home = cgroups.find_home()
    if home is None:
        lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    process, file = stray
    wait_for(file.exists, "the child has started")
    group = cgroups.make(home, owner.group_name("test"))
    for each in marks.MarkedFamily(process.pid).living():
        with contextlib.suppress(ProcessLookupError):  # one that the stray has just waited for
            cgroups.move(group, each.pid)
    assert cgroups.freeze(group, True, 5)
    really_open = os.open

    def without_kill(path, *arguments, **keys):
        if Path(path).name == "cgroup.kill":
            raise FileNotFoundError(path)
        return really_open(path, *arguments, **keys)

    monkeypatch.setattr(os, "open", without_kill)
    assert cgroups.kill(group, 10)
    cgroups.remove(group)
    assert process.wait(10) == -signal.SIGKILL


@needs_two
@needs_root
@pytest.mark.needs("setpriv")
def test_as_a_plain_user_nobody_outlives_a_killed_runner_either(compiler):
    folder = Path(tempfile.mkdtemp())  # in the real /tmp: pytest's own folder is closed to others
    plain, cache, alive = 65534, fill(folder / "cache"), folder / "alive"
    try:
        kernel = environments.location("native", Path("envs"), cache) / "bin/compute"
        child_of_nobody = f"(env -i setsid sh -c 'while :; do echo >> {alive}; sleep 0.01; done' &)"
        workloads = {
            name: Workload.model_validate({"command": ["sh", "-c", words], "progress": "heartbeat", "unit": "step"})
            for name, words in (("lead", f"exec {kernel}"), ("bad", f"{child_of_nobody}; exec {kernel}"))
        }
        plan = plan_of(workloads, ["bad"], cache, rounds=1000)
        (folder / "plan.json").write_text(plan_text(plan))
        for path in (folder, *folder.rglob("*")):
            os.chown(path, plain, plain)
        read = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]  # to get at our interpreter
        drop = ["setpriv", f"--reuid={plain}", f"--regid={plain}", "--clear-groups", *read]
        words = [plan.launches[0].path, "--plan", "plan.json", "--output", "out/launch.json"]
        runner = subprocess.Popen(
            [*drop, sys.executable, Path("scripts/measure_launch.py").absolute(), *words],
            cwd=folder,
            env=os.environ | {"CASTMATES_CACHE": str(cache), "TMPDIR": str(folder), "HOME": str(folder)},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_round(runner)
        assert alive.exists()
        assert not list(Path("/sys/fs/cgroup").glob(f"*/castmates.*.{runner.pid}-*"))
        runner.kill()
        runner.communicate(timeout=PATIENCE)
        wait_for(lambda: not list(folder.glob("castmates-*")), "the scratch folder is gone")
        assert nobody_left(str(folder))
    finally:
        shutil.rmtree(folder)


@needs_root
def test_a_full_disk_and_one_that_nobody_may_write_are_sentences_and_the_same_launch_is_written_after(tmp_path):
    outcome, disk = outcome_of(0), tmp_path / "out"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    try:
        filler = disk / "filler"
        filler.write_bytes(bytes((2 << 20) - (28 << 10)))
        with pytest.raises(CastmatesError, match=r"cannot be written \(No space left on device\)"):
            record.write(outcome, disk)
        assert not (disk / RECORD).exists()
        filler.unlink()
        record.write(outcome, disk)
        whole = {file.name: file.read_bytes() for file in disk.iterdir()}
        assert whole.keys() == {RECORD, *TABLES}
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(CastmatesError, match=r"cannot be written \(Read-only file system\)"):
            record.write(outcome, disk)
        assert {file.name: file.read_bytes() for file in disk.iterdir()} == whole
    finally:
        subprocess.run(["umount", disk], check=True)
