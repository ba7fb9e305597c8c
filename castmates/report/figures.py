"""The figures by name."""

from pathlib import Path

from castmates.report import control, heatmap, partitions, windows
from castmates.report.read import Results
from castmates.report.style import write

FIGURES = {
    "heatmap": heatmap.draw,
    "windows": windows.draw,
    "control": control.draw,
    "partitions": partitions.draw,
}


def draw_figure(name: str, results: Results, stem: Path) -> None:
    """Draw one figure and write STEM.svg, STEM.png and STEM.csv."""
    figure, source = FIGURES[name](results)
    write(figure, source, stem)
