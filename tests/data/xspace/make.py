"""Make tiny.xplane.pb.gz: two steps of a very small model under TensorFlow's profiler, in the tfmodels environment."""

import gzip
import os
import tempfile
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
import tf_keras

from castmates.workloads.tfmodels.xspace import STEP

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
model = tf_keras.Sequential(
    [
        tf_keras.layers.Conv2D(8, 3, use_bias=False, input_shape=(16, 16, 3)),
        tf_keras.layers.BatchNormalization(),
        tf_keras.layers.ReLU(),
        tf_keras.layers.MaxPooling2D(),
        tf_keras.layers.Flatten(),
        tf_keras.layers.Dense(4),
    ],
    name="tiny_model",
)
optimizer = tf_keras.optimizers.SGD(0.1)


@tf.function
def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Train on a batch."""
    with tf.GradientTape() as tape:
        found = model(images, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, found))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


options = tf.data.Options()
options.threading.private_threadpool_size = 1
batches = iter(
    tf.data.Dataset.range(10**6)
    .map(lambda number: (tf.random.stateless_uniform((16, 16, 3), (number, 1)), number % 4), num_parallel_calls=1)
    .batch(4)
    .prefetch(1)
    .with_options(options)
)
for _ in range(5):
    step(*next(batches)).numpy()
with tempfile.TemporaryDirectory() as folder:
    tf.profiler.experimental.start(folder)
    for number in range(2):
        with tf.profiler.experimental.Trace(STEP, step_num=number, _r=1):
            step(*next(batches)).numpy()
    tf.profiler.experimental.stop()
    (trace,) = Path(folder).rglob("*.xplane.pb")
    Path(__file__).with_name("tiny.xplane.pb.gz").write_bytes(gzip.compress(trace.read_bytes(), 9, mtime=0))
