"""Traces steps of a JAX job with JAX's own profiler, which writes an XSpace as TensorFlow does."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import jax

from castmates.workloads.jobs.data import Batch
from castmates.workloads.jobs.tracing import INPUT, STEP, Mark, Marked


class Traced(Protocol):
    """What is traced of a job."""

    batches: Iterator[Batch]


class JaxTracer:
    """JAX's profiler without Python's calls, which would slow steps down; the wait for a batch is marked."""

    failures = (RuntimeError,)

    def __init__(self, job: Traced) -> None:
        self._job = job
        self._options = jax.profiler.ProfileOptions()
        self._options.python_tracer_level = 0

    def start(self, folder: Path) -> None:
        """Begin a trace."""
        jax.profiler.start_trace(folder, profiler_options=self._options)
        self._job.batches = Marked(self._job.batches, lambda: jax.profiler.TraceAnnotation(INPUT))

    def step(self, number: int) -> Mark:
        """Mark what happens inside as a step."""
        return jax.profiler.StepTraceAnnotation(STEP, step_num=number)

    def stop(self) -> None:
        """End the trace and write it."""
        if isinstance(self._job.batches, Marked):
            self._job.batches = self._job.batches.batches
        jax.profiler.stop_trace()

    def threads(self) -> tuple[int, int]:
        """XLA has one pool: its threads work for one operation, or for several side by side."""
        threads = int(os.environ["NPROC"])
        return threads, threads
