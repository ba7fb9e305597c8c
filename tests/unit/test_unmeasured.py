"""What is not measured is marked so first, wherever its numbers stand, and nothing about it is green."""

import re

import pytest

from castmates.analysis.effects.stamps import origin_word, stamps_table
from castmates.report.figures.index import FIGURES
from castmates.report.figures.sheet import badge, badge_room, empty_figure
from castmates.report.figures.style import COLUMN
from castmates.report.figures.texts import texts_for, whole_caption
from castmates.report.page.page import page
from castmates.report.results import read_results
from castmates.report.text.stamps import GOOD, caveat, first_words, stamped, stamps
from tests.unit.results_maker import make

OTHERS = ("emulated", "modelled")


@pytest.fixture(params=OTHERS, scope="module")
def unmeasured(request, tmp_path_factory):
    """A study with stamps that would all be good ones."""
    folder = tmp_path_factory.mktemp("unmeasured") / "study"
    return request.param, read_results(make(folder, leads=["a"], antagonists=["b"], platform=request.param))


@pytest.mark.parametrize(
    ("platforms", "word"),
    [
        (["measured"], ""),
        ([], ""),
        (["", "measured"], ""),
        (["modelled"], "modelled (not measured)"),
        (["measured", "emulated"], "partly emulated (not measured)"),
    ],
)
def test_where_the_numbers_come_from_in_a_word(platforms, word):
    assert origin_word(platforms) == word


def test_stamps_and_captions_begin_with_it(unmeasured):
    platform, results = unmeasured
    word = f"{platform} (not measured)"
    assert caveat(results) == word
    assert stamped(results).startswith(f"This study is stamped: {word}, noise within the margin")
    assert not [pill for pill in stamps(results) if pill.state == GOOD]
    first = f"{platform.capitalize()} (not measured). "
    assert first_words(results) == first
    for name in FIGURES:
        texts = texts_for(name, results)
        assert whole_caption(texts, results).startswith(first)
        assert texts.alternative.startswith(first)


def test_the_page_says_it_first_and_has_no_green(unmeasured):
    platform, results = unmeasured
    html = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    found = re.findall(r'<span class="stamp ([a-z]+)"[^>]*>([^<]*)</span>', html)
    assert found[0] == ("other", f"{platform} (not measured)")
    assert "good" not in [state for state, _ in found]
    assert '<body class="sided unmeasured">' in html, "where CSS takes the green from the tables' verdicts"
    assert ".unmeasured { --good: var(--soft); }" in html
    captions_of_tables = re.findall(r"<caption>(.*?)</caption>", html, flags=re.DOTALL)
    numbers = [text for text in captions_of_tables if not text.startswith("Who plays")]
    assert len(numbers) >= 5
    assert all(text.startswith(f"{platform.capitalize()} (not measured). ") for text in numbers)
    assert f'content: "{platform} (not measured) · noise within the margin' in html, "on every sheet of paper"


def test_the_table_of_stamps_says_it_first_and_calls_nothing_good(unmeasured):
    platform, results = unmeasured
    table = stamps_table("study", results.controls, set(), results.platforms, results.machine)
    assert table["stamp"].tolist() == ["origin", "control", "sensitivity"]
    assert table["word"].tolist()[0] == f"{platform} (not measured)"
    assert not table["good"].any()
    assert table["sentence"].str.startswith(f"{platform.capitalize()} (not measured). ").all()


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_it_in_its_corner(unmeasured, figure):
    platform, results = unmeasured
    drawn, _ = FIGURES[figure].module.draw(results)
    assert f"{platform} (not measured)" in [text.get_text() for text in drawn.texts]


def test_however_much_speaks_against_a_narrow_figure_is_all_in_it():
    words = "modelled (not measured) · too few launches for the controls · no sensitivity shown here · masks unverified"
    figure = empty_figure("Nothing.", words)
    badge(figure, words)
    room = badge_room(words, COLUMN) * figure.dpi
    for text in figure.texts:
        if "masks" in text.get_text():
            box = text.get_window_extent()
            assert 0 < box.x0 < box.x1 < figure.bbox.x1
            assert figure.bbox.y1 - room < box.y0 < box.y1 < figure.bbox.y1
            assert " ".join(text.get_text().split()) == words
