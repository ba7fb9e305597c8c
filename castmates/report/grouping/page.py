"""The page of a placement: one self-contained HTML file with the look of a study's report."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

import castmates
from castmates.analysis.grouping.advice import RANKS
from castmates.files import replace_text, writing
from castmates.report.figures import style
from castmates.report.figures.page_svg import key_of, page_svg
from castmates.report.grouping import figure
from castmates.report.grouping.shown import Shown
from castmates.report.grouping.words import fresh_words, limit_words, loss_words, schemata, sentences, task
from castmates.report.page.common_parts import common_parts, first_words, inline_svg
from castmates.report.page.long_tables import folded
from castmates.report.page.page import environment
from castmates.report.results import records
from castmates.report.text.words import number
from castmates.results.tables import write_table


def write(shown: Shown, folder: Path) -> list[Path]:
    """Write tables, figure and page into a folder."""
    write_table(shown.groupings, folder / "groupings")
    write_table(shown.ways, folder / "ways")
    drawn, source = figure.draw(shown)
    style.write(drawn, source, folder / "placement-figure")
    replace_text(folder / "placement-figure.page.svg", page_svg(drawn, "placement-figure"))
    content = page(shown, inline_svg(folder / "placement-figure.page.svg"), key_of(drawn))
    with writing(output := folder / "index.html"):
        replace_text(output, content)
    return [output, folder / "groupings.csv", folder / "placement-figure.svg"]


def page(shown: Shown, drawing: str, key: str) -> str:
    """The page's HTML."""
    said = sentences(shown)
    content = {
        **common_parts(),
        "shown": shown,
        "title": f"Which jobs should share a cache: {shown.title or shown.advice.place.study}",
        "task": task(shown),
        "first": first_words(shown.origin),
        "sentences": said,
        "best": [_grouping(shown, rank) for rank in sorted(set(shown.groupings["rank"]))],
        "ways": [_way(row) for row in records(shown.ways[shown.ways["job"] == ""])],
        "drawing": Markup(drawing),
        "key": key,
        "alternative": " ".join(filter(None, [shown.origin, *said])),
        "version": castmates.__version__,
    }
    return folded(environment().get_template("grouping.html.j2").render(content))


def _grouping(shown: Shown, rank: int) -> dict[str, Any]:
    rows = records(shown.groupings[shown.groupings["rank"] == rank])
    found = shown.advice.found.best[rank - 1]
    return {
        "name": f"The {RANKS[rank - 1]} grouping",
        "mean": number(found.mean_loss),
        "rows": [row | {"said": loss_words(row), "limit": limit_words(row), "fresh": fresh_words(row)} for row in rows],
        "fresh": any(row["confirmed_in"] for row in rows),
        "masks": any(row["mask"] for row in rows),
        "schemata": schemata(shown, rank),
    }


def _way(row: dict[str, Any]) -> dict[str, Any]:
    named = ("loss_pct", "loss_p5", "loss_p95", "gain_pct", "exceeded", "domains")
    said = {f"said_{name}": number(row[name]) for name in named}
    return row | said | {"said_stp": number(row["stp"], 2), "said_predicted": number(100 * row["predicted"], 0)}
