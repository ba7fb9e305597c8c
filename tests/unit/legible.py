"""What makes a drawing legible, asked of matplotlib's renderer: no small text, nothing outside, no words on words."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from castmates.report.figures.style import COLUMN, PAGE, SMALL, styled

SLACK = 1.5  # pixels of 100 an inch that boxes may touch: they hold room for letters that are not there
EDGE = 2.0  # pixels by which a box may leave the canvas, for the same reason


def problems(figure) -> list[str]:
    """Everything that a reader would stumble over, in words; empty for a good figure."""
    width = figure.get_figwidth()
    found = [] if any(abs(width - good) < 0.01 for good in (COLUMN, PAGE)) else [f"{width:.2f} in wide"]
    with styled():
        figure.set_dpi(100)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        # Of the words only: an annotation's own box has its line in it.
        boxes = [(text, Text.get_window_extent(text, renderer)) for text in words(figure)]
    right, top = figure.bbox.width, figure.bbox.height
    for text, box in boxes:
        said = text.get_text().replace("\n", " ")[:40]
        if text.get_fontsize() < SMALL:
            found.append(f"'{said}' has {text.get_fontsize()} points")
        if box.x0 < -EDGE or box.y0 < -EDGE or box.x1 > right + EDGE or box.y1 > top + EDGE:
            found.append(f"'{said}' is outside by {max(-box.x0, -box.y0, box.x1 - right, box.y1 - top):.0f} px")
    for (one, first), (other, second) in combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        if across > SLACK and down > SLACK:
            pair = [text.get_text().replace("\n", " ")[:30] for text in (one, other)]
            found.append(f"'{pair[0]}' and '{pair[1]}' overlap by {across:.0f} × {down:.0f} px")
    return found


def words(figure) -> list[Text]:
    """All texts that are drawn; of ticks only those inside their axis."""
    hidden = set()
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = sorted(limits)
            ticks = axis.get_major_ticks() + axis.get_minor_ticks()
            hidden |= {
                id(label) for tick in ticks for label in (tick.label1, tick.label2)
                if not (low <= tick.get_loc() <= high and label.get_visible() and axis.get_visible())
            }  # fmt: skip
    texts = figure.findobj(Text)
    return [text for text in texts if text.get_text().strip() and text.get_visible() and id(text) not in hidden]
