"""The figure that docs/contributing/ builds step by step is still drawn as the page shows it."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from castmates.report.results import read_results
from tests.unit.legible import problems
from tests.unit.results_maker import make

PAGE = Path(__file__).parents[2] / "docs/contributing/a-new-figure.md"


@pytest.fixture
def launches():
    """The first block of Python on the page, as the module that it is there."""
    module = ModuleType("launches")
    code = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(code[1], vars(module))
    return module


def test_the_figure_of_the_page_is_drawn_and_described(launches, tmp_path):
    results = read_results(make(tmp_path / "study", blocks=3))
    drawn, source = launches.draw(results)
    assert problems(drawn) == []
    assert list(source.columns) == launches.SHOWN
    assert source.groupby("lead")["relative_rate"].median().tolist() == pytest.approx([1.0] * source["lead"].nunique())
    assert "ring is a launch" in launches.caption(results)
    assert " from " in launches.alternative(results)
