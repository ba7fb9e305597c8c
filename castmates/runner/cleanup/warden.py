"""A small process that outlives the runner and sees to it that nothing else does, even after SIGKILL: the runner's end.

The other end, the process itself, is in `outliving`.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Literal

import castmates
from castmates.errors import CastmatesError
from castmates.linux.processes import is_stopped, read_process, send
from castmates.machine.journal import Journal
from castmates.runner.cleanup.leftovers import LONGEST_S, Guarded, Kind, clean_up


class NotCleanedUp(CastmatesError):
    """The warden did not end by itself; what was measured is none the worse for it."""


class Warden:
    """The runner's end of the pipe; when the runner is gone, however that came, the other end cleans up."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        self._process = process
        self._pipe = pipe
        self._announced: list[Guarded] = []

    @classmethod
    def start(cls) -> "Warden":
        """Start the process in a separate session; only this process holds the writing end of its pipe."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "castmates.runner.cleanup.outliving"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=os.environ | {"PYTHONPATH": str(Path(castmates.__file__).parents[1])},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout as ready:
            if ready.read() != b"ready":
                raise CastmatesError(
                    f"the warden did not start: try {sys.executable} -m castmates.runner.cleanup.outliving"
                )
        return cls(process, process.stdin)

    def guard_process(self, pid: int) -> None:
        """Guard a launched session leader and everything that comes from it."""
        if process := read_process(pid):
            self._announce("process", [pid, process.born])

    def guard_cgroup(self, path: Path) -> None:
        """Guard a control group, whatever will be in it."""
        self._announce("cgroup", str(path))

    def guard_path(self, path: Path) -> None:
        """Guard a temporary file or directory."""
        self._announce("path", str(path.absolute()))

    def guard_orphan(self, file: Path) -> None:
        """Guard a file that this process reads, and removes itself: it goes only if this process is killed."""
        self._announce("orphan", str(file.absolute()))

    def guard_journal(self, journal: Journal) -> None:
        """Guard what its owner will write down: the knobs go back."""
        self._announce("journal", {"folder": str(journal.path.parent), "owner": asdict(journal.owner)})

    def check(self) -> None:
        """Raise an error when the warden has ended: what is measured without one may outlive its runner."""
        if self._process.poll() is not None:
            raise _ended()
        self._continue()

    def release(self) -> None:
        """End in good order: let the warden remove what may be left, and wait for it; safe to call twice.

        One that does not end is killed, and what it guards is removed here.
        """
        with contextlib.suppress(CastmatesError):  # it was called before, or the warden was killed
            self._announce("release", None)
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        deadline, stopped = time.monotonic() + LONGEST_S * 2, False
        while self._process.poll() is None:
            stopped |= self._continue()
            if time.monotonic() > deadline:
                self._process.kill()
                self._process.wait()
                clean_up(each for each in self._announced if each[0] != "orphan")
                why = "was stopped again and again" if stopped else "could not remove everything that it guards"
                raise NotCleanedUp(f"the warden (process {self._process.pid}) {why}, and was killed")
            time.sleep(0.01)

    def _continue(self) -> bool:
        """Let the warden go on where somebody has stopped it; whether that was so."""
        if stopped := is_stopped(self._process.pid):
            send([self._process.pid], signal.SIGCONT)
        return stopped

    def _announce(self, kind: Kind | Literal["release"], value: object) -> None:
        if kind != "release":
            self._announced.append((kind, value))
        try:
            self._pipe.write(json.dumps([kind, value]).encode() + b"\n")
            self._pipe.flush()
        except (BrokenPipeError, ValueError):
            raise _ended() from None


@contextlib.contextmanager
def guarded() -> Iterator[Warden]:
    """Have a warden, which makes sure that nothing is left even if this process is killed."""
    warden = Warden.start()
    try:
        yield warden
    except BaseException:
        with contextlib.suppress(NotCleanedUp):  # what went wrong first counts
            warden.release()
        raise
    warden.release()


def _ended() -> CastmatesError:
    return CastmatesError("the warden has ended although the runner needs it; run the launch again")
