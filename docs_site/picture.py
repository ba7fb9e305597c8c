"""Draws the picture of README.md, loss against ways, from the demo: `make demo`, then `python -m docs_site.picture`."""

import re
from pathlib import Path

from castmates.report.answer.answer import answer
from castmates.report.answer.drawing import curve_drawing
from castmates.report.page.page import environment
from castmates.report.results import read_results

ROOT = Path(__file__).parents[1]
DEMO, STUDY = ROOT / "results" / "demo", ROOT / "config" / "studies" / "demo.yaml"
PICTURE = ROOT / "docs" / "images" / "ways.svg"
TITLE = 26  # height of the line above the curve
# The colours of the page in its light form: a picture in a README has no style sheet.
STYLE = """text { font: 12px "DejaVu Sans", Verdana, sans-serif; fill: #1a1a1a }
.c { text-anchor: middle } .n { text-anchor: end }
.small { font-size: 11px; fill: #555 } path { fill: none; stroke: #00569c; stroke-width: 2 } .tick { stroke: #ddd }
line.knee { stroke: #00569c; stroke-width: 1.5; stroke-dasharray: 2 4 }
line.reach { stroke-width: 5; opacity: .5; stroke-dasharray: none }
rect.shared { fill: #b3261e; opacity: .18 } line.shared { stroke: #b3261e; stroke-width: 1.5 }
.limit { stroke: #1b6e3c; stroke-width: 1.5; stroke-dasharray: 6 4 } .mark line { stroke: #00569c; stroke-width: 2 }
.mark circle { fill: #00569c; stroke: #fff; stroke-width: 1.5 } .chosen circle { fill: #1b6e3c }"""


def main() -> None:
    """Draw the pair that loses most."""
    curve = max(answer(read_results(DEMO, STUDY)).curves, key=lambda one: one.shared)
    drawing = curve_drawing(curve)
    inner = str(environment().get_template("curve.html.j2").module.drawing_of(curve, drawing))
    body = re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", inner, flags=re.DOTALL)
    width, height = drawing.width, drawing.height + TITLE
    title = f"{curve.program} beside {curve.neighbours}, on a simulated machine"
    PICTURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" '
        f'aria-label="{curve.sentence}"><style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f'<text class="c" x="{width / 2:g}" y="18" font-weight="bold">{title}</text>'
        f'<g transform="translate(0 {TITLE})">{body}</g></svg>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
