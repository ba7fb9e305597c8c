"""One training or inference step of a job as a single compiled function, and the same with its phases marked."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from castmates.workloads.tfmodels import marks
from castmates.workloads.tfmodels.job import Batch, Job
from castmates.workloads.tfmodels.wish import Wish


def compiled(job: Job, wish: Wish) -> Callable[[Batch], None]:
    """Return a function that runs one step on a batch and comes back when the step is really done.

    The graph is traced without AutoGraph, which would first translate the package's Python for as much as a second: no
    step of these jobs branches on a tensor, and one that did would be refused while it is traced.
    """
    step = tf.function(_step(job, wish), jit_compile=wish.xla or None, autograph=False)

    def run(batch: Batch) -> None:
        # Fetching a result to the host is what makes the step complete.
        tf.nest.flatten(step(batch))[0].numpy()

    return run


def marked(job: Job, wish: Wish) -> Callable[[Batch], list[float]]:
    """Return a function that runs one step and gives its marks: where forward, and where backward, ends.

    They are seconds of the wall's clock; a step of inference has none.
    """
    plain = _step(job, wish)

    def with_marks(batch: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        found: list[tf.Tensor] = []
        with marks.gradient_marked(found.append):
            result = plain(batch)
        return tf.nest.flatten(result)[0], tf.stack(found) if found else tf.zeros(0, tf.float64)

    step = tf.function(with_marks, autograph=False)

    def run(batch: Batch) -> list[float]:
        result, inside = step(batch)
        result.numpy()
        return inside.numpy().tolist()

    return run


def _step(job: Job, wish: Wish) -> Callable[[Batch], Any]:
    """Forward, loss, gradient and optimizer, or forward only, as the package's own task does them."""
    if not wish.training:
        return lambda batch: job.task.inference_step(job.features(batch), job.model)
    if job.optimizer is None:  # a ranking model carries its optimizer and metrics in itself
        return lambda batch: job.task.train_step(batch, job.model, None, job.model.metrics)
    metrics = job.task.build_metrics(training=True)
    return lambda batch: job.task.train_step(batch, model=job.model, optimizer=job.optimizer, metrics=metrics)


# Where a job's batches come from: its records, read and decoded by the package's own pipeline, or memory.


class Source(Iterator[Batch]):
    """Batches for ever; the first one is made at once, so that bad records are found before the first step."""

    def __init__(self, make: Callable[[], Iterator[Batch]]) -> None:
        self._make = make
        self._batches = make()
        self._looked_at = [next(self._batches)]

    def __next__(self) -> Batch:
        return self._looked_at.pop() if self._looked_at else next(self._batches)

    def close(self) -> None:
        """Let go of the pipeline: its threads end, and its files are closed."""
        self._batches = iter(())

    def begin_anew(self) -> None:
        """Read the records from the first one on; nothing is read before the next batch is asked for."""
        self._batches = self._make()


def batches(job: Job, wish: Wish) -> Source:
    """Give batches for ever."""
    if wish.source == "memory":
        drawn = [job.draw() for _ in range(wish.shape.batches)]
        return Source(lambda: itertools.cycle(drawn))
    return Source(lambda: _from_records(job, wish))


def _from_records(job: Job, wish: Wish) -> Iterator[Batch]:
    """Read them from the first one on; a pipeline that is not built anew would shuffle them in another order."""
    with contextlib.redirect_stdout(sys.stderr):  # the translation task's reader prints what it reads
        dataset = job.task.build_inputs(job.reading)
    if not wish.training:
        dataset = dataset.repeat()  # the package reads what it evaluates once
    options = tf.data.Options()
    # As many threads as the job is given, and no more: reading and decoding are part of its load.
    options.threading.private_threadpool_size = wish.threads
    options.threading.max_intra_op_parallelism = 1
    return iter(dataset.with_options(options))
