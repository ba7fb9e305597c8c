"""The page of a comparison: one self-contained HTML file with the look of a study's report."""

from pathlib import Path

from markupsafe import Markup

import castmates
from castmates.files import replace_text, writing
from castmates.report.comparison.compared import Compared
from castmates.report.comparison.rows import rows
from castmates.report.comparison.words import sentences
from castmates.report.page.long_tables import folded
from castmates.report.page.page import TEMPLATES, environment, inline_svg
from castmates.study.spec import UNMANAGED


def write_page(compared: Compared, drawing: Path, output: Path) -> None:
    """Write the page, whole or not at all, with the drawn figure inside."""
    content = page(compared, inline_svg(drawing))
    with writing(output):
        replace_text(output, content)


def page(compared: Compared, drawing: str) -> str:
    """The page's HTML."""
    parts = {name: Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("report.css", "report.js")}
    words = sentences(compared)
    return folded(
        environment()
        .get_template("comparison.html.j2")
        .render(
            compared=compared,
            title=f"{compared.a.name} against {compared.b.name}",
            css=parts["report.css"],
            script=parts["report.js"],
            first=first_words(compared),
            sentences=words,
            rows=rows(compared),
            partitioned=bool((compared.both["partition_a"] != UNMANAGED).any()),
            differences=compared.differences,
            drawing=Markup(drawing),
            caption=caption(compared),
            alternative=first_words(compared) + " ".join(words),
            version=castmates.__version__,
        )
    )


def first_words(compared: Compared) -> str:
    """What a caption begins with: "" where all is measured."""
    origin = compared.origin
    return f"{origin[:1].upper()}{origin[1:]}. " if origin else ""


def caption(compared: Compared) -> str:
    """What stands below the figure."""
    rows = compared.leads(partitioned=False)
    counts = {letter: sorted({int(count) for count in rows[f"blocks_{letter}"]}) for letter in "ab"}
    many = " and ".join(
        f"{'–'.join(map(str, dict.fromkeys((launches[0], launches[-1]))))} of {letter.upper()}" if launches else "none"
        for letter, launches in counts.items()
    )
    return (
        f"{first_words(compared)}Left: degradation of each lead against its own solo rate, in A and in B, with 95 % t "
        f"intervals between launches ({many} without a partition). Right: how much larger B's slowdown is than A's, "
        f"with Welch's 95 % interval over the launches of both, and the margin of ±{100 * compared.margin:.3g} %. "
        "Losses are ratios inside each study, so that a faster machine loses no less for it."
    )
