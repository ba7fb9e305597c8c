"""The texts of each figure: made when it is drawn, so that the page need not read again what it is made of."""

import re
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import replace_text, writing
from castmates.report.figures.index import all_figures
from castmates.report.results import Results
from castmates.report.text.stamps import first_words, source


@dataclass(frozen=True)
class Texts:
    """What stands below a figure, and what is read aloud in its place."""

    caption: str
    alternative: str


def texts_for(name: str, results: Results) -> Texts:
    """Made from the numbers: the platform stands before both, the source behind the caption."""
    module, platform = all_figures()[name].module, first_words(results)
    return Texts(platform + module.caption(results) + source(results), platform + module.alternative(results))


def write_texts(texts: Texts, stem: Path) -> None:
    """Write STEM.txt and STEM.alt.txt; and STEM.rst, which is the caption as `snakemake --report` wants it."""
    # Set apart: what reStructuredText would take for markup, and the braces of the template that it becomes.
    marked = re.sub(r"([\\*_`|])", r"\\\1", texts.caption)
    marked = re.sub(r"[{}]", lambda brace: f"{{{{ '{brace[0]}' }}}}", marked)
    for suffix, text in {"txt": texts.caption, "alt.txt": texts.alternative, "rst": marked}.items():
        with writing(file := stem.with_name(f"{stem.name}.{suffix}")):
            replace_text(file, text + "\n")


def texts_of(stem: Path) -> Texts:
    """Read what was written when the figure was drawn."""
    try:
        texts = [stem.with_name(f"{stem.name}.{suffix}").read_text(encoding="utf-8") for suffix in ("txt", "alt.txt")]
    except FileNotFoundError as problem:
        raise CastmatesError(
            f"{problem.filename}: the figure's text is not there; draw it with scripts/draw_figures.py first."
        ) from None
    return Texts(*(text.strip() for text in texts))
