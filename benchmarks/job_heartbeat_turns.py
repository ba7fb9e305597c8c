"""The part of `job_heartbeat` that runs in the job's own interpreter: the same steps in turns, with and without.

    python job_heartbeat_turns.py SECONDS STRETCH SEED -- the words of castmates.workloads.tfmodels

Prints one JSON object: for each thing tried, the seconds of each pair of stretches.
"""

import atexit
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from castmates.workloads import phase_file
from castmates.workloads.heartbeat import Writer
from castmates.workloads.phases import Writer as PhaseWriter
from castmates.workloads.tfmodels import phases, runtime, wish
from castmates.workloads.tfmodels.wish import Wish

WARM_UP_SECONDS = 6.0


def main() -> None:
    """Build the job, warm it up, and take turns."""
    seconds, stretch, seed = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one CPU, as a launch gives it
    wanted = wish.parse(sys.argv[5:])
    assert wanted is not None
    ways = steps_of(wanted)
    for step in ways.values():
        until = time.monotonic() + WARM_UP_SECONDS / len(ways)
        while time.monotonic() < until:
            step()
    plain = ways.pop("plain")
    rng = random.Random(seed)
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for name, other in ways.items():
            both = {way: timed(way, stretch) for way in rng.sample([plain, other], 2)}
            pairs[name].append((both[plain], both[other]))
    print(json.dumps({"stretch": stretch, "pairs": pairs}))


def steps_of(wanted: Wish) -> dict[str, Callable[[], None]]:
    """One step of the job: as it is, with a heartbeat, and with its phases marked."""
    runtime.prepare(wanted.threads, onednn=wanted.onednn, device=wanted.device)
    runtime.spare(one_job=True)
    runtime.tensorflow(wanted.threads, wanted.inter_threads)
    from castmates.workloads.tfmodels import job, steps

    built = job.build(wanted)
    source = steps.batches(built, wanted)
    compiled, marked = steps.compiled(built, wanted), steps.marked(built, wanted)
    beats = Writer.from_environment()

    def plain() -> None:
        compiled(next(source))

    def beating() -> None:
        compiled(next(source))
        beats.beat()

    written = phases.StepPhases(wanted.mode, PhaseWriter(phases_file()))

    def marking() -> None:
        begin = time.monotonic_ns()
        batch = next(source)
        ready = time.monotonic_ns()
        marks = phases.on_steady_clock(marked(batch))
        written.step([begin, ready, *marks, time.monotonic_ns()])

    return {"plain": plain, "a heartbeat": beating, "its phases marked (--phases)": marking}


def phases_file() -> Path:
    """A phases file as a launch would make it, in memory."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    atexit.register(shutil.rmtree, folder)
    phase_file.create(folder / "phases")
    return folder / "phases"


def timed(step: Callable[[], None], times: int) -> float:
    """Run so many steps and return how many seconds they took."""
    begin = time.perf_counter()
    for _ in range(times):
        step()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
