"""The drawing that the page has: letters that are text, the page's ink and ground, values; and none of it in a file."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from castmates.report.figures import heatmap, windows
from castmates.report.figures.drawing import NAMED, SVG, draw_figure, key_of, page_svg
from castmates.report.figures.marks import values_of, with_value
from castmates.report.figures.style import PREFIX
from castmates.report.figures.texts import texts_of
from castmates.report.results import read_results
from tests.unit.results_maker import make

STYLE = Path(__file__).parents[2] / "castmates/report/page/templates/figures.css"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return read_results(make(tmp_path_factory.mktemp("page-svg") / "study", platform="modelled"))


@pytest.fixture(scope="module")
def drawn(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    draw_figure("heatmap", study, folder / "heatmap")
    return folder


def said(root):
    return [element.text for element in root.iter(f"{{{SVG}}}text")]


def test_the_pages_drawing_has_its_words_as_text_and_no_badge_and_no_source(study, drawn):
    root = ElementTree.fromstring((drawn / "heatmap.page.svg").read_text())
    words = said(root)
    assert {"dlrm-train", "stream", "against alone"} <= set(words)
    assert not any("modelled" in word or "study study" in word for word in words)
    printed = (drawn / "heatmap.svg").read_text()
    assert "<text" not in printed, "outlines need no font"
    assert key_of(heatmap.draw(study)[0]) == texts_of(drawn / "heatmap").key
    assert "▼ loss" in texts_of(drawn / "heatmap").key
    size = [float(ElementTree.fromstring(text).get("height").removesuffix("pt")) for text in
            (printed, (drawn / "heatmap.page.svg").read_text())]  # fmt: skip
    assert size[1] < size[0] - 20, "without the room for them"


def test_the_pages_drawing_has_the_pages_ink_on_the_pages_ground(drawn):
    text = (drawn / "heatmap.page.svg").read_text()
    assert "currentColor" in text
    assert not {colour for colour in NAMED if colour in text}, "each is a name, which dark ground can change"
    assert "font-family" not in text
    root = ElementTree.fromstring(text)
    grounds = [one.get("style", "") for one in root.iter(f"{{{SVG}}}path") if "fill: #fff" in one.get("style", "")]
    assert grounds == []


def test_every_name_of_a_colour_is_in_the_pages_style_for_light_and_for_dark():
    css = STYLE.read_text()
    own = {
        name
        for name in re.findall(r"var\((--[a-z0-9-]+)\)", " ".join(NAMED.values()))
        if name not in ("--soft", "--mark")
    }
    light, _, dark = css.partition("@media screen and (prefers-color-scheme: dark)")
    for part in (light, dark.partition("}\n}")[0]):
        assert own == set(re.findall(r"(--(?!ink|page|card|edge|link)[a-z0-9-]+):", part))


def test_every_cell_has_its_value_which_no_file_has(study, drawn):
    root = ElementTree.fromstring((drawn / "heatmap.page.svg").read_text())
    titles = [title.text for title in root.iter(f"{{{SVG}}}title")]
    rows = heatmap.draw(study)[1].query("row == 'mix' and loss_pct == loss_pct")
    assert len(titles) == len(rows)
    first = rows.iloc[0]
    start = f"{first['lead']} beside {first['antagonists']}: {first['loss_pct']:.1f} %".replace("-0", "−0")
    assert any(title.startswith(start) and title.endswith(f"{first['launches']} launches") for title in titles)
    assert PREFIX not in (drawn / "heatmap.svg").read_text()


def test_each_point_of_a_collection_has_its_own_value(study):
    root = ElementTree.fromstring(page_svg(windows.draw(study)[0], "windows"))
    marks = [one for one in root.iter() if one.get("class") == "value"]
    points = {tuple(one.get(side) for side in "xy") for one in marks if one.tag == f"{{{SVG}}}use"}
    titles = [one.find(f"{{{SVG}}}title").text for one in marks]
    shown = windows.draw(study)[1]["minutes"].notna().sum()
    assert len(titles) >= shown
    assert len(points) > 0.9 * shown
    assert any(re.fullmatch(r"dlrm-train, launch \d, round \d, beside stream: 0\.\d{3}", title) for title in titles)


def test_identifiers_are_the_figures_own_and_lead_to_what_they_name(drawn):
    text = (drawn / "heatmap.page.svg").read_text()
    named = set(re.findall(r' id="([^"]+)"', text))
    assert all(name.startswith("heatmap-") for name in named)
    assert set(re.findall(r'(?:url\(|href=")#([^")]+)', text)) <= named


def test_a_mark_says_its_words_or_none():
    class Mark:
        gid = ""

        def set_gid(self, gid):
            self.gid = gid

    assert values_of(with_value(Mark(), "a & b", "<c>").gid) == ["a & b", "<c>"]
    assert values_of("PathCollection_1") == ()
