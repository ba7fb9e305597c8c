"""Native kernels as processes, for the tests."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from castmates.workloads.heartbeat import VARIABLE

PATIENCE = 30.0  # seconds; a hang is a failure, slowness is not


def command(kernels: Path, words: str, *more: str) -> list[str | Path]:
    name, *options = words.split()
    return [kernels / name, *options, *more]


def start(command: list[str | Path], beats: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE} | variables
    if beats is not None:
        environment[VARIABLE] = str(beats)
    return subprocess.Popen(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(command: list[str | Path], beats: Path | None = None, **variables: str) -> tuple[int, str, str]:
    process = start(command, beats, **variables)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
