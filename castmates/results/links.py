"""Refuses links in the folder of a study: Castmates makes none, and what is written through one lands elsewhere."""

import os
from collections.abc import Iterator
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder


def refuse_links(results: StudyFolder) -> None:
    """Raise an error that names a link inside the folder; the folder itself may be one."""
    if link := next(_links(results.path), None):
        raise CastmatesError(
            f"{link} is a link (to {link.readlink()}), which Castmates did not make, and through which it would read "
            "or write what does not belong to these results; remove it, or put what it leads to in its place."
        )


def _links(folder: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_symlink():
            yield Path(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            yield from _links(Path(entry.path))
