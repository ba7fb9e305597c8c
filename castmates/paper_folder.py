"""A folder that is written file by file, and told to an RO-Crate: what every file is, its size and its digest."""

import contextlib
import hashlib
import json
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from castmates.files import refuse_foreign, replace, replace_text
from castmates.report.crate import Part

METADATA = "ro-crate-metadata.json"


@dataclass
class Folder:
    """What is written, file by file, with a sentence on each for the crate."""

    place: Path
    about: dict[str, str] = field(default_factory=dict)

    def text(self, path: str, content: str, about: str) -> None:
        """Write a text."""
        replace_text(self.place / path, content)
        self.about[path] = about

    def copy(self, source: Path, path: str, about: str) -> None:
        """Copy a file of the study."""
        target = self.place / path
        if not (target.exists() and target.samefile(source)):
            replace(target, partial(shutil.copyfile, source))
        self.about[path] = about

    def parts(self) -> list[Part]:
        """All files, as they lie there."""
        return [_part(self.place, path, said) for path, said in self.about.items()]

    def finish(self, crate: dict[str, Any]) -> None:
        """Write the crate last, and remove what the one before it listed and this one does not."""
        before = _listed(self.place / METADATA)
        replace_text(self.place / METADATA, json.dumps(crate, indent=2, ensure_ascii=False) + "\n")
        for path in before - {*self.about}:
            with contextlib.suppress(OSError):
                (self.place / path).unlink()


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no `castmates paper` wrote, such as somebody's own paper."""
    refuse_foreign(folder, METADATA, '"name": "Castmates"', "castmates paper")


def _part(place: Path, path: str, about: str) -> Part:
    file = place / path
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return Part(path, file.stat().st_size, digest, about)


def _listed(metadata: Path) -> set[str]:
    """The files inside the folder that a crate lists; none where there is no crate that can be read."""
    try:
        graph = json.loads(metadata.read_text(encoding="utf-8"))["@graph"]
        found = {unquote(one["@id"]) for one in graph if one.get("@type") == "File"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
    return {path for path in found if not path.startswith("/") and ".." not in Path(path).parts}
