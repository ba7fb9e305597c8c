"""Draws figures into a folder, each with its source data and its texts."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from castmates.files import replace_text, writing
from castmates.parallel import side_by_side
from castmates.report.figures.index import all_figures
from castmates.report.figures.page_svg import key_of, page_svg
from castmates.report.figures.style import ABOUT, write
from castmates.report.figures.texts import texts_for, whole_caption, write_texts
from castmates.report.results import Results

# Figures that are made of the same tables: one process makes these once. They take longest, so they come first.
TOGETHER = ("phases", "phase_counts", "topdown_phases", "topdown")
BACKENDS = {"png": "agg"}  # matplotlib's, where its name is another than the format's


def draw_figure(name: str, results: Results, stem: Path) -> None:
    """Draw one figure and write STEM.svg, STEM.pdf, STEM.png, STEM.csv, its texts, and STEM.page.svg for the page."""
    figure, source = all_figures()[name].module.draw(results)
    write(figure, source, stem)
    with writing(file := stem.with_name(f"{stem.name}.page.svg")):
        replace_text(file, page_svg(figure, stem.name))
    texts = texts_for(name, results, key_of(figure))
    write_texts(texts, whole_caption(texts, results), stem)


def draw_figures(names: Sequence[str], results: Results, folder: Path, jobs: int = 1) -> None:
    """Draw these figures into the folder, so many at a time."""
    results.look_for_launches()  # once, and not in each of the processes
    for suffix in ABOUT:
        import_module(f"matplotlib.backends.backend_{BACKENDS.get(suffix, suffix)}")
    for name in names:
        _ = all_figures()[name].module
    together = [name for name in TOGETHER if name in names]
    groups = [together, *([name] for name in names if name not in together)]
    side_by_side({", ".join(group): partial(_draw, group, results, folder) for group in groups if group}, jobs)


def _draw(names: Sequence[str], results: Results, folder: Path) -> None:
    for name in names:
        draw_figure(name, results, folder / name)
