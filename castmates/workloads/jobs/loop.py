"""Runs a job step after step: warm-up, check of its result, a heartbeat per step, and the end (standard library)."""

import itertools
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Protocol

from castmates.workloads.heartbeat import HeartbeatError, Writer
from castmates.workloads.jobs.asked import AnyJob
from castmates.workloads.jobs.serving import Arrivals
from castmates.workloads.jobs.tracing import Profiler, Tracer
from castmates.workloads.standing import Standing, StandingError
from castmates.workloads.tfmodels.ending import Ending, leave
from castmates.workloads.tfmodels.profile_page import PageError

WARM_UP_STEPS = 6
TOLERANCE = 0.005  # of a known value, for processors and libraries that add in another order
SAME = 1e-4  # of a result that the same process has computed before
LEARNT_AFTER = 200  # steps from which on the loss must be lower than at the start
WRONG = 3  # status of a job whose result is wrong


class Job(Protocol):
    """A model with its data, ready to make steps."""

    parameters: int

    def step(self, number: int) -> float:
        """Make one whole step and return its value, when nothing of it is left to do."""

    def again(self) -> float:
        """Return what inference makes of its first batch now."""

    def tracer(self) -> Tracer:
        """Return the profiler that can trace its steps."""


class Unusable(Exception):
    """What was asked for cannot run here; the message is one sentence."""


def main(asked: AnyJob, known: float | None, build: Callable[[], tuple[Job, Mapping[str, object]]]) -> int:
    """Build a job, run it until it is asked to stop, and return the exit status."""
    try:
        beats, standing = Writer.from_environment(), Standing.from_environment()
        arrivals = Arrivals.of(asked.load, asked.arrivals)
    except (HeartbeatError, StandingError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        job, facts = build()
        values = [job.step(number) for number in range(WARM_UP_STEPS)]
        if why := _wrong_at_start(values, known):
            return _fail(beats, why, WRONG)
        print(json.dumps(asdict(asked) | {"parameters": job.parameters, "value": values[-1]} | dict(facts)), flush=True)
        why = _cycle(job, beats, standing, asked, values, Profiler.wanted(job.tracer), arrivals)
    except (PageError, Unusable) as error:
        return _fail(beats, str(error), 2)
    except BaseException:
        beats.failed()
        raise
    if why:
        return _fail(beats, why, WRONG)
    leave(beats)
    return 0


def _cycle(
    job: Job,
    beats: Writer,
    standing: Standing,
    asked: AnyJob,
    first: list[float],
    profiler: Profiler | None,
    arrivals: Arrivals | None,
) -> str:
    """Beat once a step until the limit or SIGTERM; return what is wrong with the result, or ""."""
    ending = Ending(beats)

    def leaving() -> bool:
        standing.stand(leaving=lambda: ending.told)  # nothing is queued: each step has waited for its value
        return ending.told

    beats.ready()
    last = list(first)
    for number in itertools.count(WARM_UP_STEPS):
        done = number - WARM_UP_STEPS
        if leaving() or done == asked.steps or (arrivals and not arrivals.wait(leaving)):
            break
        value = job.step(number)
        if arrivals:
            arrivals.answered()
        beats.beat()
        if profiler is not None:
            profiler.step_is_over()
        if not math.isfinite(value):
            return f"Step {number} gave {value}, which is no result."
        last = [*last[1:], value]
    if not asked.training:
        return _changed(first[0], job.again())
    return _not_learnt(first, last) if done >= LEARNT_AFTER else ""


def _wrong_at_start(values: list[float], known: float | None) -> str:
    if not all(map(math.isfinite, values)):
        return f"The warm-up steps gave {values}, which is no result."
    if known is not None and not math.isclose(values[-1], known, rel_tol=TOLERANCE):
        return (
            f"Step {WARM_UP_STEPS} gave {values[-1]:.6g} instead of {known:.6g}: this framework computes differently."
        )
    return ""


def _changed(first: float, now: float) -> str:
    if math.isclose(first, now, rel_tol=SAME):
        return ""
    return f"Inference of the first batch gives {now:.6g} now and gave {first:.6g} at the start."


def _not_learnt(first: list[float], last: list[float]) -> str:
    before, after = sum(first) / len(first), sum(last) / len(last)
    return "" if after < before else f"The loss is {after:.6g} and was {before:.6g} at the start: nothing was learnt."


def _fail(beats: Writer, sentence: str, status: int) -> int:
    beats.failed()
    print(sentence, file=sys.stderr)
    return status
