"""What docs/contributing/ builds step by step is still found, works, and passes the tests of its page."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from castmates.report.figures.index import FIGURES, declared
from castmates.report.results import read_results
from castmates.results.columns.contract import Table
from tests.unit.legible import problems
from tests.unit.results_maker import make

PAGES = Path(__file__).parents[2] / "docs/contributing"


def launches(page):
    """The launches of Python on a page: a module, and its test."""
    return re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def module(request, monkeypatch):
    """What the first launch of a page declares, as the module that it is there, after the test of the second launch."""
    page, name = request.param
    code, test = launches(page)
    made, tests = ModuleType(name), ModuleType("test")
    exec(code, vars(made))
    monkeypatch.setitem(sys.modules, name, made)
    exec(test, vars(tests))
    for test_name in [name for name in vars(tests) if name.startswith("test_")]:
        getattr(tests, test_name)()
    return made


@pytest.mark.parametrize("module", [("a-new-figure.md", "castmates.report.figures.launches")], indirect=True)
def test_the_figure_of_the_page_is_drawn_and_described(module, tmp_path):
    results = read_results(make(tmp_path / "study", launches=3))
    drawn, source = module.draw(results)
    assert problems(drawn) == []
    assert list(source.columns) == module.SHOWN
    assert source.groupby("lead")["relative_rate"].median().tolist() == pytest.approx([1.0] * source["lead"].nunique())
    assert "ring is a launch" in module.caption(results)
    assert " from " in module.alternative(results)


def test_the_figure_of_the_page_is_found_by_its_declaration(tmp_path):
    (tmp_path / "launches.py").write_text(launches("a-new-figure.md")[0])
    found = declared(tmp_path / "launches.py")
    assert (found.name, found.part) == ("launches", "health")
    assert found.place not in {view.place for view in FIGURES.values()}


@pytest.mark.parametrize("module", [("a-new-table.md", "castmates.analysis.tables.launch_spread")], indirect=True)
def test_the_table_of_the_page_declares_its_estimate(module):
    (table,) = (each for each in vars(module).values() if isinstance(each, Table))
    assert table.estimate == "tables.launch_spread:launch_spread"
    assert table.rule == "analyse"
