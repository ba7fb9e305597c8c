"""The page of a replay: one self-contained HTML file with the look of a comparison's."""

from pathlib import Path

from markupsafe import Markup

import castmates
from castmates.files import replace_text, writing
from castmates.report.comparison import figure
from castmates.report.comparison.page import drawn
from castmates.report.comparison.replay import Replayed, rows, sentences, stamp
from castmates.report.figures import style
from castmates.report.figures.drawing import page_svg
from castmates.report.page.common_parts import common_parts, first_words, folded
from castmates.report.page.page import environment
from castmates.results.tables import write_table
from castmates.study.spec import UNMANAGED


def write_page(replay: Replayed, drawings: Path, output: Path) -> None:
    """Write the page, whole or not at all, with the figure drawn in the folder `drawings` inside."""
    content = page(replay, drawn(drawings, "replay"))
    with writing(output):
        replace_text(output, content)


def page(replay: Replayed, drawing: Markup) -> str:
    """The page's HTML."""
    pair, words = replay.pair, sentences(replay)
    first = first_words(pair.origin)
    template = environment().get_template("replay.html.j2")
    return folded(
        template.render(
            **common_parts(),
            version=castmates.__version__,
            replay=replay,
            title=f"{pair.a.name}, measured again",
            stamp=stamp(replay),
            first=first,
            sentences=words,
            rows=rows(replay),
            partitioned=bool((replay.table["partition"] != UNMANAGED).any()),
            drawing=drawing,
            caption=caption(replay),
            alternative=first + " ".join(words),
        )
    )


def caption(replay: Replayed) -> str:
    """What stands below the figure."""
    pair = replay.pair
    return (
        f"{first_words(pair.origin)}Left: loss of each lead against its own rate alone, as published (A, grey) and "
        "as measured here (B), with 95 % t intervals between launches. Right: by how much the slowdown here is above "
        "the published one, with Welch's 95 % interval over the launches of both, and the margin of "
        f"±{100 * pair.margin:.3g} %. Losses are ratios inside each study: being faster costs a machine nothing."
    )


def write(replay: Replayed, folder: Path) -> list[Path]:
    """Write table, figure and page."""
    write_table(replay.table, folder / "replay")
    drawn, source = figure.draw(replay.pair)
    style.write(drawn, source, folder / "replay-figure")
    replace_text(folder / "replay-figure.page.svg", page_svg(drawn, "replay-figure"))
    write_page(replay, folder, folder / "index.html")
    return [folder / "index.html", folder / "replay.csv", folder / "replay-figure.svg"]
