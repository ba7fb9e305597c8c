"""The texts of each figure: made when it is drawn, so that the page need not read again what it is made of."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.files import mapping_of, replace_text, writing
from castmates.report.figures.index import all_figures
from castmates.report.results import Results
from castmates.report.text.stamps import first_words, source


@dataclass(frozen=True)
class Texts:
    """What stands below a figure, what is read aloud in its place, the key to its marks; or why there is none."""

    caption: str
    alternative: str
    key: str = ""  # where the figure has been drawn
    lacking: str = ""  # why there is nothing to show
    in_short: str = ""  # the line in whose fold it stands, where it shows little


def texts_for(name: str, results: Results, key: str = "") -> Texts:
    """Made from the numbers; what is read aloud begins with the platform, unless all is measured."""
    module = all_figures()[name].module
    alternative = first_words(results) + module.alternative(results)
    in_short = getattr(module, "in_short", lambda _: "")(results)
    return Texts(module.caption(results).strip(), alternative, key, module.lacking(results), in_short)


def whole_caption(texts: Texts, results: Results) -> str:
    """The caption of a file that travels alone: the platform stands before it, the source behind."""
    return f"{first_words(results)}{texts.caption} {source(results)}"


def write_texts(texts: Texts, caption: str, stem: Path) -> None:
    """Write STEM.page.json, STEM.alt.txt, and of the whole caption STEM.txt, and STEM.rst for `snakemake --report`."""
    # Set apart: what reStructuredText would take for markup, and the braces of the template that it becomes.
    marked = re.sub(r"([\\*_`|])", r"\\\1", caption)
    marked = re.sub(r"[{}]", lambda brace: f"{{{{ '{brace[0]}' }}}}", marked)
    page = json.dumps(asdict(texts), indent=1, ensure_ascii=False)
    for suffix, text in {"txt": caption, "alt.txt": texts.alternative, "rst": marked, "page.json": page}.items():
        with writing(file := stem.with_name(f"{stem.name}.{suffix}")):
            replace_text(file, text + "\n")


def texts_of(stem: Path) -> Texts:
    """Read what was written for the page when the figure was drawn."""
    file = stem.with_name(f"{stem.name}.page.json")
    try:
        return Texts(**mapping_of(file))
    except FileNotFoundError:
        reason = "is not there"
    except (ValueError, TypeError):
        reason = "cannot be read"
    raise CastmatesError(f"{file}: the figure's text {reason}; run the study's sweep again.") from None
