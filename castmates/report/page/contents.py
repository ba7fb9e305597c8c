"""What the page consists of: which figures stand under which heading, and what its contents list."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of the page that holds figures."""

    id: str
    heading: str
    figures: list[tuple[str, str]]  # names and titles


# Figures that explain never decide; what is in no part comes last, so that no drawing is left out.
PARTS = {
    "losses": (
        "What the leads lose",
        {
            "heatmap": "Degradation",
            "attribution": "Attribution",
            "partitions": "Under partitions",
            "heatmap_partitions": "Each partition",
            "steptimes": "How long steps take",
        },
    ),
    "recommendation": (
        "Which share of the cache to give",
        {"sensitivity": "Sensitivity to its ways", "pareto": "What a share costs the others"},
    ),
    "why": (
        "Why: what was counted beside the rates",
        {
            "topdown": "Top-Down",
            "timeline": "Occupancy and bandwidth over time",
            "counters": "Counters",
            "phases": "Phases of a step",
            "layers": "Layers, profiled",
            "evolution": "Step by step",
        },
    ),
    "health": (
        "Health: can the numbers be trusted?",
        {"health": "Health", "control": "Controls", "windows": "Windows over time"},
    ),
}
REST = ("further", "Further figures")


def figure_parts(names: Sequence[str]) -> list[Part]:
    """The parts that hold these figures; the health panel has words of its own, so it is always there."""
    parts = [
        Part(id, heading, [(name, title) for name, title in titles.items() if name in names])
        for id, (heading, titles) in PARTS.items()
    ]
    known = {name for _, titles in PARTS.values() for name in titles}
    rest = Part(*REST, [(name, name.replace("_", " ").capitalize()) for name in names if name not in known])
    return [part for part in [*parts, rest] if part.figures or part.id == "health"]


def contents(parts: Sequence[Part], rejected: bool) -> list[tuple[str, str]]:
    """The page's parts in their order: ids and short headings."""
    return [
        ("verdict", "Verdict"),
        *((part.id, part.heading.partition(":")[0]) for part in parts),
        ("tables", "Tables"),
        ("method", "Method"),
        ("machine", "Machine"),
        ("provenance", "Provenance"),
        *([("rejected", "Rejected windows")] if rejected else []),
    ]
