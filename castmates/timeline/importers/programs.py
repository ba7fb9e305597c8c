"""Runs a program that prints a trace as text, and gives its output to a reader while it runs."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TypeVar

from castmates.errors import CastmatesError

Read = TypeVar("Read")


def needed(name: str, path: Path) -> str:
    """Where a program is; without it, what it is needed for is a sentence."""
    found = shutil.which(name)
    if found is None:
        raise CastmatesError(f"{path}: reading this needs the program {name}: apt-get install {name}.")
    return found


def output_of(
    command: Sequence[str],
    path: Path,
    read: Callable[[IO[bytes]], object],
    understand: Callable[[str], Read],
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
