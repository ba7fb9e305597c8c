"""One training or inference step of a job as a single compiled function."""

from collections.abc import Callable

import tensorflow as tf

from castmates.workloads.tfmodels.models import Batch, Job


def compiled(job: Job, mode: str) -> Callable[[Batch], None]:
    """Return a function that runs one step on a batch and comes back when the step is really done."""
    step = tf.function(_training(job) if mode == "train" else _inference(job))

    def run(batch: Batch) -> None:
        # Fetching a result to the host is what makes the step complete.
        tf.nest.flatten(step(batch))[0].numpy()

    return run


def _training(job: Job) -> Callable[[Batch], Batch]:
    """Forward, loss, gradient and optimizer, as the package's own task does them."""
    if job.optimizer is None:  # a ranking model carries its optimizer and metrics in itself
        return lambda batch: job.task.train_step(batch, job.model, None, job.model.metrics)
    metrics = job.task.build_metrics(training=True)
    return lambda batch: job.task.train_step(batch, model=job.model, optimizer=job.optimizer, metrics=metrics)


def _inference(job: Job) -> Callable[[Batch], Batch]:
    """Forward only."""
    return lambda batch: job.task.inference_step(job.features(batch), job.model)
