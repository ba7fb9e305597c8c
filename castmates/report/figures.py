"""The figures by name."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from castmates.report import (
    attribution_figure,
    control,
    counters_figure,
    evolution_figure,
    health_figure,
    heatmap,
    heatmap_partitions,
    layers_figure,
    pareto_figure,
    partitions,
    phases_figure,
    sensitivity_figure,
    steptimes,
    timeline_figure,
    topdown_figure,
    windows,
)
from castmates.report.figure_texts import texts_for, write_texts
from castmates.report.read import Results
from castmates.report.style import write
from castmates.side_by_side import side_by_side

FIGURES = {
    "heatmap": heatmap.draw,
    "attribution": attribution_figure.draw,
    "windows": windows.draw,
    "health": health_figure.draw,
    "control": control.draw,
    "heatmap_partitions": heatmap_partitions.draw,
    "partitions": partitions.draw,
    "steptimes": steptimes.draw,
    "sensitivity": sensitivity_figure.draw,
    "pareto": pareto_figure.draw,
    "counters": counters_figure.draw,
    "topdown": topdown_figure.draw,
    "layers": layers_figure.draw,
    "phases": phases_figure.draw,
    "evolution": evolution_figure.draw,
    "timeline": timeline_figure.draw,
}


def draw_figure(name: str, results: Results, stem: Path) -> None:
    """Draw one figure and write STEM.svg, STEM.pdf, STEM.png, STEM.csv, and what is said of it."""
    figure, source = FIGURES[name](results)
    write(figure, source, stem)
    write_texts(texts_for(name, results), stem)


def draw_figures(names: Sequence[str], results: Results, folder: Path, jobs: int = 1) -> None:
    """Draw these figures into the folder, so many at a time."""
    results.look_for_blocks()  # once, and not in each of the processes
    side_by_side({name: partial(draw_figure, name, results, folder / name) for name in names}, jobs)
