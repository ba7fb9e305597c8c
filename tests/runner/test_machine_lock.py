import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.machine.lock import lock_path, machine_lock, repair_lock
from tests.processes import as_user

HOLDER = """
import os, sys, subprocess, time
from pathlib import Path
from castmates.machine.lock import machine_lock
def say(text): print(text, flush=True)
with machine_lock(sys.argv[2], path=Path(sys.argv[1]), say=say):
    say("held")
    if "exec" in sys.argv: say(subprocess.Popen(["sleep", "60"], close_fds=False, stdout=2).pid)
    if "fork" in sys.argv:
        if os.fork() == 0: say(os.getpid()); time.sleep(60); os._exit(0)
    sys.stdin.read()
say("released")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "machine.lock"


@pytest.fixture
def start(path):
    """Start holders of the lock; what they print is read line by line."""
    started = []

    def start(what, *extra, prefix=()):
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", HOLDER, str(path), what, *extra],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                pipe.close()


def line(process):
    return process.stdout.readline().strip()


def test_a_second_process_waits_and_says_for_whom_once(start, path):
    first = start("study one")
    assert line(first) == "held"
    second = start("study two")
    told = line(second)
    assert "study one" in told
    assert f"process {first.pid}" in told
    assert f"since {json.loads(path.read_text())['since']}" in told
    first.stdin.close()
    assert line(first) == "released"
    assert line(second) == "held"
    assert json.loads(path.read_text())["pid"] == second.pid


def test_no_wait_is_refused_in_one_sentence(start, path):
    holder = start("study one")
    assert line(holder) == "held"
    with pytest.raises(CastmatesError, match=f"in use by .* for study one .*{holder.pid}"):
        machine_lock("mine", wait=False, path=path).__enter__()


@pytest.mark.parametrize("child", ["", "exec", "fork"])
def test_the_lock_dies_with_its_holder_though_children_live(start, path, child):
    holder = start("study", child)
    assert line(holder) == "held"
    orphan = int(line(holder)) if child else None
    try:
        holder.kill()
        holder.wait()
        if orphan:
            os.kill(orphan, 0)
        with machine_lock("next", wait=False, path=path):
            assert json.loads(path.read_text())["what"] == "next"
    finally:
        if orphan:
            os.kill(orphan, signal.SIGKILL)
    assert path.read_text() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_waiter_can_be_ended(start, path, number):
    holder = start("study one")
    assert line(holder) == "held"
    waiter = start("study two")
    assert "Waiting" in line(waiter)
    waiter.send_signal(number)
    assert waiter.wait(20) != 0
    assert line(waiter) == ""
    holder.stdin.close()
    assert line(holder) == "released"


def test_an_exception_inside_releases(path):
    with pytest.raises(ZeroDivisionError), machine_lock("a", path=path):
        _ = 1 / 0
    with machine_lock("b", wait=False, path=path):
        pass


def test_a_fork_that_leaves_the_launch_touches_nothing(path, tmp_path):
    other = tmp_path / "other"
    other.write_text("kept")
    child = None
    try:
        with machine_lock("parent", path=path):
            child = os.fork()
            if child == 0:
                os.open(other, os.O_RDWR)  # gets the number of the lock's descriptor, closed at the fork
                raise KeyboardInterrupt
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert json.loads(path.read_text())["what"] == "parent"
    finally:
        if child == 0:
            os._exit(0 if other.read_text() == "kept" else 1)


def test_a_file_removed_while_someone_waits_is_noticed(start, path):
    first = start("one")
    assert line(first) == "held"
    second = start("two")
    assert "Waiting" in line(second)
    path.unlink()
    first.stdin.close()
    assert line(second) == "held"
    assert json.loads(path.read_text())["pid"] == second.pid


def test_the_file_is_for_everybody_whatever_the_umask(path):
    before = os.umask(0o077)
    try:
        with machine_lock("a", path=path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
    finally:
        os.umask(before)


def test_a_link_in_its_place_is_refused_and_its_target_kept(path, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    path.symlink_to(precious)
    with pytest.raises(CastmatesError, match="cannot be used"):
        machine_lock("a", path=path).__enter__()
    path.unlink()
    path.hardlink_to(precious)
    with pytest.raises(CastmatesError, match="plain file"):
        machine_lock("a", path=path).__enter__()
    assert precious.read_text() == "keep me"


def test_what_a_stranger_wrote_is_shown_harmlessly_and_who_holds_it_comes_from_the_kernel(start, path):
    holder = start("study")
    assert line(holder) == "held"
    mine = pwd.getpwuid(os.getuid()).pw_name
    evil = {"pid": 1, "user": "\x1b[31mking", "what": "w" * 1000, "since": "now"}
    for content in (json.dumps(evil), json.dumps(evil | {"pid": holder.pid}), "[]", "\xff", "7"):
        path.write_text(content)
        with pytest.raises(CastmatesError) as caught:
            machine_lock("mine", wait=False, path=path).__enter__()
        assert "\x1b" not in str(caught.value)
        assert len(str(caught.value)) < 600
        assert "king" not in str(caught.value)
        assert re.search(rf"in use by {mine} .*process {holder.pid}\b", str(caught.value))


@pytest.mark.needs("root")
def test_users_share_the_lock_whoever_made_the_file():
    folder = Path(tempfile.mkdtemp())  # in the real /tmp: pytest's own folder is closed to others
    folder.chmod(0o1777)
    path = folder / "machine.lock"

    def take():
        with machine_lock("theirs", wait=False, path=path):
            return json.loads(path.read_text())["what"] == "theirs"

    def refused():
        with pytest.raises(CastmatesError, match="root for ours"):
            machine_lock("theirs", wait=False, path=path).__enter__()
        return True

    try:
        with machine_lock("ours", path=path):
            assert as_user(refused) is True
        assert as_user(take) is True
        path.unlink()
        assert as_user(take) is True
        assert path.stat().st_uid == 65534
        with machine_lock("ours", wait=False, path=path):
            assert as_user(refused) is True
    finally:
        shutil.rmtree(folder)


HOLD = """
import fcntl, json, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
fcntl.flock(fd, fcntl.LOCK_EX)
forged = {"pid": int(sys.argv[2]), "user": "root", "what": "kernel update, do not disturb", "since": "2026-01-01"}
os.pwrite(fd, json.dumps(forged).encode(), 0)
if "orphan" in sys.argv and os.fork():
    os._exit(0)  # the kernel goes on naming a process that has ended
