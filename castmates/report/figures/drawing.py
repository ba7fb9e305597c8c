"""Draws figures into a folder, each with its source data and its texts."""

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from castmates.files import replace_text, writing
from castmates.parallel import side_by_side
from castmates.report.figures.index import all_figures
from castmates.report.figures.page_svg import for_page, key_of
from castmates.report.figures.style import save, write
from castmates.report.figures.svg import drawn
from castmates.report.figures.texts import texts_for, whole_caption, write_texts
from castmates.report.results import Results

# Figures that are made of the same tables: one process makes these once. They take longest, so they come first.
TOGETHER = ("phases", "phase_counts", "topdown_phases", "topdown")
PRINTED = frozenset(("pdf", "png"))  # only where somebody asks: they take longer than all else of a figure


def draw_figure(name: str, results: Results, stem: Path, printed: Collection[str] = ()) -> None:
    """Draw one figure and write STEM.svg, STEM.csv, its texts, STEM.page.svg for the page, and what is to be printed.

    What was printed of an earlier drawing is removed.
    """
    figure, source = all_figures()[name].module.draw(results)
    write(figure, source, stem, printed)
    for suffix in PRINTED.difference(printed):
        stem.with_name(f"{stem.name}.{suffix}").unlink(missing_ok=True)
    svg = drawn(figure, stem.name)
    for suffix, text in {"svg": svg.file, "page.svg": for_page(svg.page, figure, stem.name)}.items():
        with writing(file := stem.with_name(f"{stem.name}.{suffix}")):
            replace_text(file, text)
    texts = texts_for(name, results, key_of(figure))
    write_texts(texts, whole_caption(texts, results), stem)


def draw_figures(names: Sequence[str], results: Results, folder: Path, jobs: int = 1) -> None:
    """Draw these figures into the folder, so many at a time."""
    results.look_for_launches()  # once, and not in each of the processes
    for name in names:
        _ = all_figures()[name].module
    together = [name for name in TOGETHER if name in names]
    groups = [together, *([name] for name in names if name not in together)]
    side_by_side({", ".join(group): partial(_draw, group, results, folder) for group in groups if group}, jobs)


def print_figure(name: str, results: Results, suffix: str) -> Path:
    """Draw one figure for paper or slides, beside the others of the study."""
    stem = results.folder.figures / name
    save(all_figures()[name].module.draw(results)[0], suffix, stem)
    return stem.with_name(f"{name}.{suffix}")


def _draw(names: Sequence[str], results: Results, folder: Path) -> None:
    for name in names:
        draw_figure(name, results, folder / name)
