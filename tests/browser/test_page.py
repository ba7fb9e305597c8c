"""The page in a real browser: nothing is loaded, nothing overflows, everything has a name, and it prints."""

import re
import zlib
from itertools import pairwise

import pytest

from castmates.report.page.common_parts import ROW

BESIDE = """document.querySelectorAll('a[href^="../"]').length"""
HEADINGS = "[...document.querySelectorAll('h1,h2,h3,h4')].map(head => Number(head.tagName[1]))"
COLOURS = """(() => { const seen = (of) => getComputedStyle(document.querySelector(of));
  return [seen("body").backgroundColor, seen("body").color, seen(".drawing").backgroundColor]; })()"""
FOCUSED = """(() => { const one = document.activeElement, look = getComputedStyle(one);
  return [one.textContent.trim().slice(0, 40), look.outlineStyle, one.getBoundingClientRect().left >= 0]; })()"""
LETTERS = "[...document.querySelectorAll('.drawing text')].map(one => getComputedStyle(one).fill)"
READING = "document.querySelector('.heatmap .reading').textContent"
POINTED = """(() => { const mark = document.querySelector('.heatmap .value');
  mark.scrollIntoView({ launch: 'center' });
  const { left, top, width, height } = mark.getBoundingClientRect();
  const place = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true };
  document.elementFromPoint(place.clientX, place.clientY).dispatchEvent(new PointerEvent('pointermove', place));
  return document.querySelector('.heatmap .reading').textContent; })()"""
PLACE = "document.querySelector('.heatmap .reading').getBoundingClientRect().toJSON()"
BEYOND = """[...document.querySelectorAll('.drawing svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(one => { const box = one.getBoundingClientRect();
    return Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom) > 2;
  }).map(one => one.textContent); })"""
PRINTED = """[...document.querySelectorAll(".tools, nav, .skip")].filter(one => one.offsetHeight).length"""


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1280, False)])
def test_it_loads_nothing_says_nothing_and_does_not_overflow(tab, usual, width, dark):
    tab.open(usual, width, dark)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [usual.as_uri()]
    assert tab.ask("document.documentElement.scrollWidth") == width
    wide = "[...document.querySelectorAll('main > *, section > *')].filter(one => one.getBoundingClientRect().right"
    assert tab.ask(f"{wide} > innerWidth + 0.5).map(one => one.outerHTML.slice(0, 80))") == []


def test_a_long_command_wraps_on_a_phone(tab, usual):
    tab.open(usual, 390)
    command = "castmates sweep studies/a-long-name-of-a-study-that-is-wide.yaml --launches 35 -j 4"
    next_step = f"<p class=next><strong>To settle it:</strong> more. <code>{command}</code></p>"
    tab.ask(f"document.querySelector('.result').insertAdjacentHTML('beforeend', '{next_step}')")
    assert tab.ask("document.documentElement.scrollWidth") == 390


def test_light_and_dark_differ_and_so_do_drawings(tab, usual):
    tab.open(usual)
    page, ink, card = tab.ask(COLOURS)
    letters = tab.ask(LETTERS)
    tab.media(dark=True)
    dark_page, dark_ink, dark_card = tab.ask(COLOURS)
    assert _brightness(page) > 200 > 60 > _brightness(ink)
    assert _brightness(dark_page) < 60 < 200 < _brightness(dark_ink)
    assert _brightness(card) == 255
    assert _brightness(dark_card) < 60
    dark_letters = tab.ask(LETTERS)
    assert len(letters) == len(dark_letters) > 100
    assert ink in letters
    assert dark_ink in dark_letters
    assert ink not in dark_letters, "dark letters on dark ground"


def test_letters_of_drawings_are_text_that_can_be_searched(tab, usual):
    tab.open(usual)
    words = tab.ask("[...document.querySelectorAll('.heatmap .drawing text')].map(one => one.textContent)")
    assert {"dlrm-train", "stream"} <= set(words)
    assert tab.ask("find('against alone', true, false, true)"), "as the browser's own search finds it"


def test_the_value_of_a_mark_is_shown_at_the_pointer_and_read_with_the_arrow_keys(tab, usual):
    tab.open(usual)
    assert tab.ask("document.querySelectorAll('.value title').length") == 0, "or a second one would be shown"
    assert tab.ask(READING) == ""
    words = tab.ask(POINTED)
    assert re.fullmatch(r"\S+ beside \S+: .* launches", words)
    assert tab.ask(READING) == words
    box = tab.ask(PLACE)
    assert box["left"] >= 0
    assert box["right"] <= 1280
    tab.ask("document.querySelector('.heatmap .drawing').dispatchEvent(new PointerEvent('pointerleave'))")
    assert tab.ask(READING) == ""
    tab.ask("document.querySelector('.heatmap .drawing').focus()")
    seen = []
    for _ in range(3):
        tab.press("ArrowRight")
        seen.append(tab.ask(READING))
    assert len(set(seen)) == 3
    assert tab.ask("document.querySelector('.heatmap .drawing + .unread').textContent") == seen[-1]
    tab.press("ArrowLeft")
    assert tab.ask(READING) == seen[1]
    tab.press("Escape")
    assert tab.ask(READING) == ""


