"""The page's parts: which figures stand where, and how a verdict on many mixes is put."""

from pathlib import Path

from castmates.report.figures import index
from castmates.report.figures.index import FIGURES
from castmates.report.page.common_parts import inline_svg
from castmates.report.page.page import contents, figure_parts

FOLDER = Path(index.__file__).parent


def test_every_module_that_draws_is_a_row_and_every_row_has_its_place():
    draws = {file.stem for file in FOLDER.glob("*.py") if "\ndef draw(" in file.read_text()}
    assert draws == set(FIGURES)
    assert [row for part in figure_parts(list(FIGURES)) for row in part.figures] == list(FIGURES.values())
    assert [part.id for part in figure_parts([])] == ["health"]


def test_the_contents_name_the_parts_in_the_pages_order():
    ids = [id for _, links in contents(figure_parts(["heatmap", "control"])) for id, _ in links]
    assert ids == ["result", "losses", "health", "rejected", "tables", "method", "machine", "provenance"]


def test_an_inlined_figure_names_no_address(tmp_path):
    file = tmp_path / "figure.svg"
    file.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="1"><g id="x"/></svg>')
    assert inline_svg(file) == '<svg aria-hidden="true" focusable="false" width="1"><g id="x" /></svg>'
