"""The figures by name."""

from pathlib import Path

from castmates.files import replace_text
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
from castmates.report.captions import captions
from castmates.report.read import Results
from castmates.report.style import write

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
    """Draw one figure and write STEM.svg, STEM.pdf, STEM.png, STEM.csv, and its caption as STEM.txt."""
    figure, source = FIGURES[name](results)
    write(figure, source, stem)
    replace_text(stem.with_name(f"{stem.name}.txt"), captions(results, [name])[name] + "\n")
