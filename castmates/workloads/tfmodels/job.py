"""What a step needs, and the builders that make it from the Model Garden's own configurations."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from official.core import base_task
from official.core.config_definitions import ExperimentConfig

from castmates.workloads.tfmodels.wish import Wish

SEED = 20

# Which module builds a model: only what the wanted one needs is imported.
BUILDERS = {
    "dlrm": "recommendation",
    "resnet50": "vision",
    "mobilenetv2": "vision",
    "mobilenetv3": "vision",
    "deeplabv3": "vision",
    "bert": "language",
    "transformer": "language",
}

Batch = Any  # nested tuples and dictionaries of tensors, as the task's own input pipeline gives them


@dataclass(frozen=True)
class Job:
    """The task, its model and optimizer, and where its batches come from."""

    task: base_task.Task
    model: tf_keras.Model
    optimizer: tf_keras.optimizers.Optimizer | None  # None where the model carries its own
    reading: Any  # the configuration that the task's own input pipeline is built from
    draw: Callable[[], Batch]  # a batch made up in memory, of the same form
    features: Callable[[Batch], Batch]  # what of a batch the model itself takes


def build(wish: Wish) -> Job:
    """Build the wanted job with the package's own factories."""
    tf.random.set_seed(SEED)
    if wish.precision == "mixed_bfloat16":
        tf_keras.mixed_precision.set_global_policy(wish.precision)
    builder = import_module(f"castmates.workloads.tfmodels.{BUILDERS[wish.model]}")
    job: Job = builder.BUILDERS[wish.model](wish, np.random.default_rng(SEED))
    return job


def assemble(
    config: ExperimentConfig,
    task: base_task.Task,
    reading: Any,
    draw: Callable[[], Batch],
    features: Callable[[Batch], Batch],
) -> Job:
    """Put a job together whose optimizer is the one that its configuration describes."""
    optimizer = task.create_optimizer(config.trainer.optimizer_config, config.runtime)
    return Job(task, task.build_model(), optimizer, reading, draw, features)


def reading(wish: Wish, **more: Any) -> dict[str, Any]:
    """Describe, in the words of a data configuration, how the records are read."""
    return {"input_path": wish.data or "", "global_batch_size": wish.batch, "is_training": wish.training} | more


def shuffled(wish: Wish, **more: Any) -> dict[str, Any]:
    """The same for readers that shuffle: from a fixed seed, in a buffer that holds no more than it must."""
    return reading(wish, seed=SEED, shuffle_buffer_size=256, **more)


def integers(rng: np.random.Generator, below: int, shape: tuple[int, ...]) -> tf.Tensor:
    """Draw whole numbers from 0 on."""
    return tf.constant(rng.integers(0, below, shape, dtype=np.int32))
