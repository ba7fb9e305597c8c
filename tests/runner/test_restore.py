"""Real knobs, groups and folders of killed processes are put right, and those of living ones left alone."""

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups, owner
from castmates.linux.kernel_files import read_setting, write_setting
from castmates.linux.owner import myself
from castmates.machine import knobs
from castmates.machine.journal import left_changed
from castmates.machine.lock import machine_lock
from castmates.machine.prepare import Preparing, prepared
from castmates.pipeline.measure_launch import measure_launch
from castmates.runner.cleanup.leftovers import stale_folders, stale_groups
from castmates.runner.cleanup.restore import heal
from castmates.study.model import Prepare
from tests.needs import lacks
from tests.runner.stage import counter, measured, plan_of
from tests.runner.test_warden import alive
from tests.waiting import PATIENCE, wait_for

FILE = Path("/proc/sys/kernel/numa_balancing")
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
KERNEL = pytest.mark.skipif(not FILE.exists(), reason="a kernel without NUMA balancing")


def needs_root(test):
    return pytest.mark.needs("root")(KERNEL(test))


# Prepares the machine as a launch does, with a warden or without, reports, and waits.
RUNNER = """
import sys, time
from castmates.machine.journal import Journal
from castmates.machine.prepare import Preparing, prepared
from castmates.runner.cleanup.warden import Warden
from castmates.study.model import Prepare
journal = Journal()
if "warden" in sys.argv:
    warden = Warden.start()
    warden.guard_journal(journal)
with prepared(Prepare(numa_balancing=sys.argv[1]), [], Preparing("a test", lambda text: None, journal)):
    print(warden._process.pid if "warden" in sys.argv else 0, flush=True)
    time.sleep(60)
"""

# Makes what a launch makes: a scratch folder, a group with a frozen member that knows the folder; and waits.
LEFT = """
import subprocess, tempfile, time
from castmates.runner.processes.freezer import choose_freezer
from castmates.linux.owner import folder_prefix
folder = tempfile.mkdtemp(prefix=folder_prefix(), dir="/dev/shm")
freezer = choose_freezer("lead.1")
member = subprocess.Popen(["sleep", "60"], start_new_session=True, env={"SCRATCH": folder})
freezer.adopt("member", member.pid)
freezer.freeze("member")
print(folder, member.pid, *freezer.groups(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Give this test its own journal."""
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def knob(state):
    """The real knob's value and another one; whatever happens, it is as it was afterwards."""
    before = read_setting(FILE)
    try:
        yield before, "off" if before != "0" else "on"
    finally:
        write_setting(FILE, before)


def start(*arguments):
    process = subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split()


def kill(process):
    process.kill()
    process.wait()
    process.stdout.close()


