"""BERT pre-training and the seq2seq Transformer."""

import numpy as np
import tensorflow as tf
from official.core import exp_factory, task_factory

from castmates.workloads.tfmodels.job import Batch, Job, assemble, integers, shuffled
from castmates.workloads.tfmodels.wish import Wish


def _bert(wish: Wish, rng: np.random.Generator) -> Job:
    from official.nlp.configs import pretraining_experiments as _configs  # noqa: F401  (registers itself)

    shape = wish.shape.details
    sequence, width, masked, vocabulary = shape["sequence"], shape["width"], shape["masked"], shape["vocabulary"]
    encoder = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "intermediate_size": 4 * width,
        "max_position_embeddings": sequence,
    }
    head = {"inner_dim": width, "num_classes": 2, "dropout_rate": 0.1, "name": "next_sentence"}
    data = shuffled(wish, seq_length=sequence, max_predictions_per_seq=masked, use_next_sentence_label=True)
    config = exp_factory.get_exp_config("bert/pretraining")
    config.override(
        {
            "task": {
                "model": {"encoder": {"type": "bert", "bert": encoder}, "cls_heads": [head]},
                "train_data": data,
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
            "input_word_ids": integers(rng, vocabulary, (wish.batch, sequence)),
            "input_mask": tf.ones((wish.batch, sequence), tf.int32),
            "input_type_ids": tf.zeros((wish.batch, sequence), tf.int32),
            "masked_lm_positions": integers(rng, sequence, (wish.batch, masked)),
            "masked_lm_ids": integers(rng, vocabulary, (wish.batch, masked)),
            "masked_lm_weights": tf.ones((wish.batch, masked)),
            "next_sentence_labels": integers(rng, 2, (wish.batch, 1)),
        }

    return assemble(config, task, config.task.train_data, draw, lambda inputs: inputs)


def _transformer(wish: Wish, rng: np.random.Generator) -> Job:
    from official.nlp.configs import wmt_transformer_experiments as _configs  # noqa: F401  (registers itself)

    shape = wish.shape.details
    sequence, width = shape["sequence"], shape["width"]
    part = {"num_layers": shape["layers"], "num_attention_heads": shape["heads"], "intermediate_size": 4 * width}
    # In training the package counts a batch in tokens. Inference decodes the same sentences by beam search.
    data = shuffled(wish, is_training=True, global_batch_size=wish.batch * sequence, max_seq_length=sequence)
    config = exp_factory.get_exp_config("wmt_transformer/large")
    config.override(
        {
            "task": {
                "model": {"encoder": part, "decoder": part, "embedding_width": width, "decode_max_length": sequence},
                "train_data": data | {"tfds_name": "", "tfds_split": "", "static_batch": True},
                "sentencepiece_model_path": str(wish.vocabulary),
            },
            "trainer": {"optimizer_config": {"learning_rate": {"power": {"initial_learning_rate": 2.0 * width**-0.5}}}},
        }
    )
    task = task_factory.get_task(config.task)

    def draw() -> Batch:
        sentences = (wish.batch, sequence)
        vocabulary = task._vocab_size  # the task keeps what it read to itself
        return {part: 2 + integers(rng, vocabulary - 2, sentences) for part in ("inputs", "targets")}

    return assemble(config, task, config.task.train_data, draw, lambda batch: {"inputs": batch["inputs"]})


BUILDERS = {"bert": _bert, "transformer": _transformer}
