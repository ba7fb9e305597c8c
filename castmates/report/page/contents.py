"""What the page consists of: which figures stand under which heading, and what its contents list."""

from collections.abc import Sequence
from dataclasses import dataclass

from castmates.report.figures.index import Figure, Part, all_figures

HEADINGS: dict[Part, str] = {
    "losses": "What the leads lose",
    "recommendation": "Which share of the cache to give",
    "why": "Why: what was counted beside the rates",
    "health": "Health: can the numbers be trusted?",
}


@dataclass(frozen=True)
class FigurePart:
    """A part of the page that holds figures."""

    id: Part
    heading: str
    figures: list[Figure]


def figure_parts(names: Sequence[str]) -> list[FigurePart]:
    """The parts that hold these figures; the health panel has words of its own, so it is always there."""
    shown = [row for name, row in all_figures().items() if name in names]
    parts = [FigurePart(id, heading, [row for row in shown if row.part == id]) for id, heading in HEADINGS.items()]
    return [part for part in parts if part.figures or part.id == "health"]


def contents(parts: Sequence[FigurePart], rejected: bool) -> list[tuple[str, str]]:
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
