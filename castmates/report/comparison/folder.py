"""Writes a comparison into a folder: its tables, its figures and its page."""

from pathlib import Path

from castmates.analysis.comparison.details import KINDS
from castmates.files import refuse_foreign, replace_text
from castmates.report.comparison import figure, history_figure, page
from castmates.report.comparison.compared import Several
from castmates.report.comparison.detail_words import detail_file
from castmates.report.figures import style
from castmates.report.figures.page_svg import page_svg
from castmates.results.tables import write_table

TABLE = "comparison.csv"


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no comparison wrote, for example a study's report."""
    refuse_foreign(folder, TABLE, lambda text: "slowdown_a" in text, "castmates compare")


def write(several: Several, folder: Path) -> list[Path]:
    """Write tables, figures and page; of two studies the figure that has both beside each other."""
    for name, table in (("comparison", several.table), ("means", several.means), ("history", several.history)):
        write_table(table, folder / name)
    for kind in KINDS:
        stem = folder / detail_file(kind.name).removesuffix(".csv")
        if kind.name in several.details.tables:
            write_table(several.details.tables[kind.name], stem)
        else:  # of an earlier comparison
            for suffix in (".csv", ".parquet"):
                stem.with_suffix(suffix).unlink(missing_ok=True)
    drawings = {
        "comparison": figure.draw_several(several) if len(several.pairs) > 1 else figure.draw(several.pairs[0]),
        "history": history_figure.draw(several),
    }
    for name, (drawn, source) in drawings.items():
        style.write(drawn, source, folder / f"{name}-figure")
        replace_text(folder / f"{name}-figure.page.svg", page_svg(drawn, f"{name}-figure"))
    page.write_page(several, folder, folder / "index.html")
    return [folder / "index.html", folder / TABLE, folder / "comparison-figure.svg"]
