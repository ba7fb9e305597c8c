"""Inference of a job by TensorFlow Lite (XNNPACK on a CPU): in 32-bit floats, or quantised to 8-bit integers.

The package's own model is converted when the job starts; its weights are those that it begins with. Quantisation is
that of TensorFlow Lite after training: weights and activations are 8-bit integers, whose ranges come from made-up
batches. Batches come in and results go out as floats, so that a step is the same work in both.
"""

from collections.abc import Callable, Iterator

import tensorflow as tf

from castmates.workloads.tfmodels.job import Batch, Job
from castmates.workloads.tfmodels.wish import Wish

CALIBRATED_BY = 4  # batches, from which the ranges of activations come


def compiled(job: Job, wish: Wish) -> Callable[[Batch], None]:
    """Return a function that runs one step on a batch and comes back when its result is there."""
    images = job.features(job.draw())
    interpreter = tf.lite.Interpreter(model_content=_converted(job, wish, images), num_threads=wish.threads)
    interpreter.allocate_tensors()
    taken, given = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def run(batch: Batch) -> None:
        interpreter.set_tensor(taken, job.features(batch).numpy())
        interpreter.invoke()
        interpreter.get_tensor(given)

    return run


def _converted(job: Job, wish: Wish, images: tf.Tensor) -> bytes:
    step = tf.function(lambda batch: job.task.inference_step(batch, job.model), autograph=False)
    whole = step.get_concrete_function(tf.TensorSpec(images.shape, images.dtype))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([whole], job.model)
    if wish.precision == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: _batches(job)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]  # an operation without fails
    made: bytes = converter.convert()
    return made


def _batches(job: Job) -> Iterator[list[tf.Tensor]]:
    for _ in range(CALIBRATED_BY):
        yield [job.features(job.draw())]
