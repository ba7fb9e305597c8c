"""Settings of the TensorFlow runtime that must be made before, and right after, its import."""

import logging
import os
import warnings
from typing import Any


def prepare(threads: int, *, onednn: bool, device: str) -> None:
    """Set what TensorFlow reads from the environment when it is imported."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the Model Garden is written for Keras 2
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1" if onednn else "0"
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[pool] = str(threads)
    warnings.filterwarnings("ignore")


def tensorflow(threads: int, inter_threads: int) -> Any:
    """Import TensorFlow, give its two pools this many threads and keep it quiet."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(inter_threads)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    return tf


def where_to_run(error: ModuleNotFoundError) -> str:
    """Print in one sentence what to do where TensorFlow or the Model Garden is missing."""
    return (
        f"This Python has no module '{error.name}': run the job in the tfmodels environment "
        "(castmates internals build-environment tfmodels)."
    )