@pytest.mark.parametrize("width", [390, 1280])
def test_words_of_a_drawing_do_not_leave_it(tab, usual, width):
    tab.open(usual, width)
    assert tab.ask(BEYOND) == []


def test_links_to_what_lies_beside_the_page_are_words_where_it_was_moved(tab, usual, tmp_path):
    tab.open(usual)
    text = tab.ask("document.body.textContent")
    assert tab.ask(BESIDE) > 20
    moved = tmp_path / "page.html"
    moved.write_bytes(usual.read_bytes())
    tab.open(moved)
    assert tab.complaints() == []
    assert tab.ask(BESIDE) == 0
    assert tab.ask("document.body.textContent") == text
    assert tab.ask("document.querySelectorAll('a[href^=\"#\"]').length") > 5


def test_no_address_of_another_machine_is_in_the_file(usual):
    assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+", usual.read_text(encoding="utf-8")) == []


def test_screen_readers_find_names_landmarks_and_headings_in_order(tab, usual):
    tab.open(usual)
    tab.unfold()
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    told = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    for role in ("image", "button", "link", "table", "region", "searchbox", "navigation"):
        names = [name for kind, name in told if kind == role]
        assert names, role
        assert all(len(name) > 2 for name in names), (role, names)
    assert {"banner", "main", "contentinfo"} <= {role for role, _ in told}
    assert all(len(name) > 20 for role, name in told if role == "image")
    assert tab.ask("document.querySelectorAll('figure').length") == sum(role == "image" for role, _ in told)
    identifiers = tab.ask("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(identifiers) == len(set(identifiers)), "figures share the page"
    levels = tab.ask(HEADINGS)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert tab.ask("[...document.querySelectorAll('table')].filter(one => !one.caption).length") == 0
    assert tab.ask("[...document.querySelectorAll('th')].filter(one => !one.scope).length") == 0
    unreachable = "[...document.querySelectorAll('.scroll, .drawing, pre')].filter(one => one.tabIndex < 0).length"
    assert tab.ask(unreachable) == 0


def test_the_first_key_leads_to_the_result_and_the_focus_is_seen(tab, usual):
    tab.open(usual)
    tab.press("Tab")
    assert tab.ask(FOCUSED) == ["To the result", "solid", True]
    tab.press("Enter", "\r")
    assert tab.ask("location.hash") == "#result"


def test_drawings_out_of_sight_take_their_place(tab, usual):
    tab.open(usual)
    sizes = "[...document.querySelectorAll('.drawing svg')].map(one => one.getBoundingClientRect().height.toFixed(1))"
    unseen = tab.ask(sizes)
    assert len(set(unseen)) > 1
    natural = "content-visibility: visible; aspect-ratio: auto; width: auto"
    tab.ask(f"document.querySelectorAll('.drawing svg').forEach(one => {{ one.style = '{natural}'; }})")
    assert tab.ask(sizes) == unseen


def test_it_prints_whole_and_without_what_only_a_screen_needs(tab, large):
    tab.open(large)
    assert tab.ask(PRINTED) > 0
    tab.media("print")
    tab.ask("dispatchEvent(new Event('beforeprint'))")
    assert tab.ask(PRINTED) == 0
    text = large.read_text(encoding="utf-8")
    shown = "[...document.querySelectorAll('tbody tr')].filter(row => row.offsetHeight).length"
    assert tab.ask(shown) == len(ROW.findall(text)) - text.count("<thead>")
    assert tab.ask("document.querySelectorAll('details:not([open])').length") == 0
    tab.ask("dispatchEvent(new Event('afterprint'))")
    assert tab.ask("document.querySelectorAll('details[open]').length") == 0
    assert tab.ask("Math.max(...[...document.querySelectorAll('tbody')].map(one => one.rows.length))") == 50


def test_every_page_of_the_print_has_content(tab, usual):
    tab.open(usual)
    paper = tab.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 4
    streams = [_inflated(part) for part in re.findall(rb"stream\r?\n(.*?)endstream", paper, re.DOTALL)]
    pages = [text for text in streams if b"BT" in text and b"ET" in text]
    assert len(pages) >= 4
    assert all(text.count(b"BT") > 3 for text in pages)


def _inflated(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def _brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
