"""The jobs: which models there are and in which sizes; plain data, no PyTorch."""

from castmates.workloads.jobs.asked import Shape

SHAPES = {
    ("convnet", "tiny"): Shape(
        "20 layers, images of 32 × 32",
        16,
        16,
        {"side": 32, "width": 16, "blocks": 3},
        {"train": 2.32655, "infer": 0.0716297, "infer 1": 0.0716529},
    ),
    ("convnet", "small"): Shape(
        "20 layers, twice as wide, images of 64 × 64",
        4,
        16,
        {"side": 64, "width": 32, "blocks": 3},
        {"train": 1.99058, "infer": 0.0448941},
    ),
    ("transformer", "tiny"): Shape(
        "2 layers of width 128, sequences of 64",
        8,
        16,
        {"layers": 2, "width": 128, "heads": 4, "sequence": 64, "vocabulary": 2_000},
        {"train": 7.71677, "infer": 0.463905},
    ),
    ("transformer", "small"): Shape(
        "4 layers of width 256, sequences of 128",
        4,
        16,
        {"layers": 4, "width": 256, "heads": 8, "sequence": 128, "vocabulary": 4_000},
        {"train": 8.38635, "infer": 0.461255},
    ),
    ("dlrm", "tiny"): Shape(
        "26 tables of 5 000 rows, dimension 16",
        256,
        64,
        {"rows": 5_000, "dim": 16},
        {"train": 0.71594, "infer": 0.543701},
    ),
    ("dlrm", "small"): Shape(
        "26 tables of 200 000 rows, dimension 32",
        256,
        64,
        {"rows": 200_000, "dim": 32},
        {"train": 0.833865, "infer": 0.977021},
    ),
}
