"""Click prediction: DLRM."""

import numpy as np
import tensorflow as tf
from official.core import exp_factory
from official.recommendation.ranking import task as ranking

from castmates.workloads.tfmodels.job import Batch, Job, integers, reading
from castmates.workloads.tfmodels.wish import Wish

TABLES = 26  # of Criteo's click logs


def _dlrm(wish: Wish, rng: np.random.Generator) -> Job:
    shape = wish.shape.details
    config = exp_factory.get_exp_config("dlrm_criteo")
    most = wish.rows or shape["rows"]
    model = {"size_threshold": -1}
    if shape.get("criteo"):
        model["vocab_sizes"] = rows = [min(most, table) for table in config.task.model.vocab_sizes]
    else:
        dim = shape["dim"]
        model |= {"embedding_dim": dim, "bottom_mlp": [256, 64, dim], "top_mlp": [256, 128, 1]}
        model["vocab_sizes"] = rows = [most] * TABLES
    config.override({"task": {"model": model, "train_data": reading(wish)}})
    task = ranking.RankingTask(config.task, config.trainer)

    def draw() -> Batch:
        dense = tf.constant(rng.random((wish.batch, config.task.model.num_dense_features), dtype=np.float32))
        ids = {str(i): integers(rng, table, (wish.batch,)) for i, table in enumerate(rows)}
        clicked = tf.constant(rng.integers(0, 2, (wish.batch, 1)).astype(np.float32))
        return {"dense_features": dense, "sparse_features": ids}, clicked

    return Job(task, task.build_model(), None, config.task.train_data, draw, lambda pair: pair[0])


BUILDERS = {"dlrm": _dlrm}
