"""How large the page of many mixes is, and how long a headless Chromium takes to load it, to sort and to filter it."""

import argparse
from pathlib import Path
from statistics import median

from benchmarks.common import Report, run, say, scratch
from castmates.errors import CastmatesError
from castmates.report.figures.drawing import draw_figure
from castmates.report.page.page import shown, write_page
from castmates.report.results import read_results
from tests.browser import chromium
from tests.browser.devtools import Browser, Page
from tests.lab.kit.common import NoLab
from tests.unit.results_maker import make

LONGEST_TABLE = """() => {
  const rows = (tools) => Number(tools.querySelector("output").textContent.split(" ")[0]);
  const tools = [...document.querySelectorAll(".tools")].reduce((most, one) => (rows(one) > rows(most) ? one : most));
  return { tools, rows: rows(tools), table: tools.querySelector("input").ariaLabel.replace("Filter: Table of ", "") };
}"""
# Each answer is the milliseconds until it is laid out anew.
ACTS = """(() => {
  const { tools } = (LONGEST_TABLE)();
  const box = tools.querySelector("input"), fold = tools.querySelector("button");
  const head = document.getElementById(box.getAttribute("aria-controls")).querySelector("thead th.n button");
  const time = (act) => {
    const begin = performance.now();
    act();
    document.body.offsetHeight;
    return performance.now() - begin;
  };
  const filter = (words) => () => { box.value = words; box.dispatchEvent(new Event("input")); };
  return { sort: time(() => head.click()), filter: time(filter("alone")), "show all again": time(filter("")),
    unfold: time(() => fold.click()), "sort unfolded": time(() => head.click()) };
})()""".replace("LONGEST_TABLE", LONGEST_TABLE)
LOADED = "performance.timing.loadEventEnd - performance.timing.navigationStart"


def main() -> None:
    """Make pages of several sizes, and open and use each of them a few times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[2, 10, 20], help="leads, each beside as many others")
    parser.add_argument("--times", type=int, default=5, help="that each page is opened")
    parser.add_argument("--pages", type=Path, nargs="+", default=[], help="pages that are there already, instead")
    options = parser.parse_args()
    report = Report("Pages with many mixes", "page_scale")
    report.text("Generated studies of three launches, their figures drawn; medians in ms, of the longest table.")
    rows = []
    with scratch() as folder, Browser([str(_chromium())], folder, {"HOME": str(folder)}) as browser:
        tab = Page(browser)
        for page in options.pages:
            rows.append({"mixes": "–"} | _row(tab, page.resolve(), options.times))
        for side in [] if options.pages else options.sides:
            say(f"{side * side} mixes")
            page = _page(folder / f"study-{side}", side)
            rows.append({"mixes": str(side * side)} | _row(tab, page, options.times))
    report.table(list(rows[0]), [list(row.values()) for row in rows])
    report.print()


def _chromium() -> Path:
    try:
        return chromium.here() or chromium.fetch(say)
    except NoLab as reason:
        raise CastmatesError(f"Chromium cannot be had here: {reason}.") from None


def _page(folder: Path, side: int) -> Path:
    numbers = range(side)
    make(folder, [f"lead-{n}" for n in numbers], [f"beside-{n}" for n in numbers], launches=3, rounds=1)
    results = read_results(folder)
    for figure in shown(results):
        draw_figure(figure, results, folder / "figures" / figure)
    write_page(results, folder / "figures", folder / "report/index.html")
    return folder / "report/index.html"


def _row(tab: Page, file: Path, times: int) -> dict[str, str]:
    taken: list[dict[str, float]] = []
    for _ in range(times):
        tab.open(file)
        taken.append({"load": tab.ask(LOADED)} | tab.ask(ACTS))
    table = {name: str(tab.ask(f"({LONGEST_TABLE})().{name}")) for name in ("table", "rows")}
    return (
        table
        | {"page (MB)": f"{file.stat().st_size / 1e6:.1f}"}
        | {act: f"{median(one[act] for one in taken):.0f}" for act in taken[0]}
    )


if __name__ == "__main__":
    run(main)