if sys.argv[-1].startswith("/"):  # a program such as sudo, which waits for a password as root
    os.dup2(fd, 2)
    os.execv(sys.argv[-1], [sys.argv[-1]])
print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.fixture
def held(path):
    """The lock, held by another user who says that it is root, and does not let go."""
    started = []

    def hold(*words):
        started.append(subprocess.Popen([sys.executable, "-c", HOLD, path, *words], stdout=subprocess.PIPE, text=True))
        return int(line(started[-1]))

    yield hold
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def for_anybody(compiler):
    """A program like sudo: whoever starts it, it is root as long as it waits."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    source, program = folder / "program.c", folder / "program"
    source.write_text(
        "#include <stdio.h>\n#include <unistd.h>\n"
        'int main(void) { return setuid(0) || printf("%d\\n", getpid()) < 0 || fflush(stdout) || pause(); }\n'
    )
    subprocess.run([*compiler, str(source), "-o", str(program)], check=True)
    program.chmod(0o4755)
    yield str(program)
    shutil.rmtree(folder)


@pytest.mark.needs("root")
def test_a_program_that_users_may_start_as_root_does_not_hold_root_up(held, path, for_anybody):
    pid, said = held("1", for_anybody), []
    with repair_lock("castmates doctor --restore", said.append, path):
        pass
    assert f"in use by root (process {pid}, program)" in said[0]


@pytest.mark.needs("root")
@pytest.mark.parametrize("orphan", [[], ["orphan"]], ids=["living", "orphan"])
def test_root_repairs_whoever_holds_the_lock_unless_that_is_root(start, held, path, orphan):
    pid, said = held("1", *orphan), []
    try:
        with repair_lock("castmates doctor --restore", said.append, path):
            pass
        assert "root for kernel update" not in said[0]
        assert orphan or f"in use by nobody (process {pid}, " in said[0]
        with pytest.raises(CastmatesError, match="in use by"):
            machine_lock("a measurement of root's", wait=False, path=path).__enter__()
    finally:
        os.kill(pid, signal.SIGKILL)
    holder = start("root's own study")
    assert line(holder) == "held"
    with pytest.raises(CastmatesError, match="in use by root for root's own study"):
        repair_lock("castmates doctor --restore", said.append, path).__enter__()


@pytest.mark.needs("root")
def test_a_lock_that_its_owner_has_closed_is_a_sentence_and_root_opens_it_again():
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    path = folder / "machine.lock"

    def refused():
        with pytest.raises(CastmatesError) as caught:
            machine_lock("theirs", wait=False, path=path).__enter__()
        words = f"belongs to nobody, who has closed it to others (mode 600); that user must run `chmod 0666 {path}`"
        return words in str(caught.value) and "castmates doctor --restore" in str(caught.value)

    try:
        assert as_user(lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)) is None) is True
        assert as_user(refused, 54321) is True
        with repair_lock("castmates doctor --restore", print, path):
            pass
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        path.unlink()
        path.symlink_to("/etc/passwd")
        with repair_lock("castmates doctor --restore", print, path):
            pass
    finally:
        shutil.rmtree(folder)


def test_the_place_is_one_that_all_users_may_write():
    assert lock_path().parent.stat().st_mode & stat.S_IWOTH
