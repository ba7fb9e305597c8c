"""The page of a comparison in a real browser: nothing is loaded or overflows, its table sorts, all has a name."""

import pytest


@pytest.mark.parametrize(("name", "figures"), [("compared", 1), ("several", 2)])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_loads_nothing_says_nothing_and_does_not_overflow(tab, request, name, figures, width):
    page = request.getfixturevalue(name)
    tab.open(page, width)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [page.as_uri()]
    assert tab.ask("document.documentElement.scrollWidth") == width
    assert tab.ask("[...document.querySelectorAll('table')].filter(one => !one.caption).length") == 0
    assert tab.ask("document.querySelectorAll('[role=img] svg').length") == figures


def test_everything_has_a_name_and_the_table_sorts(tab, compared):
    tab.open(compared)
    assert tab.ask(
        "[...document.querySelectorAll('[role=img]')].map(one => one.getAttribute('aria-label').length > 100)"
    ) == [True]
    assert tab.ask("[...document.querySelectorAll('a[href$=svg],a[href$=pdf],a[href$=png],a[href$=csv]')].length") == 6
    column = "[...document.querySelectorAll('thead th')].findIndex(head => head.textContent.includes('Slowdown'))"
    tab.ask(f"document.querySelectorAll('thead th')[{column}].querySelector('button').click()")
    values = tab.ask(f"[...document.querySelector('tbody').rows].map(row => Number(row.cells[{column}].dataset.value))")
    assert values == sorted(values)
    assert len(set(values)) > 3


@pytest.mark.parametrize(
    ("page", "figure"), [("compared", "comparison"), ("several", "comparison"), ("several", "history")]
)
def test_its_figures_are_text_on_the_pages_ground_with_values(tab, request, page, figure):
    tab.open(request.getfixturevalue(page), 1280, dark=True)
    drawing = f"#figure-{figure} .drawing"
    ground, letters = tab.ask(
        f"[getComputedStyle(document.querySelector('{drawing}')).backgroundColor,"
        f" document.querySelectorAll('{drawing} text').length]"
    )
    assert ground != "rgb(255, 255, 255)"
    assert letters > 5
    assert tab.ask(f"document.querySelectorAll('{drawing} .value').length") >= 3