def restore():
    """Type the command, again while another test of another sweep holds the machine."""

    def typed():
        words = [sys.executable, "-m", "castmates", "doctor", "--restore"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
        return None if done.returncode and "in use by" in done.stderr else done

    return wait_for(typed, "the machine is free")


@needs_root
def test_a_knob_of_a_killed_process_is_put_back_by_the_command(knob):
    before, word = knob
    process, _ = start(RUNNER, word)
    try:
        assert read_setting(FILE) != before
        assert left_changed() == []
    finally:
        kill(process)
    assert read_setting(FILE) != before
    assert "numa_balancing (/proc/sys/kernel/numa_balancing) was set from" in left_changed()[0]
    done = restore()
    assert done.returncode == 0, done.stderr
    assert f"numa_balancing ({FILE}): put back to '{before}'" in done.stdout
    assert read_setting(FILE) == before
    assert heal().left == []


@needs_root
def test_the_warden_puts_back_what_its_killed_runner_set(knob):
    before, word = knob
    process, (warden,) = start(RUNNER, word, "warden")
    assert read_setting(FILE) != before
    kill(process)
    wait_for(lambda: not alive(int(warden)), "the warden has ended")
    assert read_setting(FILE) == before
    assert left_changed() == []


@needs_root
def test_a_knob_that_somebody_has_turned_since_is_theirs(knob):
    before, word = knob
    process, _ = start(RUNNER, word)
    kill(process)
    write_setting(FILE, before)
    assert [one for one in heal().sentences if "numa_balancing" in one] == [
        f"numa_balancing ({FILE}): is '{before}', as it was"
    ]


@needs_root
def test_what_cannot_be_put_back_is_an_error(knob, state):
    process, _ = start(RUNNER, knob[1])
    kill(process)
    journal = state / "journal"
    journal.write_text(journal.read_text().replace('"kind": "file"', '"kind": "strange"'))
    done = restore()
    assert done.returncode == 1
    assert "does not know what 'strange' is" in done.stderr
    assert journal.read_text()


def test_the_command_refuses_while_somebody_measures(state):
    with machine_lock("a long launch"):
        words = [sys.executable, "-m", "castmates", "doctor", "--restore"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "in use by" in done.stderr
    assert "for a long launch" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.needs("root")
def test_interrupts_are_really_moved_and_come_back(state):
    online = os.cpu_count() or 1
    before = {change.target: change.former for change in knobs.interrupts_away(Path("/"), [0])} if online > 1 else {}
    if not before:
        pytest.skip("needs a second CPU, and interrupts that may come to the first")
    with prepared(Prepare(irq_affinity="away"), [0], Preparing("a test", print)) as record:
        for target in record["irq_affinity"]["set"]:
            assert read_setting(Path(target)) != before[target]
        moved = len(record["irq_affinity"]["set"]) + len(record["irq_affinity"]["refused"])
        assert moved == len(before)
    assert {target: read_setting(Path(target)) for target in before} == before
    assert "lost" not in record["irq_affinity"]


@pytest.mark.needs("root")
def test_the_kernels_work_is_really_moved_and_comes_back(state):
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs a second CPU to which work can go")
    mask = Path("/") / knobs.WORKQUEUE_MASK
    if not mask.exists():
        pytest.skip("this kernel does not show where its unbound work may run")
    before = read_setting(mask)
    with prepared(Prepare(workqueues="away"), [0], Preparing("a test", print)) as record:
        assert int(read_setting(mask).replace(",", ""), 16) & 1 == 0
        assert record["workqueues"]["before"] == {str(mask): before}
    assert read_setting(mask) == before


HALF_WAY = """
import os, signal, sys
from castmates.machine.journal import KINDS, Kind
from castmates.machine.prepare import Preparing, prepared
from castmates.study.model import Prepare
left = int(sys.argv[1])
real = KINDS["file"]
def write(path, value):
    global left
    real.write(path, value)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
KINDS["file"] = Kind(real.read, write)
wish = Prepare.model_validate_json(sys.argv[2])
with prepared(wish, [0], Preparing("a test", lambda text: None)):
    print("held", flush=True)
    sys.stdin.read()
"""
OTHER_PAGES = {"always": "never", "madvise": "never", "never": "madvise"}


def settings():
    """Every knob of this machine that a launch may set, as it is now."""
    files = [Path("/", name) for name in (knobs.WORKQUEUE_MASK, PAGES, "proc/irq/default_smp_affinity")]
    files += [FILE, Path("/proc/sys/kernel/nmi_watchdog"), *Path("/proc/irq").glob("[0-9]*/smp_affinity_list")]
    return {str(file): read_setting(file) for file in files if file.exists()}


@pytest.mark.needs("root", "two-cpus")
@pytest.mark.parametrize("writes", [1, 2, 3, 5, 1000])
def test_knobs_of_a_run_that_was_killed_half_way_are_put_back(state, writes):
    """It sets each knob that this machine has, and is killed after so many writes, or when all are made."""
    before = settings()
    here = {
        "thp": OTHER_PAGES.get(before.get(f"/{PAGES}", "")),
        "numa_balancing": {"0": "on"}.get(before.get(str(FILE), ""), "off") if FILE.exists() else None,
        "workqueues": "away" if Path("/", knobs.WORKQUEUE_MASK).exists() else None,
        "irq_affinity": "away",
        "cpu_dma_latency": 17 if Path("/dev/cpu_dma_latency").exists() else None,
    }
    wish = json.dumps({name: word for name, word in here.items() if word})
    words = [sys.executable, "-c", HALF_WAY, str(writes), wish]
    run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        run.stdout.readline()  # "held", or nothing
        assert settings() != before
    finally:
        kill(run)
        run.stdin.close()
    done = restore()
    assert done.returncode == 0, done.stderr
    assert settings() == before
    assert left_changed() == []


HOLDING = """
import sys
from castmates.machine.knobs import held
from pathlib import Path
with held(Path("/"), 17):
    print("held", flush=True)
    sys.stdin.read()
"""


def wakes_within() -> int:
    """What is in force now, in microseconds."""
    return struct.unpack("=i", Path("/dev/cpu_dma_latency").read_bytes()[:4])[0]


@pytest.mark.needs("root")
def test_a_latency_that_a_killed_process_held_is_let_go_by_the_kernel():
    if not Path("/dev/cpu_dma_latency").exists():
        pytest.skip("this kernel has no /dev/cpu_dma_latency")
    before = wakes_within()
    holder = subprocess.Popen([sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert wakes_within() == min(17, before)
    finally:
        holder.kill()
        holder.wait()
    assert wakes_within() == before


def test_what_a_killed_run_left_is_removed_and_what_a_living_one_uses_is_not(state):
    living, (folder, member, *groups) = start(LEFT)
    dead, (dead_folder, dead_member, *dead_groups) = start(LEFT)
    try:
        kill(dead)
        assert {Path(dead_folder), *map(Path, dead_groups)} <= {*stale_folders(), *stale_groups()}
        told = "\n".join(heal().sentences)
        assert f"{dead_folder}: left by a killed run, removed" in told
        wait_for(lambda: not alive(int(dead_member)), "the frozen member has ended")
        assert not any(map(os.path.exists, [dead_folder, *dead_groups]))
        assert living.poll() is None
        assert alive(int(member))
        assert all(map(os.path.exists, [folder, *groups]))
    finally:
        kill(living)
        heal()
    assert not any(map(os.path.exists, [folder, *groups]))


def test_folders_of_others_and_of_other_names_are_left(state, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    gone = f"castmates-4194305-7-{myself().space}-x"
    (tmp_path / "castmates-notes").mkdir()
    (tmp_path / f"{gone}file").write_text("x")
    (tmp_path / f"{gone}link").symlink_to(tmp_path / "castmates-notes")
    (tmp_path / gone).mkdir()
    found = [folder for folder in stale_folders() if folder.parent == tmp_path]
    assert found == [tmp_path / gone]


def test_without_a_usable_temporary_folder_others_are_looked_through(monkeypatch):
    def none_usable():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none_usable)
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    list(stale_folders())


@pytest.fixture
def group():
    """Make a control group of some maker, with a sleeper in it."""
    home = cgroups.find_home()
    if home is None:
        lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    made = []

    def make(pid, born, space):
        path = cgroups.make(home, f"castmates.test.{pid}-{born}-{space}.{time.monotonic_ns()}")
        made.append((path, subprocess.Popen(["sleep", "60"])))
        cgroups.move(path, made[-1][1].pid)
        return made[-1]

    yield make
    for path, sleeper in made:
        sleeper.kill()
        sleeper.wait()
        if path.exists():
            assert cgroups.wait(path, "populated", False, 5)
            cgroups.remove(path)


def test_a_group_whose_makers_number_is_anothers_by_now_is_stale(group):
    me = myself()
    old, _ = group(me.pid, me.born - 1, me.space)
    ours, _ = group(me.pid, me.born, me.space)
    found = list(stale_groups())
    assert old in found
    assert ours not in found


# In a separate container: what is in groups of the one around it is none of its business.
INSIDE = """
import os, signal, sys
from pathlib import Path
from castmates.linux.owner import myself
from castmates.linux import cgroups
from castmates.runner.cleanup import leftovers
full, empty = map(Path, sys.argv[1:])
assert cgroups.processes(full) == [0], cgroups.processes(full)
assert not leftovers._may_remove(full)
assert not cgroups.kill(full, 0.1)
assert not {full, empty} & {*leftovers.stale_groups()}
"""


@pytest.mark.needs("root", "unshare")
def test_groups_of_another_container_are_left_alone(group):
    me = myself()
    full, sleeper = group(me.pid, me.born, me.space)
    empty = cgroups.make(full.parent, owner.group_name("test"))
    try:
        words = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", INSIDE, str(full), str(empty)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        if done.stderr.startswith("unshare: "):  # as in a chroot, whose root is no mount
            lacks("unshare", done.stderr.strip())
        assert done.returncode == 0, done.stderr
        assert sleeper.poll() is None
    finally:
        cgroups.remove(empty)


def test_no_launch_is_measured_beside_processes_of_a_killed_run(group, state, cache, tmp_path, monkeypatch):
    plan = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache, rounds=1)
    me = myself()
    monkeypatch.setattr("castmates.runner.cleanup.leftovers.cgroups.kill", lambda *_: False)  # it waits for a device
    old, sleeper = group(me.pid, me.born - 1, me.space)
    with pytest.raises(CastmatesError, match=rf"{old}, left by a killed run, still holds .*\({sleeper.pid}\)"):
        measure_launch(plan, plan.launches[0].path, tmp_path / "out", cache)
    assert not (tmp_path / "out/launch.json").exists()


@needs_root
@pytest.mark.needs("two-cpus")
def test_a_launch_is_measured_on_a_prepared_machine(knob, cache, tmp_path):
    before, word = knob
    plan = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache, rounds=1)
    wish = Prepare.model_validate({"numa_balancing": word})
    launch = plan.launches[0].model_copy(
        update={"design": plan.launches[0].design.model_copy(update={"prepare": wish})}
    )
    seen = []

    def look(message, *arguments, **keys):
        seen.append(read_setting(FILE))

    process, _ = start(RUNNER, word)  # a killed run has left it as wished: the launch must find the real former value
    kill(process)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "castmates.runner.staging.await_ready", _before(look, "castmates.runner.processes.barrier", "await_ready")
        )
        record = measured(plan.model_copy(update={"launches": (launch,)}), tmp_path / "out", cache)
    assert record["status"] == "measured"
    assert record["left_behind"] == []
    assert record["prepared"] == {
        "numa_balancing": {"before": {str(FILE): before}, "set": {str(FILE): "1" if word == "on" else "0"}}
    }
    assert seen == [record["prepared"]["numa_balancing"]["set"][str(FILE)]]
    assert read_setting(FILE) == before
    assert left_changed() == []


def _before(look, module, name):
    real = getattr(sys.modules[module], name)

    def both(*arguments, **keys):
        look(*arguments)
        return real(*arguments, **keys)

    return both
