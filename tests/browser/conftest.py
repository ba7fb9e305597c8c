"""One Chromium for all tests, and the pages that they look at.

They run where there is a Chromium. With CASTMATES_BROWSER=required it is fetched where there is none, and they fail
where that cannot be.
"""

import os
import tempfile
from pathlib import Path

import pytest

from castmates.report.comparison.compare import compare_studies
from castmates.report.comparison.page import write
from castmates.report.figures.drawing import draw_figure
from castmates.report.page.page import page, shown, write_page
from castmates.report.results import read_results
from tests.browser import chromium
from tests.browser.devtools import Browser, Page
from tests.lab.kit.common import NoLab
from tests.unit import study_folder
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.results_maker import make

STUDY = "name: study\ntitle: A made-up study\nquestion: What is lost?\nleads: [dlrm-train]\nantagonists: [stream]\n"


@pytest.fixture(scope="session")
def browser(request):
    """The running Chromium."""
    with (
        tempfile.TemporaryDirectory(prefix="castmates-browser-", ignore_cleanup_errors=True) as folder,
        Browser([str(_program(request.config))], Path(folder), {"HOME": folder}) as one,
    ):
        yield one


@pytest.fixture(scope="session")
def tab(browser):
    """Its one tab."""
    return Page(browser)


@pytest.fixture(scope="session")
def usual(tmp_path_factory):
    """The page of a study with few mixes, its figures drawn."""
    folder = make(tmp_path_factory.mktemp("usual") / "study")
    study = folder / "study.yaml"
    study.write_text(STUDY)
    results = read_results(folder, study)
    for figure in shown(results):
        draw_figure(figure, results, folder / "figures" / figure)
    output = folder / "report" / "index.html"
    write_page(results, folder / "figures", output)
    return output


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """The page of 400 mixes, without drawings."""
    names = [f"{kind}-{number}" for kind in ("train", "infer") for number in range(10)]
    folder = make(tmp_path_factory.mktemp("large") / "study", leads=names, antagonists=[f"beside-{n}" for n in names],
                  launches=3, rounds=1)  # fmt: skip
    results = read_results(folder)
    output = folder / "index.html"
    output.write_text(page(results, dict.fromkeys(shown(results), "<svg></svg>")))
    return output


@pytest.fixture(scope="session")
def compared(tmp_path_factory):
    """The page of two studies."""
    place, plan = tmp_path_factory.mktemp("compared"), made(atoms(), launches=3)
    a = study_folder.write(place / "one", plan, windows(plan, noise=0.002))
    b = study_folder.write(place / "two", plan, windows(plan, noise=0.003), host="there")
    write(compare_studies([a, b], None), place / "out")
    return place / "out" / "index.html"


@pytest.fixture(scope="session")
def several(tmp_path_factory):
    """The page of three studies, with their history."""
    place, plan = tmp_path_factory.mktemp("several"), made(atoms(), launches=3)
    months = ["2026-01-05T10:00:00+00:00", "2026-02-05T10:00:00+00:00", "2026-04-05T10:00:00+00:00"]
    studies = [
        study_folder.write(place / f"study-{number}", plan, windows(plan, noise=0.002 + 0.001 * number), started=month)
        for number, month in enumerate(months)
    ]
    write(compare_studies(studies, None), place / "out")
    return place / "out" / "index.html"


def _program(config):
    if found := chromium.here():
        return found
    if os.environ.get("CASTMATES_BROWSER") != "required":
        pytest.skip("there is no Chromium here: `make browser` fetches one without root, and then these tests run")
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    try:
        return chromium.fetch(lambda word: terminal.write_line(f"\n[browser] {word}"))
    except NoLab as reason:
        pytest.fail(f"Chromium cannot be had here: {reason}.", pytrace=False)
