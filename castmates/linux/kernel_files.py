"""Reads and sets small kernel files, any of which may be missing; below a root, which may be a recorded tree."""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CPU_DIR = "sys/devices/system/cpu"
NOT_PERMITTED = (errno.EACCES, errno.EPERM, errno.EROFS)


def read_kernel(path: str | Path) -> bytes:
    """Read a kernel file with as few calls as can be: this runs at window edges and over whole process tables."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks = []
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def write_kernel(path: Path, text: str) -> None:
    """Write to a kernel file in one call and without creating it."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def read_text(path: Path) -> str | None:
    """Return the file's text without surrounding blanks, or None where it cannot be read."""
    try:
        # Some kernels end a list with a NUL (node0/cpulist of a Kunpeng 920: "0-31", newline, NUL).
        return read_kernel(path).decode(errors="replace").rstrip("\0").strip()
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


def read_setting(path: Path) -> str:
    """Return the value of a setting; of a list such as `always [madvise] never` the choice in brackets."""
    text = path.read_text().strip()
    choice = re.search(r"\[([^\]]*)\]", text)
    return choice[1] if choice else text


def write_setting(path: Path, value: str) -> None:
    """Write the value of a setting in one call, without making the file."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, f"{value}\n".encode())
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system, as this process sees it."""

    subtree: str  # what part of the file system is mounted ("/" for all of it)
    point: str
    fstype: str
    options: str  # the file system's own options


def mounts(root: Path) -> Iterator[Mount]:
    """Yield what is mounted, from /proc/self/mountinfo."""
    return mounts_in(read_text(root / "proc/self/mountinfo") or "")


def mounts_in(mountinfo: str) -> Iterator[Mount]:
    """Yield what is mounted, from the text of a mountinfo."""
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if dash and len(left) >= 5 and len(right) >= 3:
            yield Mount(unescape(left[3]), unescape(left[4]), right[0], right[2])


def below(root: Path, absolute: str) -> Path:
    """Return where an absolute path lies below a recorded root."""
    return root / absolute.lstrip("/")


def unescape(text: str) -> str:
    """Undo mountinfo's octal escapes of blanks, tabs, newlines and backslashes."""
    for octal, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(octal, char)
    return text


# The clock of the uncore (mesh, last-level cache, memory controllers) as Intel's driver shows and sets it.

FOLDER = f"{CPU_DIR}/intel_uncore_frequency"
CURRENT, LOWEST, HIGHEST = "current_freq_khz", "min_freq_khz", "max_freq_khz"  # the first is root's to read
INITIAL = {LOWEST: "initial_min_freq_khz", HIGHEST: "initial_max_freq_khz"}  # as the firmware left them
STEP_KHZ = 100_000
_WHOLE = re.compile(r"package_(\d+)_die_\d+")


def domains(root: Path = Path("/")) -> dict[Path, int | None]:
    """Return the folder of every clock domain and its package, which newer kernels show to root alone.

    Newer processors have a folder for each domain (uncore00 …) besides those that set all domains of a die at once.
    """
    folders = sorted((root / FOLDER).glob("*"))
    if fine := {folder: read_int(folder / "package_id") for folder in folders if folder.name.startswith("uncore")}:
        return fine
    return {folder: int(match[1]) for folder in folders if (match := _WHOLE.fullmatch(folder.name))}
