"""A figure as SVG, drawn once for both: a file, whose letters are outlines, and the page, whose letters are text.

matplotlib takes this module as a backend; between its marks each stretch of letters is there in both forms.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure

from castmates.report.figures.style import ABOUT, PREFIX, own_ids, styled

GROUND = f"{PREFIX}ground"  # what is behind a figure and its axes: of a file alone
_FORMS = {"letters as text": "none", "letters as outlines": "path"}  # matplotlib's words
_ENDS = "end of letters"


class Drawn(NamedTuple):
    """One drawing, with the letters of a file or of the page."""

    file: str
    page: str


class _Letters(RendererSVG):
    """Writes all letters in both forms."""

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
