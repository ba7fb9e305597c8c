"""A folder that is written file by file, and listed in an RO-Crate: what every file is, its size and its digest."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote

from castmates.errors import CastmatesError
from castmates.files import refuse_foreign, replace, replace_text, writing
from castmates.report.paper.crate import ANALYSIS, Part
from castmates.results.published import METADATA

# What a paper's folder holds, beside the study file: nothing else is ever removed.
FOLDERS = ("launches", "confirm", "data", "figures", "replay", "rounds", "tables")
FILES = ("CITATION.cff", "castmates.bib", "machine.json", "methods.md", "methods.tex", "paper.tex", "plan.json")

Entities = Mapping[str, Mapping[str, Any]]  # a crate's, by their @id


@dataclass
class Folder:
    """What is written, file by file, with a sentence on each for the crate."""

    place: Path
    about: dict[str, str] = field(default_factory=dict)

    def text(self, path: str, content: str, about: str) -> None:
        """Write a text."""
        target = self._target(path)
        with writing(target):
            replace_text(target, content)
        self.about[path] = about

    def copy(self, source: Path, path: str, about: str) -> None:
        """Copy a file of the study."""
        target = self._target(path)
        if not (target.exists() and target.samefile(source)):
            with source.open("rb") as opened, writing(target):
                replace(target, lambda temporary: _pour(opened, temporary))
        self.about[path] = about

    def _target(self, path: str) -> Path:
        """Where a file of this name is written, which results may have brought along: never outside of the folder."""
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise CastmatesError(
                f"{path!r} would be written outside of {self.place}: these results were not written by Castmates, so "
                "do not use them."
            )
        return self.place / path

    def parts(self) -> list[Part]:
        """All files, as they lie there."""
        return [_part(self.place, path, about) for path, about in self.about.items()]

    def begin(self, crate: dict[str, Any]) -> None:
        """Mark a new folder as ours before anything lies in it: a run that is ended amid it can be repeated."""
        if not (self.place / METADATA).exists():
            self._write(crate)

    def finish(self, crate: dict[str, Any]) -> None:
        """Write the crate last, and remove what only the previous one lists as ours, where it is unchanged."""
        before = _written(self.place / METADATA)
        self._write(crate)
        for path in before.keys() - self.about.keys():
            with contextlib.suppress(OSError):
                if _digest(self.place / path) == before[path]:
                    (self.place / path).unlink()

    def _write(self, crate: dict[str, Any]) -> None:
        with writing(self.place / METADATA):
            replace_text(self.place / METADATA, json.dumps(crate, indent=2, ensure_ascii=False) + "\n")


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no `castmates paper` wrote, such as a paper of the user."""
    refuse_foreign(folder, METADATA, lambda text: bool(_analysis(_entities(text))), "castmates paper")


def _pour(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as opened:
        shutil.copyfileobj(source, opened)


def _part(place: Path, path: str, about: str) -> Part:
    file = place / path
    return Part(path, file.stat().st_size, _digest(file), about)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _entities(text: str) -> Entities:
    """What a crate describes; nothing where this is none."""
    try:
        return {entity["@id"]: entity for entity in json.loads(text)["@graph"]}
    except (ValueError, KeyError, TypeError):
        return {}


def _analysis(graph: Entities) -> Mapping[str, Any]:
    """The action by which a crate is ours: an analysis by Castmates; {} in any other crate."""
    action = graph.get(ANALYSIS, {})
    instrument = action.get("instrument")
    tool = instrument.get("@id") if isinstance(instrument, dict) else None
    ours = str(tool).startswith("#castmates-") and graph.get(str(tool), {}).get("name") == "Castmates"
    return action if ours else {}


def _written(metadata: Path) -> dict[str, str]:
    """The files that we wrote, from the crate, and their digests; none where there is no crate of ours."""
    try:
        graph = _entities(metadata.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    action = _analysis(graph)
    inputs = _references(action.get("object"))
    digests = {unquote(id): graph.get(id, {}).get("sha256") for id in (*inputs, *_references(action.get("result")))}
    studies = {unquote(id) for id in inputs if id.endswith(".yaml")}
    return {path: digest for path, digest in digests.items() if digest and _may_be_ours(path, studies)}


def _references(value: object) -> list[str]:
    """The @id of each that is referred to: of one, or of a list."""
    referred = value if isinstance(value, list) else [value]
    return [str(entity["@id"]) for entity in referred if isinstance(entity, dict) and "@id" in entity]


def _may_be_ours(path: str, studies: Container[str]) -> bool:
    """Whether we write files of this name: in our folders, or beside them."""
    first, *below = PurePosixPath(path).parts or ("",)
    if below:
        return first in FOLDERS and ".." not in below
    return first in FILES or first in studies
