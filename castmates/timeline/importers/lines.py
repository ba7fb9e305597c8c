"""Reads text in blocks of whole lines, of a file or of what a program prints, and takes lines apart by patterns."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.timeline.states import rows_of

AT_ONCE = 16 << 20  # bytes
LONGEST = 4 << 20  # of a line; what has none in so many bytes is no text
NS = 9  # digits of a second
Ints = npt.NDArray[np.int64]
Progress = Callable[[int], None]  # is given the number of bytes that were read


def no_progress(_: int) -> None:
    """Show nothing."""


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The beginning of a file."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as problem:
        raise CastmatesError(f"{path} cannot be read ({reason(problem)}).") from None


def blocks(path: Path, progress: Progress = no_progress) -> Iterator[pa.StringArray]:
    """Yield the lines of a file, some at a time, without their ends."""
    try:
        with path.open("rb") as file:
            yield from blocks_of(file, str(path), progress)
    except OSError as problem:
        raise CastmatesError(f"{path} cannot be read ({reason(problem)}).") from None


def blocks_of(file: IO[bytes], name: str, progress: Progress = no_progress) -> Iterator[pa.StringArray]:
    """Yield the lines of an open file likewise."""
    rest = b""
    while more := file.read(AT_ONCE):
        whole, newline, tail = more.rpartition(b"\n")
        if newline:
            yield _lines(rest + whole)
            rest = tail
        else:
            rest += more
        if len(rest) > LONGEST:
            raise CastmatesError(f"{name}: this is no text: a line is longer than {LONGEST >> 20} MB.")
        progress(len(more))
    if rest:
        yield _lines(rest)


def _lines(content: bytes) -> pa.StringArray:
    content = content.replace(b"\r\n", b"\n")
    try:
        text = pa.array([content], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:  # a name that is no UTF-8
        text = pa.array([content.decode("utf-8", "replace")])
    return pc.split_pattern(text, "\n").values


def taken_apart(lines: pa.StringArray, pattern: str) -> tuple[npt.NDArray[np.bool_], pa.StructArray]:
    """Which lines a pattern (of RE2) matches, and the groups of those."""
    found = pc.extract_regex(lines, pattern)
    matched = pc.is_valid(found)
    return matched.to_numpy(zero_copy_only=False), found.filter(matched)


def where(lines: pa.Array, rows: npt.NDArray[np.bool_]) -> Any:  # noqa: ANN401 (whichever array it was)
    """Those rows alone."""
    return lines.filter(pa.array(rows))


def codes(words: pa.Array) -> tuple[Ints, list[str]]:
    """Words as numbers, and the words that they stand for."""
    found = pc.dictionary_encode(words)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), found.dictionary.to_pylist()


def integers(words: pa.Array, nothing: int = -1, base: int = 10) -> Ints:
    """Whole numbers; `nothing` for an empty word."""
    if base == 10:
        empty = pc.equal(words, "")
        found: Ints = pc.if_else(empty, None, words).cast(pa.int64()).fill_null(nothing).to_numpy(zero_copy_only=False)
        return found
    numbers, known = codes(words)
    values = [int(word, base) if word else nothing for word in known]  # few different ones
    return np.array([_signed(value) for value in values], np.int64)[numbers]


def _signed(value: int) -> int:
    """A number of 64 bits as C's long."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def nanoseconds(seconds: pa.Array, fraction: pa.Array) -> Ints:
    """Times of whole seconds and their decimals, of which there may be any number up to nine."""
    digits = pc.utf8_length(fraction).to_numpy(zero_copy_only=False)
    if len(digits) and digits.max() > NS:
        raise ValueError("a time has more than nine decimals")
    power = 10 ** (NS - digits.astype(np.int64))
    found: Ints = integers(seconds, 0) * 10**NS + integers(fraction, 0) * power
    return found


class Words:
    """One numbering of words for all blocks of a file."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def take(self, words: pa.Array) -> Ints:
        """The numbers of a block's words."""
        numbers, known = codes(words)
        return np.array([self.number(word) for word in known], np.int64)[numbers] if known else numbers

    def number(self, word: str) -> int:
        """The number of a word."""
        return self._numbers.setdefault(word, len(self._numbers))

    def known(self) -> list[str]:
        """The words in the order of their numbers."""
        return list(self._numbers)


class Columns:
    """Columns that grow block by block."""

    def __init__(self, **kinds: Any) -> None:  # noqa: ANN401
        self._kinds = kinds
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in kinds}

    def add(self, **columns: Any) -> None:  # noqa: ANN401
        """Add rows; a single value holds for all of them."""
        rows = max(len(each) for each in columns.values() if np.ndim(each))
        for name, kind in self._kinds.items():
            value = columns[name]
            part = np.full(rows, value, kind) if np.ndim(value) == 0 else np.asarray(value).astype(kind)
            self._parts[name].append(part)

    def whole(self) -> Mapping[str, npt.NDArray[Any]]:
        """Each column in one piece; what it was made of is let go of."""
        return {name: self._whole(name, kind) for name, kind in self._kinds.items()}

    def table(self) -> npt.NDArray[Any]:
        """All columns as one table."""
        return rows_of(np.dtype(list(self._kinds.items()), align=True), **self.whole())

    def _whole(self, name: str, kind: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        parts = self._parts[name]
        found = np.concatenate(parts) if parts else np.empty(0, kind)
        parts.clear()
        return found


Read = TypeVar("Read")


def needed(name: str, path: Path) -> str:
    """Where a program is; without it, what it is needed for is a sentence."""
    found = shutil.which(name)
    if found is None:
        raise CastmatesError(f"{path}: reading this needs the program {name}: apt-get install {name}.")
    return found


def output_of(
    command: Sequence[str], path: Path, read: Callable[[IO[bytes]], object], understand: Callable[[str], Read]
) -> Read:
    """Give a program's output to a reader; return what is understood of its messages.

    A program that fails is a sentence with its last words.
    """
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL) as process:
            try:
                assert process.stdout is not None
                read(process.stdout)
                process.wait()
            except BaseException:
                process.kill()
                raise
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    if process.returncode:
        why = _why(said, process.returncode)
        raise CastmatesError(f"{path}: {Path(command[0]).name} cannot read this to its end ({why}).")
    return understand(said)


def _why(said: str, code: int) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " ".join(lines[-1].rstrip(".").split())[:200] if lines else f"it ended with {code}"
