"""A plain user who was given a part of the control groups freezes, bounds and kills there, and nowhere else."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.grant import group_rights
from castmates.grant.perf import Grantee, Granting, granted, record, take_back
from castmates.linux import cgroups
from tests.needs import lacks

NOBODY = Grantee("nobody", 65534, 65534)

pytestmark = pytest.mark.needs("root")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path / "state"))


class Shell:
    """A process of the user's that answers what it can do with control groups, whenever it is asked."""

    def __init__(self) -> None:
        (self._ours, theirs), (answers, self._answer) = os.pipe(), os.pipe()
        self._asks, self._answers = theirs, answers
        self.pid = os.fork()  # everything is imported already: the user may not read where this is installed
        if self.pid == 0:
            self._serve()
        os.read(self._answers, 1)  # it is the user's only from here on

    def _serve(self) -> None:
        os.setgroups([])
        os.setgid(NOBODY.gid)
        os.setuid(NOBODY.uid)
        os.environ["TMPDIR"] = "/tmp"
        os.write(self._answer, b"!")
        while os.read(self._ours, 1):
            home, pids = cgroups.find_home(), cgroups.find_pids_home()
            os.write(self._answer, json.dumps([str(home or ""), str(pids or "")]).encode())
        os._exit(0)

    def homes(self) -> list[str]:
        os.write(self._asks, b"?")
        return json.loads(os.read(self._answers, 1 << 16))

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for fd in (self._ours, self._asks, self._answers, self._answer):
            os.close(fd)


@pytest.fixture
def shell():
    if cgroups.find_home() is None:
        lacks("cgroup", "there are no control groups of version 2 here that root may use")
    one = Shell()
    yield one
    take_back()
    one.end()


def group_of(pid):
    return cgroups.group_of(pid, cgroups.unified)


def test_a_user_freezes_bounds_and_kills_in_what_was_given_and_nowhere_before_or_after(shell):
    before = group_of(shell.pid)
    assert shell.homes()[0] == ""
    said = []
    giver = Granting(NOBODY, record(), said.append)
    group_rights.give_control_groups(giver, shell.pid)
    assert not giver.refused
    mine = before / "castmates-65534"
    assert group_of(shell.pid) == mine
    home, pids = shell.homes()
    assert home == str(mine)
    if cgroups.find_pids_home() is not None:
        assert pids.endswith("/castmates-65534")
    assert any(f"undo: rmdir {mine}" in line for line in said)

    again = Granting(NOBODY, record(), said.append)
    entries = len(granted())
    group_rights.give_control_groups(again, shell.pid)
    assert len(granted()) == entries

    assert {one.how for one in take_back()} == {"restored"}
    assert not mine.exists()
    assert group_of(shell.pid) == before
    assert shell.homes() == ["", ""]


def test_what_is_still_inside_when_it_is_taken_back_goes_up(shell):
    before = group_of(shell.pid)
    group_rights.give_control_groups(Granting(NOBODY, record(), print), shell.pid)
    inner = before / "castmates-65534" / "castmates.left"
    inner.mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        cgroups.move(inner, sleeper.pid)
        take_back()
        assert not inner.exists()
        assert group_of(sleeper.pid) == before
    finally:
        sleeper.kill()
        sleeper.wait()


def test_another_users_shell_is_refused():
    with pytest.raises(CastmatesError, match="this is not a process of nobody"):
        group_rights.give_control_groups(Granting(NOBODY, record(), print), os.getpid())


def test_without_a_shell_it_says_how_to_name_one():
    said = []
    group_rights.give_control_groups(Granting(NOBODY, record(), said.append), None)
    assert "--shell PID" in said[0]
    assert Path("/run/user/65534").exists() or "systemd" not in said[0]
