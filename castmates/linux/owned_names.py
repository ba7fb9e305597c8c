"""Names of what we make: each names its maker, so that what the dead have left is known from what is in use."""

import re
import time

from castmates.linux.owner import Owner, boot_id, myself

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
