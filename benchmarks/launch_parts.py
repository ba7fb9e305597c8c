"""Measures a launch as scripts/measure_launch.py does, and notes where its time went; a fresh process for each launch.

Imports the standard library alone until the clock of the imports runs. Works on any checkout that is first on
PYTHONPATH, so that two of them can be compared.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path

STARTED = time.monotonic(), time.process_time()


class Clock:
    """Seconds, and CPU seconds of this process, by part; what a part contains of another one counts there alone."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[float, float]] = {}
        self._inner = [(0.0, 0.0)]

    def add(self, part: str, seconds: float, own: float) -> None:
        """Count these seconds for a part, and this much of our CPU time."""
        before = self.parts.get(part, (0.0, 0.0))
        self.parts[part] = (before[0] + seconds, before[1] + own)

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """Count what is done here for a part."""
        begin = time.monotonic(), time.process_time()
        self._inner.append((0.0, 0.0))
        try:
            yield
        finally:
            seconds, own = time.monotonic() - begin[0], time.process_time() - begin[1]
            within, outer = self._inner.pop(), self._inner[-1]
            self.add(part, seconds - within[0], own - within[1])
            self._inner[-1] = (outer[0] + seconds, outer[1] + own)

    def time(self, owner: object, name: str, part: str) -> None:
        """Count each call of a function for a part."""
        function: Callable[..., object] = getattr(owner, name)

        @wraps(function)
        def timed(*words: object, **options: object) -> object:
            with self.during(part):
                return function(*words, **options)

        setattr(owner, name, timed)

    def time_context(self, owner: object, name: str, entering: str, leaving: str) -> None:
        """Count the entering of a context for one part and the leaving for another."""
        function: Callable[..., AbstractContextManager[object]] = getattr(owner, name)

        @contextmanager
        def timed(*words: object, **options: object) -> Iterator[object]:
            with self.during(entering):
                context = function(*words, **options)
                value = context.__enter__()
            try:
                yield value
            except BaseException:
                with self.during(leaving):
                    context.__exit__(*sys.exc_info())
                raise
            with self.during(leaving):
                context.__exit__(None, None, None)

        setattr(owner, name, timed)


def measure(clock: Clock, plan_file: Path, name: str, folder: Path) -> None:
    """Measure the launch; the parts bear the names of the report."""
    with clock.during("imports"):
        import castmates.pipeline.script  # noqa: F401 (as the script does)
        from castmates.files import cache_folder
        from castmates.pipeline import measure_launch
        from castmates.results.plans import read_plan
        from castmates.runner import launch, record
        from castmates.runner.staging import LiveStage
    clock.time_context(launch, "machine_lock", "lock", "clean-up")
    clock.time(launch, "heal_or_refuse", "healing")
    clock.time_context(launch, "guarded", "warden", "clean-up")
    clock.time_context(launch, "_knobs", "knobs", "clean-up")
    clock.time_context(launch, "on_stage", "scratch, freezer", "clean-up")
    clock.time(launch, "_launch", "launch")
    clock.time_context(launch, "_watched", "hardware, perf", "clean-up")
    clock.time(LiveStage, "await_ready", "barrier")
    clock.time(launch, "measure_rounds", "rounds")
    clock.time(launch, "measure_after_rounds", "cost windows")
    clock.time(LiveStage, "dismiss", "dismissal")
    clock.time(record, "write", "record")
    with clock.during("plan"):
        plan = read_plan(plan_file)
    with clock.during("rest"):
        measure_launch.measure_launch(plan, name, folder, cache_folder(), os.getppid())


def main() -> None:
    """Measure, and write the seconds by part, with the time when all was done, into the folder."""
    begin, plan_file, name, folder = float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    clock = Clock()
    clock.add("interpreter", STARTED[0] - begin, STARTED[1])
    measure(clock, plan_file, name, folder)
    (folder / "parts.json").write_text(json.dumps({"parts": clock.parts, "done": time.monotonic()}))
    from castmates.pipeline import script

    getattr(script, "leave", lambda: None)()  # earlier checkouts end as Python does


if __name__ == "__main__":
    main()
