"""Draws figures into a folder, each with its source data and its texts, and as it is on the page.

There its letters are text, ink and ground are the page's own, and values are under the pointer. What only a file needs
that travels alone (the badge, the small print) is left out: the page has both elsewhere.
"""

import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.textpath import TextToPath

from castmates.files import replace_text, writing
from castmates.parallel import side_by_side
from castmates.report.figures.index import all_figures
from castmates.report.figures.marks import values_of
from castmates.report.figures.sheet import NOTE, height_of_badge
from castmates.report.figures.style import (
    ABOUT,
    ALARM,
    BADGE_ID,
    COLOURS,
    GREY,
    INK,
    KEY,
    PREFIX,
    SOURCE,
    own_ids,
    save,
    styled,
    write,
)
from castmates.report.figures.texts import texts_for, whole_caption, write_texts
from castmates.report.results import Results

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# What has a name can be another colour on dark ground: castmates/report/page/templates/figures.css has both.
NAMED = {
    INK: "currentColor",
    "#000000": "currentColor",
    GREY: "var(--soft)",
    "#555555": "var(--soft)",
    "#ffffff": "var(--ground)",
    ALARM: "var(--mark)",
    **{colour: f"var(--hue-{place})" for place, colour in enumerate(COLOURS)},
    **dict.fromkeys(("#ececec", "#f1f1f1", "#f3f3f3", "#f5f5f5"), "var(--shade)"),
    **dict.fromkeys(("#d0d0d0", "#e4e4e4"), "var(--grid)"),
    **dict.fromkeys(("#bdbdbd", "#c2c2c2", "#c9c9c9"), "var(--faint)"),
    "#9a9a9a": "var(--quiet)",
    "#dcebf5": "var(--band)",
    **dict.fromkeys(("#f1dcda", "#f3dede"), "var(--loss)"),
    "#fbe9c6": "var(--warm)",
}
PRINT = (BADGE_ID, KEY, SOURCE)  # what belongs to a printed figure
_IN_CAPTIONS = re.compile(
    r"(bars?|lines|crosses|bars and bands): 95 % between "
    r"((launches|nodes|sessions|of these|those of losses|between|or|,) ?)+"
)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def page_svg(figure: Figure, name: str) -> str:
    """The figure as SVG for the page, its identifiers beginning with its name."""
    return for_page(drawn(figure, name).page, figure, name)


def for_page(svg: str, figure: Figure, name: str) -> str:
    """What was drawn of a figure, as the page has it."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for element in [one for one in parent if one.get("id") in (*PRINT, GROUND) or one.tag == f"{{{SVG}}}metadata"]:
            parent.remove(element)
    root.attrib |= _size_without_print(figure)
    for element in root.iter():
        _own(element, name)
        if style := element.get("style"):
            element.set("style", _themed(style))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def key_of(figure: Figure) -> str:
    """The key to the marks, which is at the foot of the printed figure, without the part that all captions share."""
    whole = " ".join(text.get_text().replace("\n", " ") for text in figure.texts if text.get_gid() == KEY)
    key = "; ".join(part for part in whole.split("; ") if not _IN_CAPTIONS.fullmatch(part))
    return f"{key[0].upper()}{key[1:].removesuffix('.')}." if key else ""


def _size_without_print(figure: Figure) -> dict[str, str]:
    """The size and the part of the drawing that are left where what belongs to a printed figure is left out."""
    gone = [text for text in figure.texts if text.get_gid() in PRINT]
    above = sum(height_of_badge(_lines(text)) for text in gone if text.get_gid() == BADGE_ID)
    below = NOTE * sum(_lines(text) for text in gone if text.get_gid() != BADGE_ID)
    width, height = figure.get_size_inches() - (0, above + below)
    points = {"top": above, "width": width, "height": height}
    top, wide, high = (f"{72 * inches:.6f}".rstrip("0").rstrip(".") for inches in points.values())
    return {"width": f"{wide}pt", "height": f"{high}pt", "viewBox": f"0 {top} {wide} {high}"}


def _lines(text: Text) -> int:
    return text.get_text().count("\n") + 1 if text.get_text() else 0


def _own(element: ElementTree.Element, name: str) -> None:
    """Give an element its values, and identifiers that no other figure of the page has."""
    identifier = element.get("id")
    if identifier is not None:
        if words := values_of(identifier):
            _say(element, words)
            del element.attrib["id"]
        else:
            element.set("id", f"{name}-{identifier}")
    for key in ("clip-path", "fill", "style", f"{{{XLINK}}}href"):
        if value := element.get(key):
            element.set(key, re.sub(r"(url\(|^)#", rf"\1#{name}-", value))


def _say(element: ElementTree.Element, words: Sequence[str]) -> None:
    """Put words into a mark; several into the points that it consists of."""
    marks = [element] if len(words) == 1 else list(_points(element))
    if len(marks) != len(words):  # a point beyond the paper is not drawn, and which one is not known
        return
    for mark, text in zip(marks, words, strict=True):
        mark.set("class", "value")
        title = ElementTree.Element(f"{{{SVG}}}title")
        title.text = text
        mark.insert(0, title)


def _points(element: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """What is drawn in a group, without the shapes that are only defined there."""
    for child in element:
        if child.tag in (f"{{{SVG}}}use", f"{{{SVG}}}path"):
            yield child
        elif child.tag != f"{{{SVG}}}defs":
            yield from _points(child)


def _themed(style: str) -> str:
    """Colours that have a name by their name; letters in the page's own."""
    style = re.sub(r"font-family: [^;]*;?", "", style)
    return _COLOUR.sub(lambda colour: NAMED.get(colour[0], colour[0]), style)


