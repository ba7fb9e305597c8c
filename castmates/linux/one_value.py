"""Reads and sets one value in a small kernel file."""

import os
import re
from pathlib import Path


def read(path: Path) -> str:
    """Return the value; of a list such as `always [madvise] never` the choice in brackets."""
    text = path.read_text().strip()
    chosen = re.search(r"\[([^\]]*)\]", text)
    return chosen[1] if chosen else text


def write(path: Path, value: str) -> None:
    """Write the value in one call, without making the file."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, f"{value}\n".encode())
    finally:
        os.close(fd)
