"""Opens a published study: the folder or zip that `castmates paper` wrote, a folder of results, or a block inside."""

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from castmates.errors import CastmatesError
from castmates.results.columns.block import RECORD
from castmates.results.crate import DATA, METADATA, PLAN
from castmates.results.find import find
from castmates.results.folder import StudyFolder

LARGEST = 4 * 2**30  # bytes of a zip when it is unpacked
BLOCKS = "blocks"


@dataclass(frozen=True)
class Published:
    """Where a published study lies while it is read."""

    named: str  # as it was named
    root: Path
    block: str  # COMPANY/NUMBER, or COMPANY; "" for all of it
    digests: Mapping[str, str] | None  # SHA-256 by path in the crate; None of a folder of results

    @property
    def is_crate(self) -> bool:
        """Whether `castmates paper` wrote it."""
        return self.digests is not None

    @property
    def digest(self) -> str:
        """By which a replay knows what it measures again: that of the plan."""
        return hashlib.sha256((self.root / PLAN).read_bytes()).hexdigest()

    def has(self, path: str) -> bool:
        """Whether this file is there."""
        return (self.root / path).is_file()

    def checked(self, path: str) -> Path:
        """A file of it; in a crate exactly as it was published."""
        file = self.root / path
        if self.digests is None:
            return file
        if path not in self.digests:
            raise CastmatesError(
                f"{self.named}: {METADATA} does not list {path}, which a replay needs; publish the study again with "
                "`castmates paper`."
            )
        try:
            with file.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as problem:
            raise CastmatesError(f"{self.named}: {path} cannot be read ({problem.strerror}).") from None
        if found != self.digests[path]:
            raise CastmatesError(
                f"{self.named}: {path} is not as it was published (its SHA-256 is {found[:12]}…, and {METADATA} has "
                f"{self.digests[path][:12]}…); take an unchanged copy."
            )
        return file


@contextmanager
def opened(named: Path) -> Iterator[Published]:
    """The published study that is named; a zip is unpacked for as long as it is read."""
    place = named.parent if named.name == RECORD else named
    if named.suffix in (".yaml", ".yml") and named.is_file():
        yield _published(named, find(named)[0].path, "")
        return
    for root in (place, *place.parents):
        if root.is_file():
            with _unpacked(root) as folder:
                yield _published(named, folder, _block(named, place.relative_to(root)))
            return
        if (root / PLAN).is_file():
            yield _published(named, root, _block(named, place.relative_to(root)))
            return
    what = "no published study" if named.exists() else "nothing"
    raise CastmatesError(
        f"{named}: there is {what} here; give a folder or zip that `castmates paper` wrote, a folder results/<study>, "
        "or blocks/<company>/<number> inside one of them."
    )


def _published(named: Path, root: Path, block: str) -> Published:
    metadata = root / METADATA
    digests = _digests(metadata, named) if metadata.is_file() else None
    company = block.partition("/")[0]
    if block and not (root / BLOCKS / block).is_dir():
        known = sorted(each.name for each in (root / BLOCKS).glob("*") if each.is_dir())
        there = ", ".join(known[:12]) or "none"
        raise CastmatesError(f"{named}: there is no block '{block}' (companies: {there}).")
    if digests is None and not StudyFolder(root).record_files(company or "*"):
        raise CastmatesError(f"{named}: {root} has no launch that was measured; there is nothing to replay.")
    return Published(str(named), root, block, digests)


def _block(named: Path, inside: Path) -> str:
    """COMPANY/NUMBER of a path inside a study; "" for the study itself."""
    parts = inside.parts
    if not parts:
        return ""
    if parts[0] != BLOCKS or not 2 <= len(parts) <= 3:
        raise CastmatesError(
            f"{named}: this lies inside a study and is no block; give the study itself, or {BLOCKS}/<company>/<number> "
            "inside it."
        )
    return "/".join(parts[1:])


def _digests(metadata: Path, named: Path) -> dict[str, str]:
    """The digest of every file that the crate lists."""
    try:
        graph = json.loads(metadata.read_text(encoding="utf-8"))["@graph"]
        files = {unquote(each["@id"]): each["sha256"] for each in graph if "sha256" in each}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise CastmatesError(f"{named}: {METADATA} is no RO-Crate ({type(problem).__name__}).") from None
    if PLAN not in files or f"{DATA}/windows.parquet" not in files:
        raise CastmatesError(
            f"{named}: this crate has no {PLAN} with {DATA}/windows.parquet, so `castmates paper` did not write it, or "
            "did not finish."
        )
    return files


@contextmanager
def _unpacked(file: Path) -> Iterator[Path]:
    """The folder of the crate inside a zip."""
    with tempfile.TemporaryDirectory(prefix="castmates-replay-") as folder:
        try:
            with zipfile.ZipFile(file) as archive:
                top = _top(archive, file)
                for entry in archive.infolist():
                    _extract(archive, entry, top, Path(folder), file)
        except zipfile.BadZipFile:
            raise CastmatesError(
                f"{file}: this is no zip; give a folder or zip that `castmates paper` wrote, or a folder "
                "results/<study>."
            ) from None
        yield Path(folder)


def _top(archive: zipfile.ZipFile, file: Path) -> PurePosixPath:
    """The folder of the crate: where its description lies highest."""
    places = [PurePosixPath(name).parent for name in archive.namelist() if PurePosixPath(name).name == METADATA]
    if not places:
        raise CastmatesError(f"{file}: there is no {METADATA} in this zip, so it holds no folder of `castmates paper`.")
    if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
        raise CastmatesError(f"{file}: it would take more than {LARGEST >> 30} GiB unpacked; unpack it yourself.")
    return min(places, key=lambda place: len(place.parts))


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, top: PurePosixPath, folder: Path, file: Path) -> None:
    path = PurePosixPath(entry.filename)
    if path.is_absolute() or ".." in path.parts:
        raise CastmatesError(f"{file}: it has the file {entry.filename!r}, which would lie elsewhere; do not use it.")
    if entry.is_dir() or not path.is_relative_to(top):
        return
    target = folder / path.relative_to(top)
    with suppress(FileExistsError):
        target.parent.mkdir(parents=True)
    with archive.open(entry) as source, target.open("wb") as opened_target:
        shutil.copyfileobj(source, opened_target)
