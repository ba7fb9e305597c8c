"""Build a job's task, model, optimizer and batches from the Model Garden's own configurations."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tf_keras
from official.core import base_task, exp_factory, task_factory
from official.core.config_definitions import ExperimentConfig

from castmates.workloads.tfmodels.jobs import SHAPES, Shape

SEED = 20

# Nested tuples and dictionaries of tensors, as the task's own input pipeline would give them.
Batch = tf.Tensor | tuple["Batch", ...] | dict[str, "Batch"]


@dataclass(frozen=True)
class Job:
    """What a step needs: the task, its model, its optimizer, and the batches to cycle through."""

    task: base_task.Task
    model: tf_keras.Model
    optimizer: tf_keras.optimizers.Optimizer | None  # None where the model carries its own
    batch: int
    batches: list[Batch]
    features: Callable[[Batch], Batch]  # what of a batch the model itself takes


def build(name: str, size: str, batch: int | None) -> Job:
    """Build the named job, with the given batch size in place of its usual one."""
    shape = SHAPES[name, size]
    tf.random.set_seed(SEED)
    return BUILDERS[name](shape, batch or shape.batch, np.random.default_rng(SEED))


def _dlrm(shape: Shape, batch: int, rng: np.random.Generator) -> Job:
    from official.recommendation.ranking import task as ranking

    rows = [shape.details["rows"]] * shape.details["tables"]
    dim = shape.details["dim"]
    config = exp_factory.get_exp_config("dlrm_criteo")
    model_config = {
        "vocab_sizes": rows,
        "embedding_dim": dim,
        "bottom_mlp": [256, 64, dim],
        "top_mlp": [256, 128, 1],
        "size_threshold": -1,  # ordinary Keras embeddings for every table: the other sort needs a TPU
    }
    config.override({"task": {"model": model_config, "train_data": {"global_batch_size": batch}}})
    task = ranking.RankingTask(config.task, config.trainer)
    model = task.build_model()

    def draw() -> Batch:
        dense = tf.constant(rng.random((batch, config.task.model.num_dense_features), dtype=np.float32))
        ids = {str(i): _integers(rng, rows[i], (batch,)) for i in range(len(rows))}
        clicked = tf.constant(rng.integers(0, 2, (batch,)).astype(np.float32))
        return {"dense_features": dense, "sparse_features": ids}, clicked

    return Job(task, model, None, batch, [draw() for _ in range(shape.batches)], lambda pair: pair[0])


def _mobilenetv2(shape: Shape, batch: int, rng: np.random.Generator) -> Job:
    from official.vision.configs import image_classification as _configs  # noqa: F401  (registers itself)
    from official.vision.tasks import image_classification as _tasks  # noqa: F401

    side, classes = shape.details["side"], shape.details["classes"]
    config = exp_factory.get_exp_config("mobilenet_imagenet")
    data = {"global_batch_size": batch}
    model_config = {"input_size": [side, side, 3], "num_classes": classes}
    # The configuration's own rule, 0.008 for 128 examples, or the loss of so small a batch runs away.
    learning_rate = {"exponential": {"initial_learning_rate": 0.008 * batch / 128}}
    config.override(
        {
            "task": {"model": model_config, "train_data": data, "validation_data": data},
            "trainer": {"optimizer_config": {"learning_rate": learning_rate}},
        }
    )
    task = task_factory.get_task(config.task)

    def draw() -> Batch:
        images = tf.constant(rng.standard_normal((batch, side, side, 3), dtype=np.float32))
        return images, _integers(rng, classes, (batch,))

    return _with_optimizer(config, task, batch, [draw() for _ in range(shape.batches)], lambda pair: pair[0])


def _bert(shape: Shape, batch: int, rng: np.random.Generator) -> Job:
    from official.nlp.configs import pretraining_experiments as _configs  # noqa: F401  (registers itself)

    sequence, width = shape.details["sequence"], shape.details["width"]
    vocabulary, masked = shape.details["vocabulary"], shape.details["sequence"] // 8
    config = exp_factory.get_exp_config("bert/pretraining")
    encoder = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_layers": shape.details["layers"],
        "num_attention_heads": shape.details["heads"],
        "intermediate_size": 4 * width,
        "max_position_embeddings": sequence,
    }
    head = {"inner_dim": width, "num_classes": 2, "dropout_rate": 0.1, "name": "next_sentence"}
    config.override(
        {
            "task": {
                "model": {"encoder": {"type": "bert", "bert": encoder}, "cls_heads": [head]},
                "train_data": {
                    "global_batch_size": batch,
                    "seq_length": sequence,
                    "max_predictions_per_seq": masked,
                    "use_next_sentence_label": True,
                },
            },
            # The package leaves these two to the user's own file.
            "trainer": {
                "optimizer_config": {
                    "learning_rate": {"polynomial": {"decay_steps": 1_000_000}},
                    "warmup": {"polynomial": {"warmup_steps": 10_000}},
                }
            },
        }
    )
    task = task_factory.get_task(config.task)

    def draw() -> Batch:
        return {
            "input_word_ids": _integers(rng, vocabulary, (batch, sequence)),
            "input_mask": tf.ones((batch, sequence), tf.int32),
            "input_type_ids": tf.zeros((batch, sequence), tf.int32),
            "masked_lm_positions": _integers(rng, sequence, (batch, masked)),
            "masked_lm_ids": _integers(rng, vocabulary, (batch, masked)),
            "masked_lm_weights": tf.ones((batch, masked)),
            "next_sentence_labels": _integers(rng, 2, (batch, 1)),
        }

    return _with_optimizer(config, task, batch, [draw() for _ in range(shape.batches)], lambda inputs: inputs)


def _with_optimizer(
    config: ExperimentConfig,
    task: base_task.Task,
    batch: int,
    batches: list[Batch],
    features: Callable[[Batch], Batch],
) -> Job:
    """Finish a job whose optimizer is the one that its configuration describes."""
    optimizer = task.create_optimizer(config.trainer.optimizer_config, config.runtime)
    return Job(task, task.build_model(), optimizer, batch, batches, features)


def _integers(rng: np.random.Generator, below: int, shape: tuple[int, ...]) -> tf.Tensor:
    return tf.constant(rng.integers(0, below, shape, dtype=np.int32))


BUILDERS = {"dlrm": _dlrm, "mobilenetv2": _mobilenetv2, "bert": _bert}
