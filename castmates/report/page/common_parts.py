"""What every page holds: styles, scripts, what a browser may run of it, drawings, and where its numbers come from."""

import re
from collections.abc import Iterable
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from matplotlib.figure import Figure

import castmates
from castmates.errors import CastmatesError
from castmates.files import bytes_of, replace_text, why
from castmates.report.figures import style
from castmates.report.figures.drawing import page_svg
from castmates.report.text import words
from castmates.timeline.export.page import policy

TEMPLATES = files("castmates.report.page") / "templates"
SVG = "{http://www.w3.org/2000/svg}"
VALUE = "value"  # the class of a mark that says its value under the pointer
HREF = {"href", "{http://www.w3.org/1999/xlink}href"}
# What matplotlib draws with. A page has its one style, which says what matplotlib's says.
ELEMENTS = {"svg", "g", "defs", "use", "path", "text", "tspan", "title", "clipPath", "rect", "image", "pattern"}
LEFT_OUT = {f"{SVG}metadata", f"{SVG}style"}
ATTRIBUTES = {"id", "class", "d", "x", "y", "width", "height", "viewBox", "version", "transform", "style", "clip-path"}
ATTRIBUTES |= {"fill", "patternUnits", "preserveAspectRatio"}
STYLES = {"fill", "stroke", "opacity", "font", "text-anchor", "image-rendering", "mix-blend-mode", "white-space"}
STYLES |= {f"fill-{what}" for what in ("opacity", "rule")} | {f"font-{what}" for what in ("size", "style", "weight")}
STYLES |= {f"stroke-{what}" for what in ("width", "opacity", "linecap", "linejoin", "miterlimit", "dasharray")}
STYLES |= {"stroke-dashoffset"}
PLAIN = re.compile(r"[^\\:;{}<>@\"']*")
PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")


def common_parts(running_head: str = "") -> dict[str, Markup]:
    """Styles and scripts of every page, and the policy by which a browser runs these and nothing else."""
    names = ("report.css", "figures.css", "report.js", "figures.js")
    parts = {name: Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in names}
    css, script = parts["report.css"] + parts["figures.css"], parts["report.js"] + parts["figures.js"]
    if running_head:
        css += Markup('\n@page {{ @top-right {{ content: "{}"; font: 7pt sans-serif; }} }}').format(running_head)
    return {"css": css, "script": script, "policy": Markup(policy(css, script))}


def first_words(origin: str) -> str:
    """What a caption begins with: "" where all is measured."""
    return f"{origin[:1].upper()}{origin[1:]}. " if origin else ""


def inline_svg(file: Path) -> str:
    """A drawn figure as an element of a page, whose text alternative is the page's.

    It is read as XML and written again: a browser reads HTML that is no XML in ways that a filter of letters misses.
    """
    try:
        root = ElementTree.fromstring(bytes_of(file))
    except FileNotFoundError:
        raise CastmatesError(f"{file}: the figure is not there; run the study's sweep again.") from None
    except ElementTree.ParseError as problem:
        raise _refused(file, f"is no SVG ({problem})") from None
    except (OSError, ValueError) as problem:
        raise _refused(file, f"cannot be read ({why(problem)})") from None
    size = _size(root)
    _check(root, file)
    root.attrib = {"aria-hidden": "true", "focusable": "false", **size, **root.attrib}
    return ElementTree.tostring(root, encoding="unicode")


def _check(element: ElementTree.Element, file: Path) -> None:
    """Refuse what matplotlib does not draw with; HTML knows the elements of SVG without their namespaces."""
    for inside in [each for each in element if each.tag in LEFT_OUT]:
        element.remove(inside)
    element.tag = str(element.tag).removeprefix(SVG)
    strange = [] if element.tag in ELEMENTS else [f"<{element.tag}>"]
    strange += [f"{key}={value[:40]!r}" for key, value in element.attrib.items() if not _is_harmless(key, value)]
    if strange:
        raise _refused(file, f"holds {strange[0]}, so it is not one of Castmates")
    element.attrib = {"href" if key in HREF else key: value for key, value in element.attrib.items()}
    for inside in element:
        _check(inside, file)


def _refused(file: Path, why: str) -> CastmatesError:
    return CastmatesError(f"{file}: this drawing {why}; remove it, so that it is drawn again.")


