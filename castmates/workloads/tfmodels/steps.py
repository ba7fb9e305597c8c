"""One training or inference step of a job as a single compiled function, and the same with its phases marked."""

from collections.abc import Callable
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
