"""Runs a native kernel alone on one CPU for a moment, and reads its rate from its heartbeat."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from castmates import project
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.workloads import environments
from castmates.workloads.heartbeat import VARIABLE, Reader, State, create

READY_WITHIN = 60.0  # seconds


def programs() -> Path:
    """Build the native kernels unless they are there, and return their folder."""
    return environments.build(environments.NATIVE, project.ENVIRONMENTS, cache_folder()) / "bin"


def last_cpu() -> int:
    """The CPU on which the programs under test run: the last one that we may use."""
    return max(os.sched_getaffinity(0))


def pinned(command: Sequence[str], cpu: int) -> list[str]:
    """The command that runs a command on this CPU alone."""
    return ["taskset", "--cpu-list", str(cpu), *command]


def rate(place: Path, command: Sequence[str], seconds: float, cpu: int, folder: Path) -> float:
    """Run a kernel so long after it is ready, and return its units a second between its first and its last beat."""
    program, *options = command
    beats = folder / "kernel.beats"
    beats.unlink(missing_ok=True)
    create(beats)
    process = subprocess.Popen(
        pinned([str(place / program), *options], cpu),
        env={**os.environ, VARIABLE: str(beats)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with Reader(beats) as reader:
            _await_ready(reader, process)
            time.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=READY_WITHIN)
            records = reader.beats(0).records
    except subprocess.TimeoutExpired:
        raise CastmatesError(f"'{' '.join(command)}' did not end within {READY_WITHIN:g} s of SIGTERM.") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0 or len(records) < 3:
        raise CastmatesError(f"'{' '.join(command)}' failed or was too short to be timed: {errors.strip()}")
    (begin, first), (end, last) = records[0], records[-2]  # the last one may be cut short by the end
    return (last - first) / (end - begin) * 1e9


def _await_ready(reader: Reader, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + READY_WITHIN
    while reader.state is State.STARTING and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
