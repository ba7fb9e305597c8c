"""The page of the Python API: the modules whose docstrings mkdocstrings reads."""

from pathlib import Path

# A heading, a sentence, and the modules below it: what scripts and notebooks may use.
PARTS = {
    "A study": ("`castmates.load(folder)` reads the results of a study.", ["castmates.report.results"]),
    "Results on disk": (
        "Where a study's files are, and how to read them.",
        ["castmates.results.folder", "castmates.results.find", "castmates.results.tables", "castmates.results.plans"],
    ),
    "Statistics": (
        "Pure functions over tables: no files, no hardware.",
        [
            "castmates.analysis.statistics.intervals",
            "castmates.analysis.statistics.welch",
            "castmates.analysis.statistics.power",
            "castmates.analysis.statistics.pairs",
            "castmates.analysis.core",
        ],
    ),
    "Effects and partitions": (
        "From windows to losses, knees and recommendations.",
        [
            "castmates.analysis.effects.effects",
            "castmates.analysis.partitions.sensitivity",
            "castmates.analysis.partitions.recommendation",
            "castmates.analysis.partitions.attribution",
        ],
    ),
    "Comparing studies": (
        "A baseline and others.",
        ["castmates.analysis.comparison.comparison"],
    ),
    "Inside a program": (
        "Modules that a measured program may import; standard library only.",
        ["castmates.workloads.heartbeat", "castmates.workloads.phases"],
    ),
}
INTRODUCTION = (
    "Generated from the docstrings. The [tables](tables.md) are the stable interface; these functions make them."
)


def page(_root: Path) -> str:
    """A heading for each part, with its modules."""
    sections = ["# Python API", INTRODUCTION]
    for head, (words, modules) in PARTS.items():
        sections.append(f"## {head}\n\n{words}")
        sections += [f"::: {module}\n    options:\n      heading_level: 3" for module in modules]
    return "\n\n".join(sections) + "\n"
