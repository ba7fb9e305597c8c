"""Writes what a replay shows into a folder: its table, its figure and its page."""

from pathlib import Path

from castmates.files import replace_text
from castmates.report.comparison import figure, replay_page
from castmates.report.comparison.replay import Replayed
from castmates.report.figures import style
from castmates.report.figures.page_svg import page_svg
from castmates.results.tables import write_table

TABLE = "replay.csv"


def write(replay: Replayed, folder: Path) -> list[Path]:
    """Write table, figure and page."""
    write_table(replay.table, folder / "replay")
    drawn, source = figure.draw(replay.pair)
    style.write(drawn, source, folder / "replay-figure")
    replace_text(folder / "replay-figure.page.svg", page_svg(drawn, "replay-figure"))
    replay_page.write_page(replay, folder, folder / "index.html")
    return [folder / "index.html", folder / TABLE, folder / "replay-figure.svg"]
