"""Reads and sets who owns a file, as UID:GID."""

import os
from pathlib import Path


def read(path: Path) -> str:
    """Return user and group."""
    status = path.lstat()
    return f"{status.st_uid}:{status.st_gid}"


def write(path: Path, owner: str) -> None:
    """Give the file to a user and a group; what a link points to stays whose it is."""
    uid, gid = map(int, owner.split(":"))
    os.chown(path, uid, gid, follow_symlinks=False)
