"""Settings of the TensorFlow runtime that must be made before, and right after, its import."""

import logging
import os
import warnings
from types import ModuleType


def prepare(threads: int) -> None:
    """Set what TensorFlow reads from the environment when it is imported."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the Model Garden is written for Keras 2
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[pool] = str(threads)
    warnings.filterwarnings("ignore")


def tensorflow(threads: int) -> ModuleType:
    """Import TensorFlow, give its two pools this many threads and keep it quiet."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    return tf
