"""How a trace launch samples its members' stacks: perf's command line, and what names code compiled at run time."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from castmates.runner.cleanup.leftovers import remove_own_file
from castmates.study.spec import MOST_SAMPLED

HZ = 99  # not 100: no step with whatever happens a hundred times a second
LARGEST = MOST_SAMPLED
ROOM = "4M"  # of a CPU's buffer; of perf's own 0.5 MB stacks were lost, but only root may lock more
# 16 KiB of each stack unwind TensorFlow's wheels, Python and our kernels; most of these keep no frame pointers.
DWARF, FRAME_POINTERS = "dwarf,16384", "fp"
SOFTWARE, HARDWARE = "cpu-clock", "cycles"
PERF_MAPS = Path("/tmp")  # where perf looks for perf-<pid>.map, whatever TMPDIR is
FIRST_PYTHON = (3, 12)  # that writes its functions into a perf map
TIMEOUT = 10.0


def arguments(
    pids: Iterable[int],
    output: Path,
    hz: int = HZ,
    event: str = SOFTWARE,
    user_only: bool = False,
    call_graph: str = DWARF,
    largest: int = LARGEST,
) -> list[str]:
    """perf's command line, which samples until it gets SIGINT; threads and children that come later are included."""
    room = ["--mmap-pages", ROOM] if os.geteuid() == 0 else []
    return [
        "perf", "record", "--quiet", "--clockid", "CLOCK_MONOTONIC", "--sample-cpu",
        "--event", f"{event}:u" if user_only else event, "--freq", str(hz), "--call-graph", call_graph,
        # Or perf copies every library that it met into ~/.debug: 700 MB of TensorFlow.
        "--no-buildid-cache", "--max-size", f"{largest}B", *room,
        "--pid", ",".join(map(str, pids)), "--output", str(output),
    ]  # fmt: skip


def event_of(hardware: str | None) -> tuple[str, bool]:
    """What is sampled, and whether in user space alone, where perf answered so when it counted instructions."""
    if hardware in ("counted", "user only"):
        return HARDWARE, hardware == "user only"
    return SOFTWARE, False


def call_graph() -> str:
    """How this perf can unwind stacks: by DWARF if it was built with an unwinder, else by frame pointers."""
    perf = shutil.which("perf")
    try:
        done = subprocess.run(
            [perf or "perf", "version", "--build-options"], capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return FRAME_POINTERS
    unwinds = re.search(r"(libunwind|libdw-dwarf-unwind|libdw):\s*\[\s*on", done.stdout)
    return DWARF if unwinds else FRAME_POINTERS


def environment(python: tuple[int, int] | None) -> Mapping[str, str]:
    """What a member gets that has this Python, so that perf can name code that is compiled while it runs.

    oneDNN makes the map of its process anew when it compiles its first kernel, and so would lose Python's functions:
    only one of the two writes it.
    """
    if python is not None and python >= FIRST_PYTHON:
        return {"PYTHONPERFSUPPORT": "1", "ONEDNN_JIT_PROFILE": "0"}
    return {"ONEDNN_JIT_PROFILE": "2"}


def map_of(pid: int) -> Path:
    """Where a process names the code that it compiles while it runs."""
    return PERF_MAPS / f"perf-{pid}.map"


def remove_maps(pids: Iterable[int]) -> None:
    """Remove the maps that members of these ids wrote, after their stacks were read; of others nothing is touched."""
    for pid in pids:
        remove_own_file(map_of(pid))


# How a trace launch samples its members' loads: perf's command line. Not tried on real hardware.

NO_SOURCE = "this processor samples no loads: the kernel shows no PEBS, IBS or SPE"
LOADS_HZ = 997
PERIOD = 100_000  # SPE takes one of so many instructions


def load_arguments(
    source: Mapping[str, str],
    pids: Iterable[int],
    output: Path,
    hz: int = LOADS_HZ,
    largest: int = LARGEST,
    user_only: bool = False,
) -> list[str]:
    """perf's command line, which samples until it gets SIGINT; `source` is the fact `latency_source` of the machine."""
    events = source["events"] + ("u" if user_only else "")
    how_often = ["--count", str(PERIOD)] if source["source"] == "SPE" else ["--freq", str(hz)]
    return [
        "perf", "record", "--quiet", "--clockid", "CLOCK_MONOTONIC", "--sample-cpu", "--data", "--weight",
        "--event", events, *how_often, "--no-buildid-cache", "--max-size", f"{largest}B",
        "--pid", ",".join(map(str, pids)), "--output", str(output),
    ]  # fmt: skip
