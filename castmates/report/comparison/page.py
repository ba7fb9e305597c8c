"""The page of a comparison: one self-contained HTML file with the look of a study's report."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

import castmates
from castmates.files import replace_text, writing
from castmates.report.comparison import overview, several_words, words
from castmates.report.comparison.compared import Compared, Several
from castmates.report.comparison.detail_words import sections
from castmates.report.comparison.rows import rows
from castmates.report.page.common_parts import common_parts, first_words, inline_svg
from castmates.report.page.long_tables import folded
from castmates.report.page.page import environment
from castmates.study.spec import UNMANAGED

ON_PAGE = 40  # rows of each kind


def write_page(several: Several, drawings: Path, output: Path) -> None:
    """Write the page, whole or not at all, with the figures drawn in the folder `drawings` inside."""
    content = page(
        several, {name: inline_svg(drawings / f"{name}-figure.page.svg") for name in ("comparison", "history")}
    )
    with writing(output):
        replace_text(output, content)


def page(several: Several, drawings: dict[str, str]) -> str:
    """The page's HTML."""
    common = {
        **common_parts(),
        "first": first_words(several.origin),
        "drawings": {name: Markup(drawing) for name, drawing in drawings.items()},
        "studies": several.studies,
        "version": castmates.__version__,
        "details": sections(several, ON_PAGE),
        "detail_notes": several.details.notes,
    }
    two = len(several.pairs) == 1
    name, own = ("comparison.html.j2", _of_two(several)) if two else ("comparisons.html.j2", _of_several(several))
    return folded(environment().get_template(name).render(common | own))


def drawn(folder: Path, name: str) -> Markup:
    """A figure that was drawn into this folder, for a page."""
    return Markup(inline_svg(folder / f"{name}-figure.page.svg"))


def _of_two(several: Several) -> dict[str, Any]:
    compared = several.pairs[0]
    sentences = [*words.sentences(compared), *several_words.mean_sentences(several)]
    return {
        "compared": compared,
        "title": f"{compared.a.name} against {compared.b.name}",
        "sentences": sentences,
        "rows": rows(compared),
        "partitioned": bool((compared.both["partition_a"] != UNMANAGED).any()),
        "differences": compared.differences,
        "caption": caption(compared),
        "alternative": first_words(several.origin) + " ".join(sentences),
    }


def _of_several(several: Several) -> dict[str, Any]:
    sentences = several_words.sentences(several)
    lines, history = overview.lines(several), several.history
    dated = history["date"].nunique() > 1
    return {
        "several": several,
        "title": f"{several.studies[0].name} and {len(several.pairs)} studies against it",
        "sentences": sentences,
        "lines": lines,
        "mean": overview.mean_line(several),
        "partitioned": any(line.partition for line in lines),
        "dated": dated,
        "alternative": first_words(several.origin) + " ".join(sentences),
    }


def caption(compared: Compared) -> str:
    """What stands below the figure of two studies."""
    rows = compared.leads(partitioned=False)
    counts = {letter: sorted({int(count) for count in rows[f"launches_{letter}"]}) for letter in "ab"}
    many = " and ".join(
        f"{'–'.join(map(str, dict.fromkeys((launches[0], launches[-1]))))} of {letter.upper()}" if launches else "none"
        for letter, launches in counts.items()
    )
    origin = compared.origin
    return (
        f"{first_words(origin)}Left: loss of each lead against its own alone "
        f"rate, in A and in B, with 95 % t intervals between launches ({many} without a partition). Right: by how much "
        f"B's slowdown is above A's, with Welch's 95 % interval over the launches of both, and the margin of "
        f"±{100 * compared.margin:.3g} %. Losses are ratios inside each study: being faster costs a machine nothing."
    )
