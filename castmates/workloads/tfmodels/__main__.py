"""Run one Model Garden job, step after step, with a heartbeat for each."""

import argparse
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from castmates.workloads.heartbeat import HeartbeatError, Writer
from castmates.workloads.tfmodels import jobs, runtime

STARTED = time.monotonic()
WARM_UP_STEPS = 5


class _OneSentence(argparse.ArgumentParser):
    """An argument parser whose complaints are one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"Bad arguments: {message}; see --help and --list.\n")


def main() -> int:
    """Build the job that the command line names and run it until told to stop."""
    arguments = _arguments()
    if arguments.list:
        print(jobs.listing())
        return 0
    try:
        beats = Writer.from_environment()
    except HeartbeatError as error:
        return _complain(str(error))
    try:
        return _run(arguments, beats)
    except BaseException:
        beats.failed()
        raise


def _arguments() -> argparse.Namespace:
    parser = _OneSentence(prog="python -m castmates.workloads.tfmodels", description=__doc__)
    parser.add_argument("--model", choices=jobs.MODELS)
    parser.add_argument("--size", choices=jobs.SIZES, default="tiny")
    parser.add_argument("--mode", choices=jobs.MODES, default="train")
    parser.add_argument("--batch", type=_positive, help="examples in a batch (default: the job's own)")
    parser.add_argument("--threads", type=_positive, help="threads in each pool (default: one per CPU given)")
    parser.add_argument("--steps", type=_positive, help="end after so many steps (default: go on for ever)")
    parser.add_argument("--list", action="store_true", help="show the jobs and end")
    arguments = parser.parse_args()
    if not arguments.list and arguments.model is None:
        parser.error("--model is missing")
    if arguments.model == "dlrm" and arguments.batch == 1:
        parser.error("the dlrm model cannot take a batch of 1, its smallest is 2")
    return arguments


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)


def _run(arguments: argparse.Namespace, beats: Writer) -> int:
    threads = arguments.threads or len(os.sched_getaffinity(0))
    runtime.prepare(threads)
    try:
        tf = runtime.tensorflow(threads)
        from castmates.workloads.tfmodels import models, steps
    except ModuleNotFoundError as error:
        beats.failed()
        return _complain(
            f"This Python has no module '{error.name}': run the job in the tfmodels environment "
            "(castmates build-environment tfmodels)."
        )
    job = models.build(arguments.model, arguments.size, arguments.batch)
    step = steps.compiled(job, arguments.mode)
    batches = itertools.cycle(job.batches)
    step(next(batches))
    facts = {
        "model": arguments.model,
        "size": arguments.size,
        "mode": arguments.mode,
        "parameters": int(sum(weight.shape.num_elements() for weight in job.model.trainable_variables)),
        "batch": job.batch,
        "tensorflow": tf.__version__,
        "threads": threads,
        "seconds_to_first_step": round(time.monotonic() - STARTED, 2),
    }
    print(json.dumps(facts), flush=True)
    _cycle(step, batches, beats, arguments.steps)
    return 0


def _cycle(step: Callable[[Any], None], batches: "itertools.cycle[Any]", beats: Writer, limit: int | None) -> None:
    """Warm up, then beat once a step until the limit or SIGTERM, which ends the work between two steps."""
    told_to_stop = []
    signal.signal(signal.SIGTERM, lambda *_: told_to_stop.append(True))
    for _ in range(WARM_UP_STEPS):
        step(next(batches))
    beats.ready()
    done = 0
    while done != limit and not told_to_stop:
        step(next(batches))
        beats.beat()
        done += 1
    beats.finished()


def _complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
