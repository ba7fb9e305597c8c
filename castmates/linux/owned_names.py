"""Names of what a block makes: each tells who made it, so that what the dead have left is known from what is in use."""

import re
import time

from castmates.linux.owner import Owner, boot_id, myself

_MAKER = r"(\d+)-(\d+)-(\d+)"  # its number, its start and the PID namespace in which they mean something
_FOLDER = re.compile(rf"castmates-{_MAKER}-.+")
_GROUP = re.compile(rf"castmates\..+\.{_MAKER}\.\d+")


def folder_prefix() -> str:
    """Begin the name of a scratch folder."""
    return f"castmates-{_me()}-"


def group_name(hint: str) -> str:
    """Name a control group; no two are named alike."""
    return f"castmates.{hint}.{_me()}.{time.monotonic_ns()}".replace("/", "-")


def maker_of_folder(name: str) -> Owner | None:
    """Read who made a scratch folder of this name; None where it is no such name."""
    return _owner(_FOLDER.fullmatch(name))


def maker_of_group(name: str) -> Owner | None:
    """Read who made a control group of this name; None where it is no such name."""
    return _owner(_GROUP.fullmatch(name))


def _me() -> str:
    me = myself()
    return f"{me.pid}-{me.born}-{me.space}"


def _owner(named: re.Match[str] | None) -> Owner | None:
    if named is None:
        return None
    pid, born, space = map(int, named.groups())
    return Owner(pid, born, boot_id(), space)  # after a restart nobody has the same number and start
