"""Names of our groups: each tells who made it, so that a killed run's are known from those in use."""

import re

from castmates.linux.owner import Owner, boot_id, myself

_OWN = re.compile(r"castmates\.(\d+)-(\d+)-(\d+)\.\d+")  # its maker's number, start and PID namespace
_DELEGATED = re.compile(r"castmates-(\d+)-(\d+)")  # made by root for a user, and never removed by a block


def own_name(number: int) -> str:
    """Name a group that this process makes."""
    me = myself()
    return f"castmates.{me.pid}-{me.born}-{me.space}.{number}"


def maker_of(name: str) -> Owner | None:
    """Read who made a group of this name; None where it is no such name."""
    named = _OWN.fullmatch(name)
    if named is None:
        return None
    pid, born, space = map(int, named.groups())
    return Owner(pid, born, boot_id(), space)


def delegated_to(name: str) -> int | None:
    """Read to which user a group of this name was given; None where it is no such name."""
    named = _DELEGATED.fullmatch(name)
    return int(named[1]) if named else None


def delegated_order(name: str) -> int:
    """Read the number of a group that was given to a user."""
    named = _DELEGATED.fullmatch(name)
    return int(named[2]) if named else -1
