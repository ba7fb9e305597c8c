"""The foot of a comparison's figures: the key to what is drawn, and what counts against the numbers."""

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure

from castmates.report.figures.style import GREY, PAGE, SMALL, SMALL_LETTER, badge

NOTE = 0.115  # inches of a line of small print


def lines_of(key: str) -> list[str]:
    """The key in lines that fit below a figure as wide as a page."""
    return textwrap.wrap(key, int((PAGE - 0.2) / SMALL_LETTER))


def finish(figure: Figure, lines: Sequence[str], origin: str) -> Figure:
    """Write the key at the foot, and into the corner where the numbers come from, unless they are measured."""
    width, height = figure.get_size_inches()
    figure.text(0.1 / width, 0.05 / height, "\n".join(lines), fontsize=SMALL, color=GREY, va="bottom")
    badge(figure, origin)
    return figure
