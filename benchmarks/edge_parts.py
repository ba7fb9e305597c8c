"""Measures a launch as scripts/measure_launch.py does, with the requested freezer, and records its CPU time."""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import castmates.pipeline.script
from castmates.files import cache_folder
from castmates.pipeline.measure_launch import measure_launch
from castmates.results.plans import read_plan
from castmates.runner import staging
from castmates.runner.processes.freezer import SignalFreezer
from castmates.runner.rounds import slices
from castmates.runner.rounds.round import Rounds

SIGNALS = "signals"


class Clock:
    """Seconds, and CPU seconds of this process, that a function takes in all."""

    def __init__(self, owner: object, name: str) -> None:
        self.seconds = self.own = 0.0
        function: Callable[..., object] = getattr(owner, name)

        @wraps(function)
        def timed(*words: object, **options: object) -> object:
            begin = time.monotonic(), time.process_time()
            try:
                return function(*words, **options)
            finally:
                self.seconds += time.monotonic() - begin[0]
                self.own += time.process_time() - begin[1]

        setattr(owner, name, timed)


def main() -> None:
    """Measure, and write what the runner took into the folder."""
    freezer, plan_file, name, folder = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    if freezer == SIGNALS:
        setattr(staging, "choose_freezer", lambda _name: SignalFreezer())  # noqa: B010 (a name that it imported)
    stretches, holding = Clock(Rounds, "_measure_stretch"), Clock(slices, "_hold")
    measure_launch(read_plan(plan_file), name, folder, cache_folder(), os.getppid())
    parts = {"stretches": (stretches.seconds, stretches.own), "open": (holding.seconds, holding.own)}
    (folder / "parts.json").write_text(json.dumps(parts))


castmates.pipeline.script.run(main)
castmates.pipeline.script.leave()
