"""Takes the picture of README.md, a report's first screen: `make sweep browser`, then `python -m docs_site.picture`."""

import sys
import tempfile
from pathlib import Path

from tests.browser import chromium
from tests.browser.devtools import Browser, Page

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
WIDTH, SCALE = 1280, 1.5
HEIGHT = "Math.ceil(document.querySelector('.cards').getBoundingClientRect().bottom) + 16"  # down to the last card


def main(results: str = "results/first-look") -> None:
    """Photograph the report of a study."""
    program = chromium.fetch(print)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Browser([str(program)], Path(folder), {"HOME": folder}) as browser,
    ):
        page = Page(browser)
        page.open(Path(results, "report", "index.html").resolve(), WIDTH)
        size = {"width": WIDTH, "height": page.ask(HEIGHT), "deviceScaleFactor": SCALE, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        page.shot(PICTURE, whole=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
