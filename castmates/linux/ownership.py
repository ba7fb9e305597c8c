"""Who owns a file, as UID:GID, and who but us may change what stands in a folder that programs are run from."""

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from castmates.errors import CastmatesError

RUN = ("Snakefile", "workflow", "profiles", "workloads", "config", "studies", "envs")  # what a folder has us run
MADE = ("results", "logs", ".snakemake", ".cache")  # what we make in it, and read again
BESIDE_A_STUDY = "workloads"
RUN_WITH = ", and what stands there would be run with your rights"


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
    # Whoever runs this, root, and who has become root by sudo.
    by_sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    trusted = {0, os.geteuid(), *([int(by_sudo)] if by_sudo.isdecimal() else [])}
    places = [Path().absolute()]
    places += [place for name in RUN for place in _tree(Path(name), 2)]
    places += [place for name in MADE for place in _tree(Path(name), 1)]
    _refuse(places, trusted)
    if study is not None and study.is_file() and not study.parent.samefile(Path()):
        # Who names a study trusts whoever wrote it.
        _refuse(_tree(study.parent / BESIDE_A_STUDY, 1), trusted | {study.stat().st_uid})


def user_name(uid: int) -> str:
    """The name of a user; "uid N" where this machine has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _tree(top: Path, depth: int) -> Iterator[Path]:
    """A place and what stands in it, so many folders deep; a link and what it leads to."""
    if not os.path.lexists(top):
        return
    yield top
    if top.is_symlink() and top.exists():
        yield top.resolve()
    inside: list[Path] = []
    with suppress(OSError):  # it is no folder, has just been removed, or is not ours to read
        inside = sorted(top.iterdir()) if depth else []
    for each in inside:
        yield from _tree(each, depth - 1)


def _why(path: Path, trusted: set[int]) -> str:
    """Who else could have made or changed this, and what to do then; "" where nobody."""
    status = path.lstat()
    if status.st_uid not in trusted and not _came_from_elsewhere(path, status.st_uid, trusted):
        name = user_name(status.st_uid)
        return f"belongs to {name}{RUN_WITH}: run it as {name}, or by sudo from there, or in a copy of your own"
    if stat.S_ISLNK(status.st_mode):
        return ""
    who = "every user" if status.st_mode & stat.S_IWOTH else ""
    if not who and status.st_mode & stat.S_IWGRP:
        others = others_in(status.st_gid, frozenset(map(user_name, trusted)))
        who = f"{', '.join(others[:3])}{' and others' * (len(others) > 3)}"
    if not who:
        return ""
    close = f"make sure that nobody has changed it and run `chmod -R go-w {path}`, or "
    open_to_all = status.st_mode & stat.S_ISVTX  # as /tmp is meant to be
    return f"may be written by {who}{RUN_WITH}: {'' if open_to_all else close}work in a folder that you alone can write"


def _came_from_elsewhere(path: Path, uid: int, trusted: set[int]) -> bool:
    """Whether its owner is unknown on this machine, and it lies where only those who are trusted write.

    So is what was unpacked here, or mounted into a container.
    """
    place = path.absolute()
    return user_name(uid) == f"uid {uid}" and place != place.parent and not _why(place.parent, trusted)


def _refuse(places: Iterable[Path], trusted: set[int]) -> None:
    for place in places:
        with suppress(FileNotFoundError):  # another sweep in this folder has just removed it
            if why := _why(place, trusted):
                raise CastmatesError(f"{place} {why}.")


# Reads and sets who may do what with a file or folder, as octal digits.


def read_mode(path: Path) -> str:
    """Return the permissions, such as 755."""
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


def write_mode(path: Path, mode: str) -> None:
    """Set them."""
    path.chmod(int(mode, 8))
