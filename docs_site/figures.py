"""What the modules of castmates/report/figures declare -> a page with every figure: what it shows, and where it is."""

from pathlib import Path

from castmates.report.figures.index import FIGURES
from castmates.report.page.page import HEADINGS

INTRODUCTION = """[Figures](../figures.md) explains what all have in common. Each is declared in the module of its name
in `castmates/report/figures`, from which this page is generated."""


def page(_root: Path) -> str:
    """All figures, part by part of the page."""
    parts = ["# The figures", INTRODUCTION]
    for part, heading in HEADINGS.items():
        rows = ["| figure | what it shows | in studies with |", "| --- | --- | --- |"]
        rows += [
            f"| `{view.name}` | {' '.join(view.about.split())} | {view.needs.key if view.needs else 'every study'} |"
            for view in FIGURES.values()
            if view.part == part
        ]
        parts.append(f"## {heading}\n\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"
