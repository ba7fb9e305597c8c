"""What all builders share: one at a time in a place, a sign of life for who waits, and how much a place holds."""

import fcntl
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIGN_OF_LIFE_SECONDS = 10.0


@contextmanager
def alone(file: Path) -> Iterator[int]:
    """Hold this lock file, so that of two builders one waits for the other, and give its descriptor."""
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another process is building in {file.parent}: waiting for it", file=sys.stderr)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held.fileno()


def draft_of(place: Path) -> Path:
    """A folder beside a place that only this node builds in: locks may hold for each node by itself."""
    return place.with_name(f".{place.name}@{platform.node()}")


def put(draft: Path, place: Path, ready: Path) -> None:
    """Make a draft the place, unless another node was faster: `ready` is a file of the place when it is whole."""
    try:
        draft.rename(place)
    except OSError:  # it has files
        if not ready.is_file():
            shutil.rmtree(place, ignore_errors=True)
            draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def wait(process: "subprocess.Popen[bytes]", what: str, *, silent: bool = False) -> None:
    """Wait for a process and report now and then that it still runs; it does not outlive us."""
    begun = time.monotonic()
    try:
        while True:
            try:
                process.wait(timeout=SIGN_OF_LIFE_SECONDS)
                return
            except subprocess.TimeoutExpired:
                if not silent:
                    print(f"Still building {what} after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of a builder's log."""
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]


def bytes_on_disk(place: Path) -> int:
    """What a folder takes of the disk."""
    return sum(512 * file.lstat().st_blocks for file in place.rglob("*"))
