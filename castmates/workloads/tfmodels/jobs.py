"""The jobs: which Model Garden models there are and in which sizes; plain data, no TensorFlow."""

from dataclasses import dataclass, field
from typing import Any

MODELS = ("dlrm", "mobilenetv2", "bert")
SIZES = ("tiny", "small")
MODES = ("train", "infer")


@dataclass(frozen=True, slots=True)
class Shape:
    """One model in one size: its batch, how many batches are cycled, and what the builder needs to know."""

    summary: str
    batch: int
    batches: int
    details: dict[str, Any] = field(default_factory=dict)


# A DLRM step reads only the embedding rows that its batch names. Many batches are cycled, so that
# the lookups range over tens of megabytes as real click logs make them do.
SHAPES: dict[tuple[str, str], Shape] = {
    ("dlrm", "tiny"): Shape("26 tables of 5 000 rows, dimension 16", 256, 64, {"tables": 26, "rows": 5_000, "dim": 16}),
    ("dlrm", "small"): Shape(
        "26 tables of 200 000 rows, dimension 32", 256, 64, {"tables": 26, "rows": 200_000, "dim": 32}
    ),
    ("mobilenetv2", "tiny"): Shape("images of 64 × 64, 100 classes", 4, 8, {"side": 64, "classes": 100}),
    ("mobilenetv2", "small"): Shape("images of 96 × 96, 100 classes", 8, 8, {"side": 96, "classes": 100}),
    ("bert", "tiny"): Shape(
        "2 layers of width 128, sequences of 64",
        8,
        8,
        {"layers": 2, "width": 128, "heads": 2, "sequence": 64, "vocabulary": 8_000},
    ),
    ("bert", "small"): Shape(
        "4 layers of width 256, sequences of 64",
        8,
        8,
        {"layers": 4, "width": 256, "heads": 4, "sequence": 64, "vocabulary": 8_000},
    ),
}


def listing() -> str:
    """Say in a few lines which jobs there are."""
    return "\n".join(
        f"--model {model} --size {size:5}  {shape.summary}, batch {shape.batch}"
        for (model, size), shape in SHAPES.items()
    )
