"""Writes a comparison into a folder: its table, its figure and its page."""

from pathlib import Path

from castmates.files import refuse_foreign, replace, writing
from castmates.report.comparison import figure, page
from castmates.report.comparison.compared import Compared
from castmates.report.figures import style

TABLE = "comparison.csv"


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no comparison wrote, such as a study's own report."""
    refuse_foreign(folder, TABLE, lambda text: "slowdown_a" in text, "castmates compare")


def write(compared: Compared, folder: Path) -> list[Path]:
    """Write table, figure and page."""
    table, html = folder / TABLE, folder / "index.html"
    with writing(table):
        replace(table, lambda file: compared.table.to_csv(file, index=False))
    drawing, source = figure.draw(compared)
    style.write(drawing, source, folder / "comparison-figure")
    page.write_page(compared, folder / "comparison-figure.svg", html)
    return [html, table, folder / "comparison-figure.svg"]
