"""Run toplev of pmu-tools, which the user has somewhere, on a command."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from castmates.errors import CastmatesError

LAST_WORDS = 3


def run_toplev(toplev: Path, python: str, level: int, output: Path, command: Sequence[str]) -> None:
    """Have toplev count a command up to this level and write CSV; `python` is the interpreter that it runs in."""
    if not toplev.is_file():
        raise CastmatesError(
            f"{toplev}: there is no toplev; get pmu-tools (github.com/andikleen/pmu-tools) and give its toplev.py."
        )
    words = [python, str(toplev), "-x,", f"-l{level}", "-v", "--no-desc", "-o", str(output), "--", *command]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    except OSError as problem:
        raise CastmatesError(
            f"{python} cannot be started ({problem.strerror}): give the interpreter of toplev."
        ) from None
    if done.returncode or not output.is_file():
        lines = done.stderr.decode(errors="replace").strip().splitlines()[-LAST_WORDS:]
        raise CastmatesError(f"toplev ended with status {done.returncode}: {'; '.join(lines) or 'it wrote nothing'}")
