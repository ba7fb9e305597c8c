"""Reads the stacks that perf sampled into a timeline; perf itself finds the names of their functions."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from castmates.timeline.flames.lines import CUT, FIELDS, Sample, samples, stack
from castmates.timeline.model import Making
from castmates.timeline.registry import Registry

# Reading the symbols of TensorFlow alone takes perf ten seconds and 0.9 GB; by lines of source it would take minutes.
SLOWEST = 300.0  # seconds for perf to print all stacks
NO_PERF = "there is no perf here to name the functions of sampled stacks"


def add_stacks(
    making: Making, registry: Registry, file: Path, members: Mapping[int, str], slowest: float = SLOWEST
) -> dict[str, Any]:
    """Add the stacks of a perf.data to the tracks of their threads; return what the record of the trace has of it."""
    gathered = _Gathered(registry, members)
    why = ""
    try:
        with _printed(file, slowest) as (lines, end):
            for each in samples(lines):
                gathered.add(each)
            why = end()
    except FileNotFoundError:
        why = NO_PERF
    gathered.into(making)
    return {
        "name": "stacks",
        "events": gathered.events,
        "cut": gathered.cut,
        "lost": gathered.lost,
        "bytes": file.stat().st_size if file.is_file() else 0,
        "alignment_ns": 0,  # perf's clock is that of the timeline
        "reason": why,
    }


@contextmanager
def _printed(file: Path, slowest: float) -> Iterator[tuple[IO[str], Any]]:
    """What `perf script` prints of the file, and a function that waits for its end and returns what went wrong."""
    command = ["perf", "script", "--force", "--no-inline", "--ns", "--show-lost-events", "-F", FIELDS, "-i", str(file)]
    asked = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}  # or it goes to the network
    late = threading.Event()
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True, errors="replace",
            env=asked | {"LC_ALL": "C"},
        )  # fmt: skip

        def give_up() -> None:
            late.set()
            process.kill()

        def end() -> str:
            if process.wait() == 0:
                return ""
            if late.is_set():
                return f"perf took longer than {slowest:g} s to print the stacks; those that it had not printed are missing"
            complaints.seek(0)
            said = [line.strip() for line in complaints if line.strip()]
            return f"perf cannot read {file.name}: {said[-1].rstrip('.') if said else 'it does not say why'}"

        timer = threading.Timer(slowest, give_up)
        timer.start()
        try:
            assert process.stdout is not None
            yield process.stdout, end
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


class _Gathered:
    """Samples in columns; equal stacks are kept once."""

    def __init__(self, registry: Registry, members: Mapping[int, str]) -> None:
        self._registry, self._members = registry, members
        self._stacks: dict[str, int] = {}
        self._tracks: dict[int, int] = {}
        self._rows: list[tuple[int, int, int, float, int]] = []
        self._named: list[str] = []  # the event of each
        self.lost, self.cut = 0, 0
        self.events: dict[str, int] = {}

    def add(self, each: Sample | int) -> None:
        if isinstance(each, int):
            self.lost += each
            return
        text = stack(each.frames)
        self.cut += text.startswith(CUT)
        self.events[each.event] = self.events.get(each.event, 0) + 1
        code = self._stacks.setdefault(text, len(self._stacks))
        self._rows.append((each.t_ns, self._track(each), each.cpu, each.weight, code))
        self._named.append(each.event)

    def _track(self, each: Sample) -> int:
        track = self._tracks.get(each.tid)
        if track is None:
            member = self._members.get(each.pid, "")
            track = self._tracks[each.tid] = self._registry.thread(each.tid, each.pid, each.comm, member)
        return track

    def into(self, making: Making) -> None:
        """Add everything that was gathered."""
        if not self._rows:
            return
        times, tracks, cpus, weights, codes = zip(*self._rows, strict=True)
        making.stacks(
            t_ns=np.array(times, np.int64),
            track=np.array(tracks, np.int64),
            cpu=np.array(cpus, np.int64),
            event=self._named,
            weight=np.array(weights),
            stack=pd.Categorical.from_codes(codes, categories=pd.Index(list(self._stacks), dtype="str")),
            source="perf",
        )
