"""Runs other programs' bandwidth and latency tests on one CPU, and reads their figures; None where one is missing."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kernels import pinned
from castmates.errors import CastmatesError

PATIENCE = 300  # seconds
FIRST_GUESS = 5e10  # bytes a second
ARRAYS_PER_L3 = 12  # stress-ng makes each of three arrays four times as large as the given L3
SMALLEST_L3 = 4096  # that it takes
STRESS_NG_SECONDS = 6  # it gives no rate for a run of less than 4.5
QUICK = {"ENOUGH": "3000", "TIMING_O": "0", "LOOP_O": "0"}  # lmbench: 3 ms a measurement, no calibration


def missing() -> list[str]:
    """The peers that are not installed, with the package that has each."""
    packages = {"likwid-bench": "likwid", "stress-ng": "stress-ng", "lat_mem_rd": "lmbench, in Debian's non-free"}
    return [f"{name} ({package})" for name, package in packages.items() if _find(name) is None]


class Likwid:
    """likwid-bench on one CPU, as many iterations as filled the wanted time before: its own search for them is long."""

    def __init__(self, cpu: int, seconds: float) -> None:
        self.cpu, self._seconds = cpu, seconds
        self._iterations: dict[tuple[str, int], int] = {}

    def rate(self, test: str, amount: int) -> float | None:
        """GB/s of one of its tests over so many bytes."""
        program = _find("likwid-bench")
        if program is None:
            return None
        iterations = self._iterations.get((test, amount), round(FIRST_GUESS * self._seconds / amount))
        command = [program, "-t", test, "-w", f"N:{amount // 1000}kB:1", "-i", str(iterations)]
        output = _output(command, self.cpu)
        took = float(_figure(r"Time:\s+([\d.e+-]+) sec", output, command))
        self._iterations[test, amount] = max(1, round(iterations * self._seconds / took))
        return float(_figure(r"MByte/s:\s+([\d.]+)", output, command)) / 1e3


def stress_ng_stream(amount: int, cpu: int) -> float | None:
    """GB/s of stress-ng's stream stressor, reads and writes together; None also if it does not accept this size."""
    program, size = _find("stress-ng"), amount // ARRAYS_PER_L3
    if program is None or size < SMALLEST_L3:
        return None
    command = [program, "--stream", "1", "--stream-l3-size", str(size), "--timeout", str(STRESS_NG_SECONDS)]
    output = _output(command, cpu)
    if "too short to determine" in output:
        return None
    read = _figure(r"memory rate: ([\d.]+) MB read/sec", output, command)
    written = _figure(r"([\d.]+) MB write/sec", output, command)
    return (float(read) + float(written)) * (1 << 20) / 1e9


def lat_mem_rd(mebibytes: int, cpu: int) -> dict[int, float]:
    """The ns of a load in random order for each working set up to so many MiB, in bytes."""
    program = _find("lat_mem_rd")
    if program is None:
        return {}
    lines = re.findall(
        r"^([\d.]+) ([\d.]+)$", _output([program, "-t", "-N", "11", str(mebibytes), "64"], cpu), re.MULTILINE
    )
    return {_bytes(size): float(ns) for size, ns in lines}


def _bytes(mebibytes: str) -> int:
    """The size that was printed in MiB with five digits: a whole number of KiB."""
    return round(float(mebibytes) * 1024) << 10


def _find(name: str) -> str | None:
    elsewhere = Path("/usr/lib/lmbench/bin").glob(f"*/{name}")
    return shutil.which(name) or next(map(str, elsewhere), None)


def _output(command: Sequence[str], cpu: int) -> str:
    try:
        done = subprocess.run(
            pinned(command, cpu),
            env=os.environ | QUICK,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CastmatesError(f"'{' '.join(command)}' did not end within {PATIENCE} s.") from None
    if done.returncode != 0:
        raise CastmatesError(f"'{' '.join(command)}' ended with status {done.returncode}: {done.stdout.strip()[-200:]}")
    return done.stdout


def _figure(pattern: str, output: str, command: Sequence[str]) -> str:
    found = re.search(pattern, output)
    if found is None:
        raise CastmatesError(f"'{' '.join(command)}' printed no '{pattern}': {output.strip()[-200:]}")
    return found[1]
