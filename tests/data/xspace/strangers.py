"""Trainings as anybody writes them, each with an input that is slow in one way or fast, under TensorFlow's profiler.

`python strangers.py LOOP INPUT OPTIMIZER FILE` leaves the trace of some steps, without unread events, and prints
how long the operations in the optimizer's scope took. LOOP: keras (Keras 2 with TF_USE_LEGACY_KERAS=1, else Keras 3),
function (a custom loop over a tf.function), inside (the same, which fetches its batch itself), eager. INPUT: fast, cpu,
sleep, numpy, generator, disk. It knows nothing of Castmates but the name of the marks around its steps.
"""

import gzip
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

LOOP, INPUT, OPTIMIZER, FILE = *sys.argv[1:4], Path(sys.argv[4])
BATCH, SIZE, STEPS, BEFORE = 8, 24, 3, 8
# Keras 2 marks its steps too, with `train`: XProf would count both.
UNREAD = re.compile(
    r"train|ThreadpoolListener.*|Memory(De)?[Aa]llocation|TFE_.*|EagerCopyToDevice|Validate.*|.*Produce|.*Consume"
)
STATS = ("step_num", "_r", "id", "iter_num", "_ct", "_c", "_pt", "_p")


def by_cpu(image, label):
    """Enlarge and shrink an image, some times over."""
    for _ in range(16):
        image = tf.image.resize(tf.image.resize(image, (256, 256), "bicubic"), (SIZE, SIZE), "area")
    return image, label


def by_sleep(image, label):
    def nap(given):
        time.sleep(0.005)
        return given

    image = tf.py_function(nap, [image], tf.float32)
    return tf.ensure_shape(image, (SIZE, SIZE, 3)), label


def by_numpy(image, label):
    def augment(given):
        for _ in range(150):
            given = np.sort(given, axis=0)[::-1].copy()
        return given

    image = tf.numpy_function(augment, [image], tf.float32)
    return tf.ensure_shape(image, (SIZE, SIZE, 3)), label


def by_disk(folder):
    """Read each example from a file of its own, which no cache holds."""
    one = np.random.default_rng(0).random((400, SIZE, SIZE, 3), np.float32).tobytes()
    for number in range(24):
        (folder / f"{number}.bin").write_bytes(one)

    def read(name):
        with Path(name.numpy().decode()).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            content = file.read()
        return np.frombuffer(content, np.float32)[: SIZE * SIZE * 3].reshape(SIZE, SIZE, 3)

    def load(name):
        image = tf.ensure_shape(tf.py_function(read, [name], tf.float32), (SIZE, SIZE, 3))
        return image, 0

    names = tf.data.Dataset.list_files(str(folder / "*.bin")).repeat()
    return names.map(load, num_parallel_calls=2).batch(BATCH).prefetch(2)


def by_generator():
    """What Python yields, one example at a time."""
    while True:
        time.sleep(0.005)
        yield np.zeros((SIZE, SIZE, 3), np.float32), 0


def dataset(folder):
    if INPUT == "disk":
        return by_disk(folder)
    if INPUT == "generator":
        shapes = tf.TensorSpec((SIZE, SIZE, 3), tf.float32), tf.TensorSpec((), tf.int32)
        return tf.data.Dataset.from_generator(by_generator, output_signature=shapes).batch(BATCH)
    images = np.random.default_rng(0).random((64, SIZE, SIZE, 3), np.float32)
    examples = tf.data.Dataset.from_tensor_slices((images, np.arange(64) % 10)).repeat()
    if INPUT == "fast":
        return examples.batch(BATCH).prefetch(2)
    how = {"cpu": by_cpu, "sleep": by_sleep, "numpy": by_numpy}[INPUT]
    if INPUT == "cpu":
        return examples.map(how, num_parallel_calls=2).batch(BATCH).prefetch(2)
    return examples.map(how).batch(BATCH)


def model_of(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu", input_shape=(SIZE, SIZE, 3)),
            layers.Conv2D(32, 3),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )


class Profiled:
    """Starts the profiler after some steps, marks those that follow, and stops it."""

    def __init__(self, folder):
        self.folder, self.done, self.mark = folder, 0, None

    def step(self):
        self.done += 1
        if self.mark is not None:
            self.mark.__exit__(None, None, None)
            self.mark = None
        if self.done == BEFORE:
            tf.profiler.experimental.start(str(self.folder))
        if BEFORE <= self.done < BEFORE + STEPS:
            self.mark = tf.profiler.experimental.Trace("castmates_step", step_num=self.done, _r=1)
            self.mark.__enter__()
        if self.done == BEFORE + STEPS:
            tf.profiler.experimental.stop()

    @property
    def ended(self):
        return self.done >= BEFORE + STEPS


def train(folder, profiled):
    keras = tf.keras
    data = dataset(folder)
    model = model_of(keras)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = eval(OPTIMIZER, vars(keras.optimizers))
    if LOOP == "keras":

        class Steps(keras.callbacks.Callback):
            def on_train_batch_end(self, *_):
                profiled.step()

        model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
        model.fit(data, steps_per_epoch=BEFORE + STEPS, epochs=1, verbose=0, callbacks=[Steps()])
        return model.optimizer.name

    def step(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        found = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
        return value

    if LOOP == "inside":
        iterator = iter(data)

        @tf.function
        def whole():
            return step(*next(iterator))

        while not profiled.ended:
            whole().numpy()
            profiled.step()
        return optimizer.name
    run = tf.function(step) if LOOP == "function" else step
    batches = iter(data)
    while not profiled.ended:
        run(*next(batches)).numpy()
        profiled.step()
    return optimizer.name


def reduced(content, optimizer):
    """The trace without what nobody reads, and the picoseconds of the optimizer's operations."""
    space, took = xplane_pb2.XSpace.FromString(content), 0
    host = next(plane for plane in space.planes if plane.name == "/host:CPU")
    for plane in [plane for plane in space.planes if plane is not host]:
        space.planes.remove(plane)
    names = {number: one.name for number, one in host.event_metadata.items()}
    stats = {number for number, one in host.stat_metadata.items() if one.name in STATS}
    used = set()
    for line in host.lines:
        kept = [event for event in line.events if not UNREAD.fullmatch(names[event.metadata_id])]
        for event in kept:
            few = [stat for stat in event.stats if stat.metadata_id in stats]
            del event.stats[:]
            event.stats.extend(few)
            of_optimizer = re.fullmatch(rf"(.*/)?{optimizer}/[^:]*:\w+", names[event.metadata_id], re.IGNORECASE)
            took += event.duration_ps if of_optimizer else 0
            used.add(event.metadata_id)
        del line.events[:]
        line.events.extend(kept)
    for number in set(names) - used:
        del host.event_metadata[number]
    for number in set(host.stat_metadata) - stats:
        del host.stat_metadata[number]
    return space.SerializeToString(), took


with tempfile.TemporaryDirectory() as place:
    profiled = Profiled(Path(place) / "profile")
    optimizer = train(Path(place), profiled)
    (trace,) = (Path(place) / "profile").rglob("*.xplane.pb")
    content, took = reduced(trace.read_bytes(), optimizer)
    FILE.write_bytes(gzip.compress(content, 9, mtime=0))
    print(json.dumps({"optimizer": optimizer, "optimizer_ps": took}), len(content), FILE.stat().st_size, flush=True)
os._exit(0)  # threads of the input may still be in Python
