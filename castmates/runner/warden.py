"""A small process that outlives the runner and sees to it that nothing else does, even after SIGKILL."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import castmates
from castmates.counters.processes import Family, read_kernel, read_process, read_table, send
from castmates.errors import CastmatesError
from castmates.runner import cgroups

_SWEEP_S = 10.0


class Warden:
    """The runner's end of the pipe; when the runner is gone, however that came, the other end sweeps up."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        self._process = process
        self._pipe = pipe

    @classmethod
    def start(cls) -> "Warden":
        """Start the process in a session of its own; only this process holds the writing end of its pipe."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "castmates.runner.warden"],
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
                raise CastmatesError(f"the warden did not start: try {sys.executable} -m castmates.runner.warden")
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

    def release(self) -> None:
        """End cleanly: let the warden sweep what may be left, and wait for it; safe to call twice."""
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
            raise CastmatesError("the warden has ended although the runner needs it; run the block again") from None


def sweep(guarded: list[tuple[str, object]]) -> None:
    """Kill and remove everything that was announced; what fails is passed over, for the rest must go too."""
    deadline = time.monotonic() + _SWEEP_S
    # Groups first, for what is frozen there cannot be stopped by signals; files last, for the living may write again.
    for what, value in sorted(guarded, key=lambda item: ("cgroup", "process", "path").index(item[0])):
        left_s = max(0.5, deadline - time.monotonic())
        with contextlib.suppress(Exception):
            if isinstance(value, list):
                Family(value[0], value[1]).kill(left_s)
            elif what == "cgroup":
                _sweep_group(Path(str(value)), left_s)
            else:
                _sweep_path(Path(str(value)), left_s)


def _sweep_group(group: Path, left_s: float) -> None:
    if group.is_dir():
        cgroups.kill(group, left_s)
        cgroups.remove(group)


def _sweep_path(path: Path, left_s: float) -> None:
    """Remove the path, and before it everyone who still has it in the environment.

    A child in a session of its own, whose parents were killed with the runner, is found by nothing else.
    """
    deadline = time.monotonic() + left_s
    while (users := _users_of(path)) and time.monotonic() < deadline:
        send(users, signal.SIGKILL)
        time.sleep(0.01)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _users_of(path: Path) -> list[int]:
    found = []
    for pid in read_table():
        with contextlib.suppress(OSError):  # it has ended, or is another user's and so none of ours
            if bytes(path) in read_kernel(f"/proc/{pid}/environ"):
                found.append(pid)
    return found


def main() -> None:
    """Read announcements until the runner is gone, then sweep."""
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
    sweep(guarded)


if __name__ == "__main__":
    main()