def _is_harmless(key: str, value: str) -> bool:
    if key in HREF:
        return value.startswith("#") or bool(PICTURE.fullmatch(value))
    if key == "style":
        rules = [rule.partition(":") for rule in value.split(";") if rule.strip()]
        return all(name.strip() in STYLES and _is_plain(words) for name, _, words in rules)
    if key == "class":
        return value == VALUE
    return key in ATTRIBUTES and _is_plain(value)


def _is_plain(value: str) -> bool:
    """Whether it is numbers and words, and loads nothing: an address is one inside the page."""
    return bool(PLAIN.fullmatch(value)) and "url(" not in value.lower().replace("url(#", "")


def _size(root: ElementTree.Element) -> dict[str, str]:
    """The drawing's size as a style: it holds also while the drawing is out of sight and not laid out."""
    width, height = (re.fullmatch(r"([\d.]+)(pt|px)?", root.get(side, "")) for side in ("width", "height"))
    if not width or not height:
        return {}
    return {"style": f"width: {width[1]}{width[2] or 'px'}; aspect-ratio: {width[1]} / {height[1]}"}


# Long tables of a page: rows after the first ones stand beside the table, where a browser does not lay them out.
#
# Thousands of rows make a page that takes half a minute to load and to sort. What stands in `noscript` is mere text
# where scripts run, and report.js takes rows from there when they are wanted; where none run it is a second table.

SHOWN = 50  # rows in the table itself, as FOLD in report.js
TABLE = re.compile(
    r'<table class="sortable">(?P<top>.*?)<tbody>(?P<rows>.*?)</tbody>(?P<end>\s*</table>\s*</div>)', re.DOTALL
)
HEAD = re.compile(r"<thead>.*?</thead>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
BETWEEN_TAGS = re.compile(r">\s*\n\s*<")


def folded(page: str) -> str:
    """The page with the later rows of its long tables beside them."""
    return TABLE.sub(_folded, page)


def _folded(table: re.Match[str]) -> str:
    rows = ROW.findall(table["rows"])
    if len(rows) <= SHOWN:
        return table[0]
    first, later = "\n".join(rows[:SHOWN]), "\n".join(BETWEEN_TAGS.sub("><", row) for row in rows[SHOWN:])
    head = HEAD.search(table["top"])
    return (
        f'<table class="sortable">{table["top"]}<tbody>\n{first}\n</tbody>{table["end"]}\n'
        '<noscript class="later"><div class="scroll" tabindex="0" role="group" aria-label="More rows of the table">\n'
        f"<table><caption>Rows {SHOWN + 1} to {len(rows)} of the table above.</caption>\n"
        f"{head[0] if head else ''}<tbody>\n{later}\n</tbody></table></div></noscript>"
    )


# How a page is made of its template, and what its figures are written with where it is no study's report.


def environment() -> Any:  # noqa: ANN401 (jinja2 is imported only where a page is written)
    """What all pages are made with."""
    made = Environment(
        loader=PackageLoader("castmates.report.page"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": words.number, "plain": words.plain, "marked": marked, "listed": words.listed}
    made.filters["in_groups"] = in_groups
    return made


def rendered(template: str, content: dict[str, Any]) -> str:
    """The HTML that a template makes of its content, and of what every page holds."""
    every = {**common_parts(content.get("running_head", "")), "version": castmates.__version__}
    return folded(environment().get_template(template).render(every | content))


def write_drawing(drawn: Figure, source: pd.DataFrame, stem: Path) -> Markup:
    """Write the figure of such a page, with its source data, as all figures are written; the drawing for the page."""
    style.write(drawn, source, stem)
    replace_text(file := stem.with_name(f"{stem.name}.page.svg"), page_svg(drawn, stem.name))
    return Markup(inline_svg(file))


def in_groups(rows: Iterable[Any], name: str) -> list[tuple[Any, list[Any]]]:
    """Rows by one of their attributes, in their order."""
    return [(value, list(group)) for value, group in groupby(rows, key=attrgetter(name))]


def marked(sentence: str) -> Any:  # noqa: ANN401 (markup)
    """The sentence as HTML: intervals and percentages are kept on one line, and what stands in backticks is code."""
    sentence = re.sub(r"(\d) %", "\\1\N{NO-BREAK SPACE}%", str(sentence))
    text = re.sub(r"`([^`<]+)`", r"<code>\1</code>", str(escape(sentence)))
    return Markup(re.sub(r"\[[^]<]*\]", r'<span class="nb">\g<0></span>', text))
