"""Traces steps of a JAX program with JAX's own profiler, which writes an XSpace as TensorFlow does."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import jax

from castmates.workloads.jobs.tracing import INPUT, STEP, Mark, Marked

if TYPE_CHECKING:
    from castmates.workloads.jobs.data import Batch  # which needs NumPy; a program that is followed may lack it


class Profile:
    """JAX's profiler without Python's calls, which would slow steps down."""

    failures = (RuntimeError,)

    def start(self, folder: Path) -> None:
        """Begin a trace."""
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        jax.profiler.start_trace(folder, profiler_options=options)

    def step(self, number: int) -> Mark:
        """Mark what happens inside as a step."""
        mark: Mark = jax.profiler.StepTraceAnnotation(STEP, step_num=number)
        return mark

    def stop(self) -> None:
        """End the trace and write it."""
        jax.profiler.stop_trace()

    def threads(self) -> tuple[int, int]:
        """XLA has one pool: its threads work for one operation, or for several side by side."""
        threads = int(os.environ.get("NPROC") or len(os.sched_getaffinity(0)))
        return threads, threads


class Traced(Protocol):
    """What is traced of a job."""

    batches: "Iterator[Batch]"


class JaxTracer(Profile):
    """The profiler of our own jobs, which also marks the wait for a batch."""

    def __init__(self, job: Traced) -> None:
        self._job = job

    def start(self, folder: Path) -> None:
        """Begin a trace."""
        super().start(folder)
        self._job.batches = Marked(self._job.batches, lambda: jax.profiler.TraceAnnotation(INPUT))

    def stop(self) -> None:
        """End it."""
        if isinstance(self._job.batches, Marked):
            self._job.batches = self._job.batches.batches
        super().stop()
