"""Files that appear whole or not at all, that are read within bounds, and the folder for what can be made again."""

import hashlib
import json
import math
import os
import platform
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError

MOST_WRITTEN = 1 << 20  # bytes of a file that a user writes
MOST_KEPT = 1 << 28  # bytes of a file that Castmates writes
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
AGAIN = "remove it and run the same command again"
ODD = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Unreadable(ValueError):
    """Why a file cannot be read, in plain words."""


def regular(file: Path, most: int | None = None) -> BufferedReader:
    """Open a regular file: a pipe or a device may never end. FileNotFoundError where there is none."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    about, why_not = os.fstat(descriptor), ""
    if stat.S_ISDIR(about.st_mode):
        why_not = "it is a folder"
    elif not stat.S_ISREG(about.st_mode):
        why_not = "it is a pipe or a device"
    elif most is not None and about.st_size > most:
        why_not = f"it is larger than {most >> 20} MiB"
    if why_not:
        os.close(descriptor)
        raise Unreadable(why_not)
    return os.fdopen(descriptor, "rb")


def bytes_of(file: Path, most: int = MOST_KEPT) -> bytes:
    """The content of such a file."""
    with regular(file, most) as opened:
        return opened.read() or b""


def sha256_of(file: Path) -> str:
    """The digest of such a file."""
    with regular(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def written_text(file: Path, what: str) -> str:
    """What a user wrote, with a sentence where it cannot be read."""
    try:
        return _decoded(bytes_of(file, MOST_WRITTEN)).replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise CastmatesError(f"{file}: {what} is not there; give the path of a YAML file.") from None
    except (OSError, ValueError) as problem:
        raise CastmatesError(f"{file}: {what} cannot be read: {why(problem)}.") from None


def mapping_of(file: Path) -> dict[str, Any]:
    """The keys of a JSON file, with their values; FileNotFoundError, or Unreadable with the reason."""
    return mapping_in(bytes_of(file))


def mapping_if_there(file: Path) -> dict[str, Any]:
    """The same; nothing where the file is not there or cannot be used."""
    with suppress(OSError, ValueError):
        return mapping_of(file)
    return {}


def mapping_in(content: bytes) -> dict[str, Any]:
    """The same of a text in JSON."""
    try:
        found = json.loads(_decoded(content))
        if SURROGATE.search(content):
            json.dumps(found, ensure_ascii=False).encode()
    except ODD as problem:
        raise Unreadable(why(problem)) from None
    if not isinstance(found, dict):
        raise Unreadable("it holds no keys with values")
    return found


def as_json(value: Any) -> object:  # noqa: ANN401 (whatever is to be written)
    """Data as JSON has it; a number that is none is null."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [as_json(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


@contextmanager
def understanding(file: Path, what: str, remedy: str) -> Iterator[None]:
    """Turn what is wrong with a file that Castmates wrote into a sentence."""
    try:
        yield
    except ODD as problem:
        raise CastmatesError(f"{file}: this is not {what} ({why(problem)}); {remedy}.") from None


def why(problem: BaseException) -> str:
    """What is wrong with a file, without the words of Python."""
    match problem:
        case OSError():
            words = reason(problem)
            return words[:1].lower() + words[1:]
        case Unreadable():
            return str(problem)
        case json.JSONDecodeError():
            return f"line {problem.lineno}, column {problem.colno}: this is not valid JSON"
        case UnicodeError():
            return "it holds half of a character"
        case RecursionError():
            return "it is nested too deeply"
        case KeyError():
            return f"it has no '{problem.args[0]}'"
        case ValueError() if "integer string conversion" in str(problem):
            return "it holds a number with thousands of digits"
        case ValueError() if str(problem):
            return str(problem).partition("\n")[0]
    return "a value is of another kind"


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise Unreadable(f"line {line} is not UTF-8 text (byte {content[problem.start]:#04x})") from None


def cache_folder() -> Path:
    """Where what can be made again is kept: $CASTMATES_CACHE, or .cache in the project."""
    return Path(os.environ.get("CASTMATES_CACHE") or ".cache")


def memory_folder() -> str | None:
    """Where small files that live for a moment belong, if this machine has a place: no disk stalls who writes them."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


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
        with suppress(OSError):  # of a folder that we may not read, or a file system that knows no such thing
            sync_folder(path.parent)
    finally:
        with suppress(OSError):  # on a file system that is read-only even where there is no such file
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder onto the disk, or after a power cut an older file may stand beside newer ones."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def refuse_foreign(
    folder: Path, mark: str, is_ours: Callable[[str], bool], command: str, option: str = "--output"
) -> None:
    """Refuse a folder with files in it where `mark`, a file that this command writes, is not there or not its own."""
    if folder.exists() and not folder.is_dir():
        raise CastmatesError(f"{folder} is a file; give {option} the name of a folder.")
    try:
        names = sorted(file.name for file in folder.glob("[!.]*"))  # what is hidden, such as .git, is not our work
        ours = not names or is_ours((folder / mark).read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        ours = False
    except OSError as problem:
        raise CastmatesError(f"{folder} cannot be read ({problem.strerror}); give another {option}.") from None
    if not ours:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise CastmatesError(
            f"{folder} holds files ({', '.join(names[:3])}{more}), and no {mark} that `{command}` wrote; give {option} "
            "the name of a new or an empty folder."
        )
