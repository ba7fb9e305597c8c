"""A small process that outlives the runner and sees to it that nothing else does, even after SIGKILL."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO

import castmates
from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.marks import MarkedFamily, bearers
from castmates.linux.owner import Owner
from castmates.linux.processes import read_process, send
from castmates.machine.journal import Journal

_SWEEP_S = 10.0
# Groups first, for what is frozen there cannot be stopped by signals; files last, for the living may write again.
ORDER = ("cgroup", "process", "journal", "path")
RELEASE = "release"  # the runner's last word where it ends in good order
_DYING_S = 1.0  # between the closing of a dying process's files and its end


class Warden:
    """The runner's end of the pipe; when the runner is gone, however that came, the other end sweeps up."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        self._process = process
        self._pipe = pipe

    @classmethod
    def start(cls) -> "Warden":
        """Start the process in a session of its own; only this process holds the writing end of its pipe."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "castmates.runner.cleanup.warden"],
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
                    f"the warden did not start: try {sys.executable} -m castmates.runner.cleanup.warden"
                )
        return cls(process, process.stdin)

    def guard_process(self, pid: int) -> None:
        """Guard a launched session leader and everything that comes from it."""
        if process := read_process(pid):
            self._tell("process", [pid, process.born])

    def guard_cgroup(self, path: Path) -> None:
        """Guard a control group, whatever will be in it."""
        self._tell("cgroup", str(path))

    def guard_path(self, path: Path) -> None:
        """Guard a temporary file or directory."""
        self._tell("path", str(path.absolute()))

    def guard_journal(self, journal: Journal) -> None:
        """Guard what its owner will write down: the knobs go back."""
        self._tell("journal", {"folder": str(journal.path.parent), "owner": asdict(journal.owner)})

    def check(self) -> None:
        """Raise an error when the warden has ended: what is measured without one may outlive its runner."""
        if self._process.poll() is not None:
            raise _ended()

    def release(self) -> None:
        """End cleanly: let the warden sweep what may be left, and wait for it; safe to call twice."""
        with contextlib.suppress(CastmatesError):  # it was called before, or the warden was killed
            self._tell(RELEASE, None)
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        try:
            self._process.wait(_SWEEP_S * 2)
        except subprocess.TimeoutExpired:
            raise CastmatesError(
                f"the warden (process {self._process.pid}) is still sweeping: something it guards cannot be killed"
            ) from None

    def _tell(self, what: str, value: object) -> None:
        try:
            self._pipe.write(json.dumps([what, value]).encode() + b"\n")
            self._pipe.flush()
        except (BrokenPipeError, ValueError):
            raise _ended() from None


def _ended() -> CastmatesError:
    return CastmatesError("the warden has ended although the runner needs it; run the block again")


def sweep(guarded: list[tuple[str, object]]) -> None:
    """Kill and remove everything that was announced; what fails is passed over, for the rest must go too."""
    deadline = time.monotonic() + _SWEEP_S
    for what, value in sorted(guarded, key=lambda item: ORDER.index(item[0])):
        left_s = max(0.5, deadline - time.monotonic())
        with contextlib.suppress(Exception):
            if isinstance(value, list):
                MarkedFamily(value[0], value[1]).kill(left_s)
            elif isinstance(value, dict):
                Journal(Path(value["folder"]), Owner(**value["owner"])).restore_mine()
            elif what == "cgroup":
                _sweep_group(Path(str(value)), left_s)
            else:
                _sweep_path(Path(str(value)), left_s)


def _sweep_group(group: Path, left_s: float) -> None:
    if group.is_dir() and cgroups.kill(group, left_s):
        cgroups.remove(group)


def _sweep_path(path: Path, left_s: float) -> None:
    """Remove the path, and before it everyone who has it in the environment or bears the mark of who made it."""
    deadline = time.monotonic() + left_s
    while (users := bearers(path)) and time.monotonic() < deadline:
        send(users, signal.SIGKILL)
        time.sleep(0.01)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sweep_unannounced(runner: int) -> None:
    """Remove what a runner had made and was killed before it could announce; names tell whose it is."""
    from castmates.runner.cleanup.restore import stale_folders, stale_groups  # which imports this module

    deadline = time.monotonic() + _DYING_S
    while (process := read_process(runner)) and process.alive and time.monotonic() < deadline:
        time.sleep(0.005)
    left: list[tuple[str, object]] = [("cgroup", str(group)) for group in stale_groups()]
    sweep([*left, *(("path", str(folder)) for folder in stale_folders())])


def main() -> None:
    """Read announcements until the runner is gone, then sweep."""
    runner = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b"ready")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    guarded: list[tuple[str, object]] = []
    for line in sys.stdin.buffer:
        with contextlib.suppress(ValueError):  # the runner died in the middle of a line
            what, value = json.loads(line)
            guarded.append((what, value))
    released = (RELEASE, None) in guarded
    sweep([item for item in guarded if item[0] in ORDER])
    if not released:
        sweep_unannounced(runner)


if __name__ == "__main__":
    main()
