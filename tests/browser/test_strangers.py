"""What a stranger puts into drawings and texts does not run in a browser: opened for real, past that of drawings."""

import re

import pytest

from castmates.report.figures.index import FIGURES
from castmates.report.page.page import page
from castmates.report.results import read_results
from tests.browser.devtools import Page
from tests.unit import drawings, results_maker
from tests.unit.test_strangers import results_full_of

RAN = "document.body.dataset.ran ?? ''"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return read_results(
        results_maker.make(tmp_path_factory.mktemp("results") / "study", leads=["a"], antagonists=["b"])
    )


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """A tab of its own, and what has run in a page once everything in it is loaded."""
    tab, file = Page(browser), tmp_path_factory.mktemp("opened") / "index.html"

    def open_page(html):
        file.write_text(html)
        tab.open(file)
        ran = tab.ask(f"new Promise(done => setTimeout(() => done({RAN}), 200))")
        return ran, tab.ask("location.href") == file.as_uri()

    return open_page


def test_the_policy_of_a_page_stops_what_a_drawing_brings(opened, results):
    """And each of these would have run without it."""
    html = page(results, dict.fromkeys(FIGURES, "") | {"heatmap": "<svg>HERE</svg>"})
    for payload in drawings.ACTIVE:
        assert opened(html.replace("HERE", payload)) == ("", True), payload
        assert opened(without_policy(html).replace("HERE", payload))[0] == "1", payload


def test_texts_of_results_do_not_run(opened, tmp_path):
    folder = results_full_of(" ".join(drawings.ACTIVE), tmp_path / "theirs")
    html = page(read_results(folder), dict.fromkeys(FIGURES, "<svg></svg>"))
    assert opened(without_policy(html)) == ("", True)


def without_policy(html):
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
