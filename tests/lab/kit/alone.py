"""Only one process at a time makes what a cache holds; the others wait, and then find it there."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.kit.common import LONGEST, NoLab


@contextmanager
def alone(cache: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Wait until nobody else fetches or builds into this cache; the kernel ends the wait for one that was killed."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        file = (cache / "lock").open("w")
    except OSError as problem:
        raise NoLab(f"{cache} cannot be written ({problem.strerror})") from None
    with file:
        until, told = time.monotonic() + LONGEST, False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise NoLab(f"another process has been filling {cache} for {LONGEST} seconds") from None
                if not told:
                    say(f"Waiting for another process that fills {cache}")
                    told = True
                time.sleep(0.5)
        yield
