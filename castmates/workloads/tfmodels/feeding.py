"""Where a job's batches come from: its records, read and decoded by the package's own pipeline, or memory."""

import contextlib
import itertools
import sys
from collections.abc import Iterator

import tensorflow as tf

from castmates.workloads.tfmodels.job import Batch, Job
from castmates.workloads.tfmodels.wish import Wish


def batches(job: Job, wish: Wish) -> Iterator[Batch]:
    """Give batches for ever."""
    if wish.source == "memory":
        return itertools.cycle([job.draw() for _ in range(wish.shape.batches)])
    with contextlib.redirect_stdout(sys.stderr):  # the translation task's reader prints what it reads
        dataset = job.task.build_inputs(job.reading)
    if not wish.training:
        dataset = dataset.repeat()  # the package reads what it evaluates once
    options = tf.data.Options()
    # As many threads as the job is given, and no more: reading and decoding are part of its load.
    options.threading.private_threadpool_size = wish.threads
    options.threading.max_intra_op_parallelism = 1
    return iter(dataset.with_options(options))
