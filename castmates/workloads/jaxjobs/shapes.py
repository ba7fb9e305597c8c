"""The jobs: which models there are and in which sizes; plain data, no JAX."""

from castmates.workloads.jobs.asked import Shape

SHAPES = {
    ("mlp", "tiny"): Shape(
        "3 layers of width 256, images of 32 × 32",
        32,
        16,
        {"side": 32, "width": 256, "layers": 3},
        {"train": 2.29788, "infer": 0.23348},
    ),
    ("mlp", "small"): Shape(
        "3 layers of width 2048, images of 32 × 32",
        32,
        16,
        {"side": 32, "width": 2_048, "layers": 3},
        {"train": 2.21164, "infer": 0.193322},
    ),
    ("transformer", "tiny"): Shape(
        "2 layers of width 128, sequences of 64",
        8,
        16,
        {"layers": 2, "width": 128, "heads": 4, "sequence": 64, "vocabulary": 2_000},
        {"train": 7.90778, "infer": 0.798525},
    ),
    ("transformer", "small"): Shape(
        "4 layers of width 256, sequences of 128",
        4,
        16,
        {"layers": 4, "width": 256, "heads": 8, "sequence": 128, "vocabulary": 4_000},
        {"train": 8.62166, "infer": 0.79627},
    ),
}
