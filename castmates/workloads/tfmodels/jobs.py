"""The jobs: which Model Garden models there are and in which sizes; plain data, no TensorFlow."""

from dataclasses import dataclass, field
from typing import Any

SIZES = ("tiny", "small", "full")
MODES = ("train", "infer")


@dataclass(frozen=True, slots=True)
class Shape:
    """One model in one size: its batch, how many batches are cycled in memory, and what the builder needs to know."""

    summary: str
    batch: int
    batches: int
    inputs: str  # the data set of castmates/workloads/inputs.py that fits
    details: dict[str, Any] = field(default_factory=dict)


def _images(side: int, classes: int, inputs: str, batch: int, what: str = "") -> Shape:
    summary = f"{what}images of {side} × {side}, {classes:_} classes".replace("_", " ")
    return Shape(summary, batch, 8, inputs, {"side": side, "classes": classes})


def _scenes(side: int, inputs: str, batch: int) -> Shape:
    return Shape(f"images of {side} × {side}, 21 classes of pixels", batch, 8, inputs, {"side": side, "classes": 21})


def _bert(layers: int, width: int, heads: int, sequence: int, masked: int, vocabulary: int, inputs: str) -> Shape:
    details = {"layers": layers, "width": width, "heads": heads}
    details |= {"sequence": sequence, "masked": masked, "vocabulary": vocabulary}
    return Shape(f"{layers} layers of width {width}, sequences of {sequence}", 8, 8, inputs, details)


def _transformer(layers: int, width: int, heads: int, sequence: int, batch: int, inputs: str) -> Shape:
    details = {"layers": layers, "width": width, "heads": heads, "sequence": sequence}
    return Shape(f"{layers} + {layers} layers of width {width}, sentences of {sequence}", batch, 8, inputs, details)


# `full` is the paper's own shape with a batch that a few cores can hold. A DLRM step reads only the embedding rows
# that its batch names: 64 batches are cycled in memory, so that lookups range over tens of megabytes as click logs'.
SHAPES: dict[tuple[str, str], Shape] = {
    ("dlrm", "tiny"): Shape(
        "26 tables of 5 000 rows, dimension 16", 256, 64, "tfmodels-clicks-tiny", {"rows": 5_000, "dim": 16}
    ),
    ("dlrm", "small"): Shape(
        "26 tables of 200 000 rows, dimension 32", 256, 64, "tfmodels-clicks", {"rows": 200_000, "dim": 32}
    ),
    ("dlrm", "full"): Shape(
        "Criteo's 26 tables, cut at 1 000 000 rows, dimension 64",
        2048,
        16,
        "tfmodels-clicks-full",
        {"rows": 1_000_000, "criteo": True},
    ),
    ("resnet50", "tiny"): _images(32, 100, "tfmodels-images", 4),
    ("resnet50", "small"): _images(96, 100, "tfmodels-images", 4),
    ("resnet50", "full"): _images(224, 1001, "tfmodels-images-full", 8),
    ("mobilenetv2", "tiny"): _images(64, 100, "tfmodels-images", 4),
    ("mobilenetv2", "small"): _images(96, 100, "tfmodels-images", 8),
    ("mobilenetv2", "full"): _images(224, 1001, "tfmodels-images-full", 16),
    ("mobilenetv3", "tiny"): _images(64, 100, "tfmodels-images", 4, "V3 Small, "),
    ("mobilenetv3", "small"): _images(96, 100, "tfmodels-images", 8, "V3 Small, "),
    ("mobilenetv3", "full"): _images(224, 1001, "tfmodels-images-full", 16, "V3 Large, "),
    ("deeplabv3", "tiny"): _scenes(128, "tfmodels-scenes", 2),
    ("deeplabv3", "small"): _scenes(256, "tfmodels-scenes", 2),
    ("deeplabv3", "full"): _scenes(512, "tfmodels-scenes-full", 4),
    ("bert", "tiny"): _bert(2, 128, 2, 64, 8, 8_000, "tfmodels-tokens"),
    ("bert", "small"): _bert(4, 256, 4, 64, 8, 8_000, "tfmodels-tokens"),
    ("bert", "full"): _bert(12, 768, 12, 128, 20, 30_522, "tfmodels-tokens-full"),
    ("transformer", "tiny"): _transformer(2, 128, 4, 32, 8, "tfmodels-sentences"),
    ("transformer", "small"): _transformer(3, 256, 4, 32, 8, "tfmodels-sentences"),
    ("transformer", "full"): _transformer(6, 512, 8, 64, 16, "tfmodels-sentences-full"),
}
MODELS = tuple(dict.fromkeys(model for model, _ in SHAPES))


def listing() -> str:
    """List in a few lines which jobs there are."""
    width = max(len(model) for model in MODELS)
    return "\n".join(
        f"--model {model:{width}} --size {size:5}  {shape.summary}, batch {shape.batch} (data: {shape.inputs})"
        for (model, size), shape in SHAPES.items()
    )
