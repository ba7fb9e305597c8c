"""Draws figures into a folder, each with its source data and its texts."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from castmates.parallel import side_by_side
from castmates.report.figures.index import all_figures
from castmates.report.figures.style import write
from castmates.report.figures.texts import texts_for, write_texts
from castmates.report.results import Results


def draw_figure(name: str, results: Results, stem: Path) -> None:
    """Draw one figure and write STEM.svg, STEM.pdf, STEM.png, STEM.csv, and its texts."""
    figure, source = all_figures()[name].module.draw(results)
    write(figure, source, stem)
    write_texts(texts_for(name, results), stem)


def draw_figures(names: Sequence[str], results: Results, folder: Path, jobs: int = 1) -> None:
    """Draw these figures into the folder, so many at a time."""
    results.look_for_blocks()  # once, and not in each of the processes
    side_by_side({name: partial(draw_figure, name, results, folder / name) for name in names}, jobs)
