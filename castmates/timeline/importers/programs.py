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


def output_of(command: Sequence[str], path: Path, read: Callable[[IO[bytes]], Read]) -> Read:
    """What a reader makes of a program's output; a program that fails is a sentence with its last words."""
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL) as process:
            try:
                assert process.stdout is not None
                result = read(process.stdout)
                process.wait()
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").split("\n")
            name = Path(command[0]).name
            raise CastmatesError(f"{path}: {name} cannot read this to its end ({_why(said, process.returncode)}).")
    return result


def _why(said: Sequence[str], code: int) -> str:
    lines = [line.strip() for line in said if line.strip()]
    return " ".join(lines[-1].rstrip(".").split())[:200] if lines else f"it ended with {code}"
