"""What the page consists of: which figures stand under which heading, and what its menu lists."""

from collections.abc import Sequence
from dataclasses import dataclass

from castmates.report.figures.index import Part, View, all_figures

HEADINGS: dict[Part, str] = {
    "losses": "Mixes in detail",
    "prediction": "Predicted, not measured",
    "operations": "Operations, traced",
    "recommendation": "Cache partitions",
    "why": "Causes",
    "traces": "Traces",
    "health": "Can you trust this?",
}

REFERENCE = {"tables": "All tables", "method": "Method", "machine": "Machine", "provenance": "Study"}

Links = list[tuple[str, str]]  # ids and short headings


@dataclass(frozen=True)
class FigurePart:
    """A part of the page that holds figures."""

    id: Part
    heading: str
    figures: list[View]


def figure_parts(names: Sequence[str]) -> list[FigurePart]:
    """The parts that hold these figures; the health panel has text too, so it is always there."""
    shown = [row for name, row in all_figures().items() if name in names]
    parts = [FigurePart(id, heading, [row for row in shown if row.part == id]) for id, heading in HEADINGS.items()]
    return [part for part in parts if part.figures or part.id == "health"]


TO_TRY = ("to-try", "What to try")


def contents(parts: Sequence[FigurePart], lacking: bool = False, found: bool = False) -> list[tuple[str, Links]]:
    """The page's parts in their order, in groups: the answer, what it consists of, whether it holds, and the rest."""
    trust = [part for part in parts if part.id == "health"]
    detail = [part for part in parts if part.id != "health"]
    return [
        ("", [("result", "Result"), *((part.id, part.heading) for part in detail), *([TO_TRY] if found else [])]),
        ("Trust", [*((part.id, "Controls and noise") for part in trust), ("rejected", "Disturbances")]),
        ("Reference", [*([("not-available", "Not available here")] if lacking else []), *REFERENCE.items()]),
    ]
