"""The page of a comparison in a real browser: nothing is loaded or overflows, its table sorts, all has a name."""

import pytest

from castmates.report.comparison.compare import compare_studies
from castmates.report.comparison.folder import write
from tests.unit import study_folder
from tests.unit.partition_maker import atoms, made, windows


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    place, plan = tmp_path_factory.mktemp("compared"), made(atoms(), blocks=3)
    a = study_folder.write(place / "one", plan, windows(plan, noise=0.002))
    b = study_folder.write(place / "two", plan, windows(plan, noise=0.003), host="there")
    write(compare_studies(a, b, None), place / "out")
    return place / "out" / "index.html"


@pytest.mark.parametrize("width", [360, 1280])
def test_it_loads_nothing_says_nothing_and_does_not_overflow(tab, compared, width):
    tab.open(compared, width)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [compared.as_uri()]
    assert tab.ask("document.documentElement.scrollWidth") == width


def test_everything_has_a_name_and_the_table_sorts(tab, compared):
    tab.open(compared)
    assert tab.ask(
        "[...document.querySelectorAll('[role=img]')].map(one => one.getAttribute('aria-label').length > 100)"
    ) == [True]
    assert tab.ask("[...document.querySelectorAll('table')].filter(one => !one.caption).length") == 0
    assert tab.ask("[...document.querySelectorAll('a[href$=svg],a[href$=pdf],a[href$=png],a[href$=csv]')].length") == 5
    column = "[...document.querySelectorAll('thead th')].findIndex(head => head.textContent.includes('Slowdown'))"
    tab.ask(f"document.querySelectorAll('thead th')[{column}].querySelector('button').click()")
    values = tab.ask(f"[...document.querySelector('tbody').rows].map(row => Number(row.cells[{column}].dataset.value))")
    assert values == sorted(values)
    assert len(set(values)) > 3
