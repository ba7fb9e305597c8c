"""Who owns a file, as UID:GID, and who but us may change what stands in a folder that programs are run from."""

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from castmates.errors import CastmatesError

RUN = ("Snakefile", "workflow", "profiles", "workloads", "config", "studies", "envs")  # what a folder has us run
MADE = ("results", "logs", ".snakemake", ".cache")  # what we make in it, and read again
BESIDE_A_STUDY = "workloads"


def read(path: Path) -> str:
    """Return user and group."""
    status = path.lstat()
    return f"{status.st_uid}:{status.st_gid}"


def write(path: Path, owner: str) -> None:
    """Give the file to a user and a group; what a link points to stays whose it is."""
    uid, gid = map(int, owner.split(":"))
    os.chown(path, uid, gid, follow_symlinks=False)


@cache  # a list of all users may come from another machine
def others_in(gid: int, names: frozenset[str]) -> list[str]:
    """Which other users have this group."""
    try:
        named = grp.getgrgid(gid).gr_mem
    except KeyError:
        named = []
    return sorted({*named, *(entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == gid)} - {*names})


def refuse_strangers(study: Path | None = None) -> None:
    """Refuse to run anything where another user could have put it: in this folder, or beside a study elsewhere."""
    trusted = _trusted()
    _refuse([Path().absolute()], trusted)
    for name in RUN:
        _refuse(_tree(Path(name), 2), trusted)
    for name in MADE:
        _refuse(_tree(Path(name), 1), trusted)
    if study is not None and study.is_file() and not study.parent.samefile(Path()):
        # Who names a study trusts whoever wrote it.
        _refuse(_tree(study.parent / BESIDE_A_STUDY, 1), trusted | {study.stat().st_uid})


def _trusted() -> set[int]:
    """Whoever runs this, root, and who has become root by sudo."""
    by_sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), *([int(by_sudo)] if by_sudo.isdecimal() else [])}


def _tree(top: Path, depth: int) -> Iterator[Path]:
    """A place and what stands in it, so many folders deep; a link and what it leads to."""
    if not os.path.lexists(top):
        return
    yield top
    if top.is_symlink() and top.exists():
        yield top.resolve()
    if depth and top.is_dir():
        for inside in sorted(top.iterdir()):
            yield from _tree(inside, depth - 1)


def _why(path: Path, trusted: set[int]) -> str:
    """Who else could have made or changed this; "" where nobody."""
    status = path.lstat()
    if status.st_uid not in trusted and not _came_from_elsewhere(path, trusted):
        return f"belongs to {_name(status.st_uid)}"
    if stat.S_ISLNK(status.st_mode):
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "may be written by every user"
    if status.st_mode & stat.S_IWGRP and (others := others_in(status.st_gid, frozenset(map(_name, trusted)))):
        return f"may be written by {', '.join(others[:3])}{' and others' * (len(others) > 3)}"
    return ""


def _came_from_elsewhere(path: Path, trusted: set[int]) -> bool:
    """Whether it has an owner whom this machine does not know, and lies where only those who are trusted write.

    So is what was unpacked here, or mounted into a container.
    """
    place = path.absolute()
    return _name(place.lstat().st_uid).startswith("uid ") and place != place.parent and not _why(place.parent, trusted)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _refuse(places: Iterable[Path], trusted: set[int]) -> None:
    for place in places:
        if why := _why(place, trusted):
            raise CastmatesError(
                f"{place} {why}, and what stands there would be run with your rights; work in a folder that you alone "
                "can write."
            )
