"""A figure for the page: letters that are text, the page's own ink and ground, values under the pointer.

What only a file needs that travels alone (the badge, the small print) is left out: the page has both elsewhere.
"""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.text import Text

from castmates.report.figures.marks import values_of
from castmates.report.figures.sheet import NOTE, height_of_badge
from castmates.report.figures.style import ALARM, BADGE_ID, COLOURS, GREY, INK, KEY, SOURCE
from castmates.report.figures.svg import GROUND, drawn

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
_IN_CAPTIONS = re.compile(r"(bars?|lines|crosses|bars and bands): 95 % between launches")
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
