"""The machine-wide lock: one measurement at a time, across users and checkouts."""

import errno
import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from castmates.english import printable
from castmates.errors import CastmatesError
from castmates.linux.host import flock_holder
from castmates.linux.owner import is_in_container
from castmates.linux.ownership import user_name
from castmates.linux.processes import held_by_root, name_of, user_of
from castmates.protocols import Say

NAME = "castmates.lock"
OF_ALL = 0o666
OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC

_held: set[int] = set()


def _forget_in_child() -> None:
    """Drop the lock's descriptor in a forked child, which would otherwise keep the lock beyond our death."""
    for fd in _held:
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def print_progress(message: str) -> None:
    """Print something for the user, without disturbing standard output."""
    print(message, file=sys.stderr, flush=True)


def lock_path() -> Path:
    """Return where the lock lies; were the choice to depend on who asks, two users would use two locks."""
    preferred = Path("/run/lock")
    try:
        everybody_writes = preferred.stat().st_mode & stat.S_IWOTH
    except OSError:
        everybody_writes = 0
    return (preferred if everybody_writes else Path("/tmp")) / NAME


class InUse(CastmatesError):
    """Another process holds the machine."""

    def __init__(self, fd: int, path: Path) -> None:
        holder = flock_holder(os.fstat(fd))
        self.by_root = is_in_container() if holder is None else held_by_root(holder, os.fstat(fd))
        super().__init__(f"This machine is in use by {_holder(fd)} (lock {path}); try again when that has ended.")


@contextmanager
def repair_lock(what: str, say: Say = print_progress, path: Path | None = None) -> Iterator[None]:
    """Hold the machine to put it right; root is held up by nobody but root.

    Everybody may hold the lock, for ever. What is put right tells living runs from dead ones without it, and the
    journal has a lock of its own; the lock only keeps a repair from disturbing what is measured.
    """
    with ExitStack() as exits:
        try:
            exits.enter_context(machine_lock(what, wait=False, path=path))
        except CastmatesError as problem:
            if os.geteuid() != 0 or (isinstance(problem, InUse) and problem.by_root):
                raise
            say(f"{str(problem).partition(';')[0]}; root goes on without the lock.")
        yield


@contextmanager
def machine_lock(what: str, wait: bool = True, say: Say = print_progress, path: Path | None = None) -> Iterator[None]:
    """Hold the machine for `what`; wait for another holder, or raise at once if `wait` is false.

    The kernel drops the lock when the last copy of our open file is closed, so it goes with us even after
    SIGKILL. A copy in a child would undo that: an antagonist that outlives a killed runner would hold the
    machine for ever. Therefore no child gets one, neither by exec (close-on-exec) nor by a mere fork.

    A waiter is ended by any signal whose handler raises (SIGINT's does) or whose default is to end us. Only
    processes that see the same directory exclude each other: a container needs it mounted from its host.
    """
    path = path or lock_path()
    fd = _acquire(path, wait, say)
    try:
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        holder = json.dumps({"pid": os.getpid(), "user": _user(os.getuid()), "what": what, "since": since})
        os.ftruncate(fd, 0)
        os.pwrite(fd, holder.encode() + b"\n", 0)
        yield
    finally:
        if fd in _held:  # not in a forked child that leaves our `with` block
            os.ftruncate(fd, 0)
            _close(fd)


def _acquire(path: Path, wait: bool, say: Say) -> int:
    is_reported = False
    while True:
        fd = _open_lock(path)
        _held.add(fd)
        try:
            if not _try_lock(fd, path):
                if not wait:
                    raise InUse(fd, path)
                if not is_reported:
                    say(f"Waiting for the machine: in use by {_holder(fd)} (lock {path}).")
                    is_reported = True
                fcntl.flock(fd, fcntl.LOCK_EX)
            if _is_still(fd, path):
                return fd
        except BaseException:
            _close(fd)
            raise
        _close(fd)  # a cleaner of temporary files removed it meanwhile: the lock is a new file now


def _close(fd: int) -> None:
    _held.discard(fd)
    os.close(fd)


def _open_lock(path: Path) -> int:
    """Open a lock file, making it where it is missing, for every user."""
    denied: OSError | None = None
    for _ in range(20):
        try:
            # Not with O_CREAT: fs.protected_regular forbids it for others' files in a sticky directory.
            return _checked(os.open(path, OPEN), path)
        except FileNotFoundError:
            pass
        except PermissionError as error:
            denied = error  # perhaps made a moment ago by someone who has not yet opened it to all
            time.sleep(0.02)
            continue
        except OSError as error:
            raise _unusable(path, error) from error
        try:
            fd = os.open(path, OPEN | os.O_CREAT | os.O_EXCL, OF_ALL)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unusable(path, error) from error
        os.fchmod(fd, OF_ALL)  # the umask has taken bits away
        return fd
    raise _unusable(path, denied or FileNotFoundError(errno.ENOENT, "it vanishes as often as it is made"))


def open_own_lock(path: Path) -> int:
    """Open a lock that no other user may open: whoever may read a file may lock it, and would hold root up."""
    return os.open(path, OPEN | os.O_CREAT, 0o600)


def _checked(fd: int, path: Path) -> int:
    """Refuse what someone may have laid there so that we overwrite it."""
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        if os.geteuid() == 0 and status.st_mode & OF_ALL != OF_ALL:
            os.fchmod(fd, OF_ALL)  # somebody has closed it to others
        return fd
    os.close(fd)
    raise CastmatesError(f"{path} is not a plain file with one name; remove it, since it must be the lock.")


def _unusable(path: Path, error: OSError) -> CastmatesError:
    with suppress(OSError):
        if (mode := (status := path.lstat()).st_mode) & OF_ALL != OF_ALL and stat.S_ISREG(mode):
            return CastmatesError(
                f"The machine's lock {path} belongs to {_user(status.st_uid)}, who has closed it to others (mode "
                f"{stat.S_IMODE(mode):o}); that user must run `chmod 0666 {path}`, or root `castmates doctor "
                f"--restore`."
            )
    return CastmatesError(f"The machine's lock {path} cannot be used ({error.strerror}); root must remove it.")


def _try_lock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    return True


def _is_still(fd: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(fd))


def _user(uid: int | None) -> str:
    return "a user who is not shown" if uid is None else user_name(uid)


def _holder(fd: int) -> str:
    """Name who holds the lock as the kernel does; what for is what the file says, which anybody may write."""
    pid, said = flock_holder(os.fstat(fd)), _said(fd)
    if pid is None:
        claim = f" (as it says, process {said['pid']} of {said['user']}, for {said['what']})" if said else ""
        return f"a process that cannot be seen from here{claim}"
    if said.get("pid") != str(pid):
        return f"{_user(user_of(pid))} (process {pid}, {printable(name_of(pid) or 'which has ended')})"
    return f"{_user(user_of(pid))} for {said['what']} (process {pid}) since {said['since']}"


def _said(fd: int) -> dict[str, str]:
    for _ in range(5):
        try:
            holder = json.loads(os.pread(fd, 4096, 0))
            words = {key: str(holder[key]) for key in ("pid", "user", "what", "since")}
        except (ValueError, KeyError, TypeError):
            time.sleep(0.01)  # the holder has not written yet
            continue
        return {key: "".join(filter(str.isprintable, word))[:200] for key, word in words.items()}
    return {}
