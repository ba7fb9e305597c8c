"""Who did something: a process that can be distinguished from every other, also after its death and after a restart."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from castmates.linux.kernel_files import read_pairs, read_text

INITIAL_PID_SPACE = 0xEFFFFFFC  # inode of the host's PID namespace, a constant of the kernel


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, for ever: numbers are reused, but not with the same start time in the same boot."""

    pid: int
    born: int  # ticks since boot
    boot: str
    space: int  # PID namespace, in which alone the number means something


def is_in_container() -> bool:
    """Check whether this process is in a PID namespace below the host's."""
    return _space("self") != INITIAL_PID_SPACE


def boot_id() -> str:
    """Name this run of the kernel."""
    return read_text(Path("/proc/sys/kernel/random/boot_id")) or ""


def myself() -> Owner:
    """Name this process."""
    return Owner(os.getpid(), born_of(os.getpid()) or 0, boot_id(), _space("self"))


def age() -> float:
    """How many seconds ago this process was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - (born_of(os.getpid()) or 0) / os.sysconf("SC_CLK_TCK")


def is_gone(owner: Owner) -> bool:
    """Check whether the process has ended; where that cannot be known (another container's), it has not."""
    if owner.boot != boot_id():
        return True
    if owner.space != _space("self"):
        return _is_empty(owner.space)
    return born_of(owner.pid) != owner.born


def born_of(pid: int) -> int | None:
    """Return the start time of a process that lives; a zombie does not."""
    fields = (read_text(Path(f"/proc/{pid}/stat")) or "").rpartition(")")[2].split()
    return int(fields[19]) if fields and fields[0] not in "ZX" else None


def _space(process: str) -> int:
    return Path(f"/proc/{process}/ns/pid").stat().st_ino


def _is_empty(space: int) -> bool:
    """Check whether a PID namespace has no processes; only the host's own sees all others."""
    if is_in_container():
        return False
    for process in Path("/proc").glob("[0-9]*"):
        numbers = read_pairs(process / "status").get("NSpid", "")  # one in each namespace it is in
        try:
            if len(numbers.split()) > 1 and _space(process.name) == space:
                return False
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:  # it may not be looked at, so it may be there
            return False
    return True


# Names of what we make: each names its maker, so that what the dead have left is known from what is in use.

_MAKER = r"(\d+)-(\d+)-(\d+)"  # its number, its start and the PID namespace in which they mean something
_FOLDER = re.compile(rf"castmates-{_MAKER}-.+")
_GROUP = re.compile(rf"castmates\..+\.{_MAKER}\.\d+")
_RESCTRL_GROUP = re.compile(rf"castmates\.{_MAKER}\.\d+")
_DELEGATED = re.compile(r"castmates-(\d+)-(\d+)")  # made by root for a user, and never removed by a launch


def folder_prefix() -> str:
    """Begin the name of a scratch folder."""
    return f"castmates-{_me()}-"


def group_name(hint: str) -> str:
    """Name a control group; no two are named alike."""
    return f"castmates.{hint}.{_me()}.{time.monotonic_ns()}".replace("/", "-")


def resctrl_group_name(number: int) -> str:
    """Name a group of resctrl that this process makes."""
    return f"castmates.{_me()}.{number}"


def delegated_group_name(uid: int, number: int) -> str:
    """Name a group of resctrl that root makes for a user."""
    return f"castmates-{uid}-{number}"


def maker_of_folder(name: str) -> Owner | None:
    """Read who made a scratch folder of this name; None where it is no such name."""
    return _owner(_FOLDER.fullmatch(name))


def maker_of_group(name: str) -> Owner | None:
    """Read who made a control group of this name; None where it is no such name."""
    return _owner(_GROUP.fullmatch(name))


def maker_of_resctrl_group(name: str) -> Owner | None:
    """Read who made a group of resctrl of this name; None where it is no such name."""
    return _owner(_RESCTRL_GROUP.fullmatch(name))


def delegated_to(name: str) -> int | None:
    """Read to which user a group of resctrl of this name was given; None where it is no such name."""
    match = _DELEGATED.fullmatch(name)
    return int(match[1]) if match else None


def delegated_number(name: str) -> int:
    """Read the number of a group that was given to a user; -1 where it is no such name."""
    match = _DELEGATED.fullmatch(name)
    return int(match[2]) if match else -1


def _me() -> str:
    me = myself()
    return f"{me.pid}-{me.born}-{me.space}"


def _owner(name: re.Match[str] | None) -> Owner | None:
    if name is None:
        return None
    pid, born, space = map(int, name.groups())
    return Owner(pid, born, boot_id(), space)  # after a restart no process has the same number and start
