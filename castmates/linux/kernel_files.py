"""Reads small kernel files below a root, where anything may be missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return the file's text without surrounding blanks, or None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """Return the file's decimal number, or None where there is none."""
    text = read_text(path)
    try:
        return int(text) if text else None
    except ValueError:
        return None


def read_pairs(path: Path) -> dict[str, str]:
    """Return the `key: value` lines of a file such as /proc/meminfo; of a repeated key the first counts."""
    pairs: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system, as this process sees it."""

    subtree: str  # what part of the file system is mounted ("/" for all of it)
    point: str
    fstype: str
    options: str  # the file system's own options


def mounts(root: Path) -> Iterator[Mount]:
    """Yield what is mounted, from /proc/self/mountinfo."""
    for line in (read_text(root / "proc/self/mountinfo") or "").splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if dash and len(left) >= 5 and len(right) >= 3:
            yield Mount(_unescape(left[3]), _unescape(left[4]), right[0], right[2])


def below(root: Path, absolute: str) -> Path:
    """Return where an absolute path lies below a recorded root."""
    return root / absolute.lstrip("/")


def _unescape(text: str) -> str:
    for octal, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(octal, char)
    return text
