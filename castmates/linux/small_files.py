"""Reads values from small kernel files, any of which may be missing."""

from pathlib import Path

from castmates.linux.processes import read_kernel

CPU_DIR = "sys/devices/system/cpu"


def read_word(path: Path) -> str | None:
    """Return the file's text without surrounding blanks, or None where it cannot be read."""
    try:
        return read_kernel(str(path)).decode(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the file's number, or None where there is none."""
    word = read_word(path)
    return int(word) if word and word.isdecimal() else None
