"""A flame graph in a real browser: it is searched, zoomed, and read with the keys, in light and in dark."""

from castmates.timeline.flames.files import draw
from castmates.timeline.flames.profile import ALONE, CORUN, profile
from castmates.timeline.flames.tree import difference
from tests.unit.test_flames import BESIDE, BY_ITSELF, made

SHOWN = (
    """[...document.querySelectorAll('.frame')].filter(one => one.style.display !== 'none').map(one => one.dataset.n)"""
)
HITS = "[...document.querySelectorAll('.frame.hit')].map(one => one.dataset.n)"
WIDTH = """document.querySelector('[data-n="compute"]').getBoundingClientRect().width"""
CLICK = (
    """document.querySelector('[data-n="compute"] rect').dispatchEvent(new MouseEvent('click', { bubbles: true }))"""
)
SEARCH = """(() => { const field = document.querySelector('input'); field.value = %r;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  return document.querySelector('.found').textContent; })()"""
COLOURS = """(() => { const seen = (of) => getComputedStyle(document.querySelector(of)).fill;
  return [seen('.ground'), seen('text.title'), seen('[data-n="load<int>"] rect')]; })()"""


def test_it_is_searched_zoomed_and_read_with_the_keys(tab, tmp_path):
    trace = made(BY_ITSELF, BESIDE)
    flame = difference(profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN), "step")
    file = tmp_path / "flame.svg"
    file.write_text(draw(flame, "lead@0 beside others", "measured · study x"), encoding="utf-8")
    tab.open(file)
    assert tab.complaints() == []
    assert tab.requests() == [file.as_uri()]
    every = tab.ask(SHOWN)
    assert len(every) == 7
    assert tab.ask(SEARCH % "LOAD<").startswith("1 frames, 49.6 %")
    assert tab.ask(HITS) == ["load<int>"]
    assert tab.ask(SEARCH % "") == ""
    before = tab.ask(WIDTH)
    tab.ask(CLICK)
    assert tab.ask(SHOWN) == ["all", "main", "compute", "load<int>"]
    assert tab.ask(WIDTH) > before
    tab.ask("document.querySelector('button').click()")
    assert tab.ask(SHOWN) == every
    assert abs(tab.ask(WIDTH) - before) < 0.1
    tab.ask("document.querySelector('.frame').focus()")
    tab.press("ArrowDown")
    tab.press("ArrowDown")
    reading = tab.ask("document.querySelector('.reading').textContent")
    assert reading.startswith("compute · ")
    assert "alone" in reading
    tab.press("Enter")
    assert tab.ask(SHOWN) == ["all", "main", "compute", "load<int>"]
    tab.press("Escape")
    assert tab.ask(SHOWN) == every
    light = tab.ask(COLOURS)
    tab.media(dark=True)
    dark = tab.ask(COLOURS)
    assert all(one != other for one, other in zip(light, dark, strict=True))
