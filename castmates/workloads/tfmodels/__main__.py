"""Run one Model Garden job, step after step, with a heartbeat for each."""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from castmates.workloads.heartbeat import HeartbeatError, Writer
from castmates.workloads.jobs.serving import Arrivals
from castmates.workloads.phases import PhasesError, open_writer
from castmates.workloads.tfmodels import jobs, phases, profiling, runtime, wish
from castmates.workloads.tfmodels.anew import Records
from castmates.workloads.tfmodels.ending import Ending, leave
from castmates.workloads.tfmodels.profile_page import PageError
from castmates.workloads.tfmodels.wish import Wish

STARTED = time.monotonic()
WARM_UP_STEPS = 5
WARM_UP_SECONDS = 10.0  # where steps are long, fewer of them warm up


def main() -> int:
    """Build the job that the command line names and run it until it is asked to stop."""
    wanted = wish.parse()
    if wanted is None:
        print(jobs.listing())
        return 0
    try:
        beats, arrivals = Writer.from_environment(), Arrivals.of(wanted.load, wanted.arrivals)
    except HeartbeatError as error:
        return _complain(str(error))
    try:
        return _run(wanted, beats, arrivals)
    except BaseException:
        beats.failed()
        raise


def _run(wanted: Wish, beats: Writer, arrivals: Arrivals | None) -> int:
    clock = [STARTED]
    runtime.prepare(wanted.threads, onednn=wanted.onednn, device=wanted.device)
    try:
        runtime.spare(one_job=True)
        tf = runtime.tensorflow(wanted.threads, wanted.inter_threads)
        from castmates.workloads.tfmodels import job, lite, steps
    except ModuleNotFoundError as error:
        return _fail(beats, runtime.where_to_run(error))
    if wanted.device == "gpu" and not tf.config.list_physical_devices("GPU"):
        return _fail(beats, "TensorFlow sees no GPU here: look at the driver, or use --device cpu.")
    try:
        written = phases.StepPhases(wanted.mode, open_writer()) if wanted.phases else None
    except PhasesError as error:
        return _fail(beats, str(error))
    clock.append(time.monotonic())
    built = job.build(wanted)
    clock.append(time.monotonic())
    try:
        source = steps.batches(built, wanted)
    except (tf.errors.OpError, ValueError) as error:
        if wanted.source == "memory":
            raise
        return _fail(beats, f"The files of --data {wanted.data} are not what this job reads: {_first_line(error)}")
    try:
        step = _marking(steps.marked(built, wanted), source, written) if written else None
        engine = lite if wanted.engine == "lite" else steps
        step = step or _plain(engine.compiled(built, wanted), source)
        graph = profiling.graph_wanted(tf)
        step()
    except (tf.errors.OpError, ValueError) as error:
        if wanted.source == "memory":
            raise
        return _fail(
            beats,
            f"The first step failed: {_first_line(error)}; if the data is your own, look at its classes, tokens and "
            "rows.",
        )
    clock.append(time.monotonic())
    print(json.dumps(_facts(wanted, built, tf.__version__, clock)), flush=True)
    try:
        profiler = profiling.Profiler.wanted(tf, graph, Records.of(source, wanted))
    except PageError as error:
        return _fail(beats, str(error))
    _cycle(step, beats, wanted.steps, profiler, arrivals)
    if written:
        print(json.dumps({"phases_ms": written.medians_ms(), "unclear_steps": written.unclear}))
    leave(beats)
    return 0


def _facts(wanted: Wish, built: Any, version: str, clock: list[float]) -> dict[str, object]:
    """Everything that was asked for, and what came of it."""
    seconds = {
        name: round(after - before, 2)
        for name, (before, after) in zip(("import", "build", "first_step"), itertools.pairwise(clock), strict=True)
    }
    return asdict(wanted) | {
        "parameters": int(sum(weight.shape.num_elements() for weight in built.model.trainable_variables)),
        "tensorflow": version,
        "seconds": seconds,
        "seconds_to_first_step": round(clock[-1] - STARTED, 2),
    }


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _plain(step: Callable[[Any], None], source: Iterator[Any]) -> Callable[[], None]:
    return lambda: step(next(source))


def _marking(
    step: Callable[[Any], list[float]], source: Iterator[Any], written: phases.StepPhases
) -> Callable[[], None]:
    """Time the wait for the input too, and write all phases down."""

    def run() -> None:
        begin = time.monotonic_ns()
        batch = next(source)
        ready = time.monotonic_ns()
        marks = step(batch)
        end = time.monotonic_ns()
        written.step([begin, ready, *phases.on_steady_clock(marks), end])

    return run


def _cycle(
    step: Callable[[], None],
    beats: Writer,
    limit: int | None,
    profiler: profiling.Profiler | None,
    arrivals: Arrivals | None,
) -> None:
    """Warm up, then beat once a step until the limit or SIGTERM, which ends the work between two steps."""
    ending = Ending(beats)
    warm = time.monotonic() + WARM_UP_SECONDS
    for _ in range(WARM_UP_STEPS):
        step()
        if time.monotonic() > warm:
            break
    beats.ready()
    done = 0
    while done != limit and not ending.told:
        if arrivals and not arrivals.wait(lambda: ending.told):
            break
        step()
        if arrivals:
            arrivals.answered()
        beats.beat()
        done += 1
        if profiler is not None:
            profiler.step_is_over()


def _fail(beats: Writer, sentence: str) -> int:
    beats.failed()
    return _complain(sentence)


def _complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
