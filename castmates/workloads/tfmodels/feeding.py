"""Where a job's batches come from: its records, read and decoded by the package's own pipeline, or memory."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator

import tensorflow as tf

from castmates.workloads.tfmodels.job import Batch, Job
from castmates.workloads.tfmodels.wish import Wish


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