# A figure as SVG, drawn once for both: a file, whose letters are outlines, and the page, whose letters are text.
#
# matplotlib takes this module as a backend; between its marks each stretch of letters is there in both forms.

GROUND = f"{PREFIX}ground"  # what is behind a figure and its axes: of a file alone
_FORMS = {"letters as text": "none", "letters as outlines": "path"}  # matplotlib's words
_ENDS = "end of letters"


class Drawn(NamedTuple):
    """One drawing, with the letters of a file or of the page."""

    file: str
    page: str


class _Outlines(TextToPath):
    """Lays out and measures each text once for all figures: most are numbers, which come again and again."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.get_text_width_height_descent = cache(super().get_text_width_height_descent)  # type: ignore[method-assign]
        self._laid_out = cache(super().get_glyphs_with_font)

    def get_glyphs_with_font(
        self,
        font: Any,  # noqa: ANN401 (matplotlib's)
        s: str,
        glyph_map: Any = None,  # noqa: ANN401
        return_new_glyphs_only: bool = False,
        **more: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401 (matplotlib's)
        """Where the letters stand, and the outlines of those that the figure has not had before."""
        places, outlines, rectangles = self._laid_out(font, s, **more)
        if return_new_glyphs_only and glyph_map:
            outlines = {name: path for name, path in outlines.items() if name not in glyph_map}
        return places, outlines, rectangles


_OUTLINES = _Outlines()


class _Letters(RendererSVG):
    """Writes all letters in both forms."""

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 (matplotlib's)
        """Begin a drawing."""
        begin: Any = super().__init__
        begin(*given, **more)
        self._text2path = _OUTLINES

    def draw_text(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 (matplotlib's)
        """Write one text."""
        write: Any = super().draw_text
        comment: Any = self.writer.comment
        for mark, form in _FORMS.items():
            mpl.rcParams["svg.fonttype"] = form
            comment(mark)
            write(*given, **more)
            comment(_ENDS)


class FigureCanvas(FigureCanvasSVG):
    """What matplotlib draws on."""

    def print_svg(
        self,
        filename: Any,  # noqa: ANN401 (matplotlib's)
        *,
        bbox_inches_restore: Any = None,  # noqa: ANN401
        metadata: Any = None,  # noqa: ANN401
        **_unused: object,
    ) -> None:
        """Draw, as matplotlib's own canvas of this kind does."""
        dpi, self.figure.dpi = self.figure.dpi, 72
        width, height = self.figure.get_size_inches()
        letters = _LETTERS(72 * width, 72 * height, filename, image_dpi=dpi, metadata=metadata)
        renderer = _MIXED(self.figure, width, height, dpi, letters, bbox_inches_restore=bbox_inches_restore)
        self.figure.draw(renderer)
        renderer.finalize()


_LETTERS: Any = _Letters  # matplotlib has no types for these
_MIXED: Any = MixedModeRenderer


def drawn(figure: Figure, name: str) -> Drawn:
    """Draw a figure; the identifiers of the file begin with its name."""
    file = io.StringIO()
    with styled(), _named_grounds(figure):
        figure.savefig(file, format="svg", backend=f"module://{__name__}", metadata=ABOUT["svg"])
    text, outlines = (_without(mark, file.getvalue()) for mark in reversed(_FORMS))
    return Drawn(own_ids(outlines, name), text)


def _without(mark: str, svg: str) -> str:
    """The drawing without one form of its letters."""
    kept = re.sub(f"<!-- {mark} -->.*?<!-- {_ENDS} -->\\s*", "", svg, flags=re.DOTALL)
    return re.sub(f"<!-- (?:{'|'.join(_FORMS)}|{_ENDS}) -->\\s*", "", kept)


@contextmanager
def _named_grounds(figure: Figure) -> Iterator[None]:
    inner = [child for axes in figure.axes for child in axes.child_axes]
    grounds = [figure.patch, *(axes.patch for axes in (*figure.axes, *inner))]
    for ground in grounds:
        ground.set_gid(GROUND)
    try:
        yield
    finally:
        for ground in grounds:
            ground.set_gid(None)


# The figures of a study.

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
