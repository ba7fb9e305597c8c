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
    write(compare_studies([a, b], None), place / "out")
    return place / "out" / "index.html"


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    place, plan = tmp_path_factory.mktemp("several"), made(atoms(), blocks=3)
    months = ["2026-01-05T10:00:00+00:00", "2026-02-05T10:00:00+00:00", "2026-04-05T10:00:00+00:00"]
    studies = [
        study_folder.write(place / f"study-{number}", plan, windows(plan, noise=0.002 + 0.001 * number), started=month)
        for number, month in enumerate(months)
    ]
    write(compare_studies(studies, None), place / "out")
    return place / "out" / "index.html"


@pytest.mark.parametrize("width", [360, 1280])
def test_it_loads_nothing_says_nothing_and_does_not_overflow(tab, compared, width):
    tab.open(compared, width)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [compared.as_uri()]
    assert tab.ask("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_of_several_loads_nothing_and_does_not_overflow(tab, several, width):
    tab.open(several, width)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [several.as_uri()]
    assert tab.ask("document.documentElement.scrollWidth") == width
    assert tab.ask("[...document.querySelectorAll('table')].filter(one => !one.caption).length") == 0
    assert tab.ask("document.querySelectorAll('[role=img] svg').length") == 2


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
