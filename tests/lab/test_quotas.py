"""CPU quotas under version 2 of the control groups, as systemd leaves them: the runner is in a group beside others.

The machines of CI have version 1's controller, so that this is proved here.
"""

import json
import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.grant import group_rights
from castmates.grant.perf import Grantee, Granting, record, take_back
from castmates.linux import cgroups, cpu_quota
from castmates.linux.marks import in_child
from castmates.runner.cleanup.restore import heal
from castmates.runner.processes import quotas
from castmates.runner.processes.freezer import choose_freezer
from castmates.study.spec import Share
from tests.waiting import wait_for

NOBODY = Grantee("nobody", 65534, 65534)
TOP = Path("/sys/fs/cgroup")
SLICE = TOP / "user.slice"
SESSION = SLICE / "session.scope"
HALF = Share(member="beside@1", quota=50, period=10)

pytestmark = pytest.mark.machines("linux-6.1", "linux-6.12")


class Cohort:
    """As much of a cohort as quotas need."""

    lead = type("Lead", (), {"workload": "lead"})
    scenes = (type("Scene", (), {"shares": (HALF,)}),)
    members = (type("Member", (), {"name": "beside@1", "cpus": (1,)}),)


@pytest.fixture(autouse=True)
def session(state):
    """A session as a login has it: a group two levels down, in which a shell is, and to which nothing is handed down.

    Beside it lives another one.
    """
    SESSION.mkdir(parents=True)
    other = SLICE / "other.scope"
    other.mkdir()
    sleeper = subprocess.Popen(["sleep", "600"])
    cgroups.move(other, sleeper.pid)
    before = controllers()
    yield
    take_back()
    assert controllers() == before
    sleeper.kill()
    sleeper.wait()
    for group in (SESSION, other, SLICE):
        group.rmdir()


def controllers():
    return {str(file): file.read_text() for file in sorted(TOP.rglob("cgroup.subtree_control"))}


@contextmanager
def shell(do, uid=0):
    """A process in the session; when it is told to, it does something and answers."""
    (mine, theirs), (answers, answer) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if uid:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                os.environ["CASTMATES_STATE"] = "/tmp/nobodys"
            os.write(answer, b"!")
            os.read(mine, 1)
            os.write(answer, json.dumps(do()).encode())
        except BaseException as error:
            os.write(answer, json.dumps({"failed": str(error)}).encode())
        finally:
            os._exit(0)
    os.close(answer)  # so that an answer ends with who gives it
    try:
        os.read(answers, 1)
        cgroups.move(SESSION, pid)
        yield pid, lambda: (os.write(theirs, b"?"), json.loads(os.read(answers, 1 << 16)))[1]
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def hold_back(midway=None):
    """Bound a busy process as a launch does, and prove it."""
    why = cpu_quota.lacking()
    freezer = choose_freezer("lab", for_quotas=True)
    made = quotas.Quotas.none()
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=in_child())
    try:
        made = quotas.room_for(Cohort, next(iter(freezer.groups()), None), "a test")
        freezer.adopt("beside@1", busy.pid)
        made.take_in(Cohort, freezer.group_of, freezer.stragglers, lambda _: None)
        made.apply((HALF,))
        wait_for(lambda: made.throttling()["beside@1"].throttled > 3, "the kernel holds it back")
        if midway:
            midway()
        return {"lacking": why, "bound": made.read_back()["beside@1"]}
    except CastmatesError as problem:
        return {"lacking": why, "refused": str(problem)}
    finally:
        freezer.close()
        made.close()
        busy.kill()
        busy.wait()


def test_root_bounds_a_member_from_a_login_and_puts_the_controllers_back():
    before = controllers()
    with shell(hold_back) as (_, ask):
        assert ask() == {"lacking": "", "bound": "5000 10000"}
    assert controllers() == before


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_run_has_handed_down_is_taken_back():
    before = controllers()
    with shell(lambda: hold_back(die)) as (pid, ask):
        with pytest.raises(ValueError, match=r".*"):
            ask()
        os.waitpid(pid, 0)
        assert controllers() != before
        restored = heal()
    assert restored.left == []
    assert controllers() == before


def test_a_plain_user_hears_what_lacks_and_keeps_the_grant():
    with shell(hold_back, NOBODY.uid) as (_, ask):
        said = ask()
    assert said["lacking"] == f"this user may make no group in {SESSION}; let root run the sweep"
    assert "take the quotas out of the study" in said["refused"]
    with shell(hold_back, NOBODY.uid) as (pid, ask):
        giver = Granting(NOBODY, record(), print)
        group_rights.give_control_groups(giver, pid)
        assert not giver.refused
        said = ask()
    assert said["lacking"].startswith(f"the controller 'cpu' is not in {TOP}/cgroup.subtree_control, which this user")
    assert said["lacking"] in said["refused"]


def test_processes_in_the_group_keep_the_controller_from_a_user_to_whom_all_was_delegated():
    for folder in (TOP, SLICE):
        (folder / "cgroup.subtree_control").write_text("+cpu")
    try:
        for file in ("", *cgroups.DELEGATED[1:]):
            os.chown(SESSION / file, NOBODY.uid, NOBODY.gid)
        with shell(hold_back, NOBODY.uid) as (_, ask):
            said = ask()
    finally:
        for folder in (SLICE, TOP):
            (folder / "cgroup.subtree_control").write_text("-cpu")
    assert said["lacking"].startswith(f"the kernel hands no controller down in {SESSION}, because processes are in it")
    assert said["lacking"] in said["refused"]
