"""Files that appear whole or not at all, and the folder for what can be made again."""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from castmates.errors import CastmatesError


def cache_folder() -> Path:
    """Where what can be made again is kept: $CASTMATES_CACHE, or .cache in the project."""
    if chosen := os.environ.get("CASTMATES_CACHE"):
        return Path(chosen)
    folder = Path(".cache")
    _refuse_planted(folder)
    return folder


def memory_folder() -> str | None:
    """Where small files that live for a moment belong, if this machine has a place: no disk stalls who writes them."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _refuse_planted(folder: Path) -> None:
    """Refuse a cache that another user has put into a folder such as /tmp, which is not theirs: we run its programs."""
    try:
        whose, above = folder.lstat().st_uid, folder.absolute().parent.stat().st_uid
    except OSError:  # there is none yet
        return
    if whose not in (0, os.geteuid(), above):
        raise CastmatesError(
            f"{folder.absolute()} belongs to another user (uid {whose}), and the programs in it would be run; work in "
            "a folder of your own, or set CASTMATES_CACHE to one."
        )


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in its place."""
    make_folder(path.parent)
    # Two nodes of a cluster may have processes of the same number.
    temporary = path.with_name(f".{path.name}.{os.getpid()}@{platform.node()}")
    try:
        _take_name(temporary)
        write(temporary)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())  # or a power cut leaves an empty file under the final name
        temporary.replace(path)
    finally:
        with suppress(OSError):  # on a file system that is read-only even where there is no such file
            temporary.unlink(missing_ok=True)


def _take_name(path: Path) -> None:
    """Make the file ourselves: where everybody may make files, a link of this name would have us write elsewhere."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))


def replace_text(path: Path, text: str) -> None:
    """Write a text file that appears whole or not at all."""
    replace(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write to `path` what a user asked for into a sentence."""
    try:
        yield
    except OSError as problem:
        raise CastmatesError(
            f"{path} cannot be written ({reason(problem)}): make room or give write access there, and run the same "
            "command again."
        ) from None


def size_of(place: Path) -> int:
    """How many bytes a file has, or all files of a folder together."""
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file())


def reason(problem: OSError) -> str:
    """Why the system refused; pyarrow's errors have a number, and words around it."""
    return os.strerror(problem.errno) if problem.errno else str(problem).partition("\n")[0]


def make_folder(path: Path) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CastmatesError(
            f"{path} cannot be made ({problem.strerror}): make room or give write access there, and run the same "
            "command again."
        ) from None


def refuse_foreign(folder: Path, mark: str, is_ours: Callable[[str], bool], command: str) -> None:
    """Refuse a folder with files in it where `mark`, a file that this command writes, is not there or not its own."""
    if folder.exists() and not folder.is_dir():
        raise CastmatesError(f"{folder} is a file; give --output the name of a folder.")
    try:
        names = sorted(file.name for file in folder.glob("[!.]*"))  # what is hidden, such as .git, is not our work
        ours = not names or is_ours((folder / mark).read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        ours = False
    except OSError as problem:
        raise CastmatesError(f"{folder} cannot be read ({problem.strerror}); give another --output.") from None
    if not ours:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise CastmatesError(
            f"{folder} holds files ({', '.join(names[:3])}{more}), and no {mark} that `{command}` wrote; give --output "
            "the name of a new or an empty folder."
        )
