"""Image classification and segmentation: ResNet-50, MobileNet V2 and V3, DeepLab V3 on MobileNet V2."""

from typing import Any

import numpy as np
import tensorflow as tf
from official.core import exp_factory, task_factory

from castmates.workloads.tfmodels.job import Batch, Job, assemble, integers, shuffled
from castmates.workloads.tfmodels.wish import Wish


def _resnet50(wish: Wish, rng: np.random.Generator) -> Job:
    # The configuration's own rule, 0.1 for 256 examples, or the loss of so small a batch runs away.
    rates = [0.1 * wish.batch / 256 * factor for factor in (1, 0.1, 0.01, 0.001)]
    return _classification("resnet_imagenet", wish, rng, {}, {"stepwise": {"values": rates}})


def _mobilenet(version: str, wish: Wish, rng: np.random.Generator) -> Job:
    backbone = {"backbone": {"mobilenet": {"model_id": version, "filter_size_scale": wish.width}}}
    rate = {"exponential": {"initial_learning_rate": 0.008 * wish.batch / 128}}  # again 0.008 for 128
    return _classification("mobilenet_imagenet", wish, rng, backbone, rate)


def _mobilenetv2(wish: Wish, rng: np.random.Generator) -> Job:
    return _mobilenet("MobileNetV2", wish, rng)


def _mobilenetv3(wish: Wish, rng: np.random.Generator) -> Job:
    return _mobilenet("MobileNetV3Large" if wish.size == "full" else "MobileNetV3Small", wish, rng)


def _classification(
    experiment: str, wish: Wish, rng: np.random.Generator, model: dict[str, Any], rate: dict[str, Any]
) -> Job:
    from official.vision.configs import image_classification as _configs  # noqa: F401  (registers itself)
    from official.vision.tasks import image_classification as _tasks  # noqa: F401

    side, classes = wish.shape.details["side"], wish.shape.details["classes"]
    config = exp_factory.get_exp_config(experiment)
    model = {"input_size": [side, side, 3], "num_classes": classes} | model
    config.override(
        {
            "task": {"model": model, "train_data": shuffled(wish)},
            "trainer": {"optimizer_config": {"learning_rate": rate}},
        }
    )
    task = task_factory.get_task(config.task)

    def draw() -> Batch:
        return _pixels(rng, wish.batch, side), integers(rng, classes, (wish.batch,))

    return assemble(config, task, config.task.train_data, draw, lambda pair: pair[0])


def _deeplabv3(wish: Wish, rng: np.random.Generator) -> Job:
    from official.vision.configs import semantic_segmentation as _configs  # noqa: F401  (registers itself)
    from official.vision.tasks import semantic_segmentation as _tasks  # noqa: F401

    side, classes = wish.shape.details["side"], wish.shape.details["classes"]
    config = exp_factory.get_exp_config("mnv2_deeplabv3_pascal")
    model = {"input_size": [side, side, 3], "num_classes": classes}
    data = shuffled(wish, output_size=[side, side])
    config.override({"task": {"model": model, "train_data": data, "init_checkpoint": None}})
    task = task_factory.get_task(config.task)

    def draw() -> Batch:
        masks = tf.constant(rng.integers(0, classes, (wish.batch, side, side, 1)).astype(np.float32))
        info = tf.constant([[[side, side], [side, side], [1, 1], [0, 0]]] * wish.batch, tf.float32)
        labels = {"masks": masks, "valid_masks": tf.ones_like(masks, tf.bool), "image_info": info}
        return _pixels(rng, wish.batch, side), labels

    return assemble(config, task, config.task.train_data, draw, lambda pair: pair[0])


def _pixels(rng: np.random.Generator, batch: int, side: int) -> tf.Tensor:
    return tf.constant(rng.standard_normal((batch, side, side, 3), dtype=np.float32))


BUILDERS = {
    "resnet50": _resnet50,
    "mobilenetv2": _mobilenetv2,
    "mobilenetv3": _mobilenetv3,
    "deeplabv3": _deeplabv3,
}
