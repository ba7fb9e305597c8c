"""What the recipe's parts share: its one exception, commands with a time-out, folders that appear whole."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LONGEST = 1500  # seconds that one command may take
WITH_US = ("setpriv", "--pdeathsig", "KILL")  # in front of a command that is to end when we do, whatever ends us

Say = Callable[[str], None]


class NoLab(Exception):
    """The lab cannot be had on this machine; the message has the reason, as the rest of a sentence."""


def call(
    words: Iterable[str | Path],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> str:
    """Run a command and return its output; where it fails, NoLab shows its last words and where all of them are."""
    command = [str(word) for word in words]
    name = " ".join(command[:3])
    try:
        done = subprocess.run(
            [*WITH_US, *command],
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoLab(f"`{name}` has not ended within {LONGEST} seconds") from None
    if log:
        log.write_text(done.stdout)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        where = f" ({log})" if log else ""
        raise NoLab(f"`{name}` failed: {said[-1] if said else f'exit {done.returncode}'}{where}")
    return done.stdout


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """Give a folder to be filled, which gets its name when that is done."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
