"""The machine-wide lock: one measurement at a time, across users and checkouts."""

import errno
import fcntl
import json
import os
import pwd
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.protocols import Say

NAME = "castmates.lock"
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
        _write_holder(fd, what)
        yield
    finally:
        if fd in _held:  # not in a forked child that leaves our `with` block
            os.ftruncate(fd, 0)
            _close(fd)


def _acquire(path: Path, wait: bool, say: Say) -> int:
    is_reported = False
    while True:
        fd = open_lock(path)
        _held.add(fd)
        try:
            if not _try_lock(fd, path):
                holder = _read_holder(fd)
                if not wait:
                    raise CastmatesError(
                        f"This machine is in use by {holder} (lock {path}); try again when that has ended."
                    )
                if not is_reported:
                    say(f"Waiting for the machine: in use by {holder} (lock {path}).")
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


def open_lock(path: Path) -> int:
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
            fd = os.open(path, OPEN | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unusable(path, error) from error
        os.fchmod(fd, 0o666)  # the umask has taken bits away
        return fd
    raise _unusable(path, denied or FileNotFoundError(errno.ENOENT, "it vanishes as often as it is made"))


def _checked(fd: int, path: Path) -> int:
    """Refuse what someone may have laid there so that we overwrite it."""
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return fd
    os.close(fd)
    raise CastmatesError(f"{path} is not a plain file with one name; remove it, since it must be the lock.")


def _unusable(path: Path, error: OSError) -> CastmatesError:
    return CastmatesError(
        f"The machine's lock {path} cannot be used ({error.strerror}); "
        f"its owner or root must remove it or run: chmod 0666 {path}"
    )


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


def _write_holder(fd: int, what: str) -> None:
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    holder = json.dumps({"pid": os.getpid(), "user": user, "what": what, "since": since})
    os.ftruncate(fd, 0)
    os.pwrite(fd, holder.encode() + b"\n", 0)


def _read_holder(fd: int) -> str:
    """Return who holds the lock; anybody may write the file, so its content is not trusted."""
    for _ in range(5):
        try:
            holder = json.loads(os.pread(fd, 4096, 0))
            words = {key: str(holder[key]) for key in ("pid", "user", "what", "since")}
        except (ValueError, KeyError, TypeError):
            time.sleep(0.01)  # the holder has not written yet
            continue
        clean = {key: "".join(filter(str.isprintable, word))[:200] for key, word in words.items()}
        return f"{clean['user']} for {clean['what']} (process {clean['pid']}) since {clean['since']}"
    return "a process that left no name"
