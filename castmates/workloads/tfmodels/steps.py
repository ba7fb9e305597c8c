"""One training or inference step of a job as a single compiled function, and the same with its phases marked."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from castmates.workloads.tfmodels.job import Batch, Job
from castmates.workloads.tfmodels.wish import Wish


def compiled(job: Job, wish: Wish) -> Callable[[Batch], None]:
    """Return a function that runs one step on a batch and comes back when the step is really done."""
    step = tf.function(_step(job, wish), jit_compile=wish.xla or None)

    def run(batch: Batch) -> None:
        # Fetching a result to the host is what makes the step complete.
        tf.nest.flatten(step(batch))[0].numpy()

    return run


def marked(job: Job, wish: Wish) -> Callable[[Batch], tuple[float, ...]]:
    """Return a function that runs one step and says how many seconds each of its phases took.

    Training: forward, backward, optimizer (with the metrics); inference: forward.
    """
    plain = _step(job, wish)
    marks: list[tf.Tensor] = []

    def with_marks(batch: Batch) -> tuple[tf.Tensor, list[tf.Tensor]]:
        marks.clear()
        with _gradient_marked(marks):
            result = plain(batch)
        return tf.nest.flatten(result)[0], list(marks)

    step = tf.function(with_marks)

    def run(batch: Batch) -> tuple[float, ...]:
        begin = float(tf.timestamp())  # the clock of the marks, which TensorFlow has no steady one for
        result, inside = step(batch)
        result.numpy()
        stamps = [begin, *(float(mark) for mark in inside), float(tf.timestamp())]
        return tuple(after - before for before, after in itertools.pairwise(stamps))

    return run


def _step(job: Job, wish: Wish) -> Callable[[Batch], Any]:
    """Forward, loss, gradient and optimizer, or forward only, as the package's own task does them."""
    if not wish.training:
        return lambda batch: job.task.inference_step(job.features(batch), job.model)
    if job.optimizer is None:  # a ranking model carries its optimizer and metrics in itself
        return lambda batch: job.task.train_step(batch, job.model, None, job.model.metrics)
    metrics = job.task.build_metrics(training=True)
    return lambda batch: job.task.train_step(batch, model=job.model, optimizer=job.optimizer, metrics=metrics)


@contextlib.contextmanager
def _gradient_marked(marks: list[tf.Tensor]) -> Iterator[None]:
    """Read the clock before and after the gradient of the step that is traced meanwhile.

    Splitting a step into separate calls costs up to 40 %. Reading the clock under control dependencies inside the one
    function leaves the package's own step as it is, and what it does between the marks in place.
    """
    original = tf.GradientTape.gradient

    def gradient(tape: tf.GradientTape, target: tf.Tensor, sources: Any, *rest: Any, **more: Any) -> Any:
        with tf.control_dependencies([target]):
            marks.append(tf.timestamp())
        with tf.control_dependencies([marks[-1]]):
            seed = tf.ones_like(target)
        found = original(tape, target, sources, seed, *rest, **more)
        parts = [part for part in tf.nest.flatten(found, expand_composites=True) if part is not None]
        with tf.control_dependencies(parts):
            marks.append(tf.timestamp())
        with tf.control_dependencies([marks[-1]]):  # so that the optimizer begins after the mark
            return tf.nest.map_structure(
                lambda part: None if part is None else tf.identity(part), found, expand_composites=True
            )

    tf.GradientTape.gradient = gradient
    try:
        yield
    finally:
        tf.GradientTape.gradient = original
