"""Every figure is four files, the same on every day and in every process, in a style that others can use."""

import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import style as styles
from matplotlib.colors import to_hex

from castmates.report.figures.drawing import PRINTED, draw_figure
from castmates.report.figures.style import COLOURS, COLUMN, GREY, INK, SHADES, SMALL, styled
from castmates.report.results import read_results
from tests.unit.results_maker import make

ROOT = Path(__file__).parents[2]
SUFFIXES = ["alt.txt", "csv", "page.json", "page.svg", "pdf", "png", "rst", "svg", "txt"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """One figure, drawn here and in another process."""
    folder = make(tmp_path_factory.mktemp("results") / "study", leads=["dlrm-train"], launches=3)
    here, there = folder / "here", folder / "there"
    draw_figure("heatmap", read_results(folder), here / "heatmap", PRINTED)
    code = (
        "import sys; from pathlib import Path; from castmates.report.figures.drawing import PRINTED, draw_figure; "
        "from castmates.report.results import read_results; "
        "draw_figure('heatmap', read_results(Path(sys.argv[1])), Path(sys.argv[2]) / 'heatmap', PRINTED)"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(folder), str(there)],
        check=True, timeout=240, env=os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return here, there


def test_a_figure_is_four_files_and_its_texts_with_the_same_bytes_in_every_process(drawn):
    here, there = drawn
    assert [sorted(file.name for file in place.iterdir()) for place in drawn] == [
        [f"heatmap.{suffix}" for suffix in SUFFIXES]
    ] * 2
    for suffix in SUFFIXES:
        one = (here / f"heatmap.{suffix}").read_bytes()
        assert len(one) > 100
        assert one == (there / f"heatmap.{suffix}").read_bytes(), suffix


def test_a_sweep_prints_nothing_and_removes_what_was_printed_of_an_earlier_drawing(drawn, tmp_path):
    for suffix in PRINTED:
        (tmp_path / f"heatmap.{suffix}").write_text("of before")
    draw_figure("heatmap", read_results(drawn[0].parent), tmp_path / "heatmap")
    left = {file.name.removeprefix("heatmap.") for file in tmp_path.iterdir()}
    assert left == {*SUFFIXES} - PRINTED


def test_the_pdf_has_its_fonts_inside_and_no_date(drawn):
    content = (drawn[0] / "heatmap.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    fonts = set(re.findall(rb"/Subtype\s*/(Type3|Type1|TrueType|CIDFontType\d)", content))
    assert fonts == {b"CIDFontType2"}  # Type 42 in PDF's words; publishers refuse Type 3
    assert content.count(b"/FontFile2") >= 1
    assert b"CreationDate" not in content


def test_no_file_says_when_or_where_it_was_made(drawn):
    for suffix in SUFFIXES:
        content = (drawn[0] / f"heatmap.{suffix}").read_bytes()
        content += b"".join(_inflated(content)) if suffix == "pdf" else b""
        assert str(ROOT).encode() not in content
        assert not re.search(rb"20\d\d-\d\d-\d\dT", content), suffix


def _inflated(pdf):
    for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            yield zlib.decompress(part)
        except zlib.error:
            continue


def test_the_style_is_a_file_that_any_script_can_use_by_name():
    before = dict(mpl.rcParams)
    with styles.context("castmates.report.figures.castmates"):
        assert mpl.rcParams["pdf.fonttype"] == 42
        assert mpl.rcParams["figure.figsize"][0] == COLUMN
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"] == list(COLOURS)
        assert to_hex(mpl.rcParams["text.color"]) == INK
        assert to_hex(mpl.rcParams["axes.edgecolor"]) == GREY
        assert mpl.rcParams["image.cmap"] == SHADES
        sizes = [mpl.rcParams[f"{part}.labelsize"] for part in ("axes", "xtick", "ytick")]
        assert min([*sizes, mpl.rcParams["legend.fontsize"], mpl.rcParams["font.size"]]) >= SMALL
    assert dict(mpl.rcParams) == before


def test_the_users_own_settings_do_not_change_a_figure():
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30.0}):
        with styled():
            assert mpl.rcParams["axes.facecolor"] == "white"
            assert mpl.rcParams["font.size"] == 8.0
        assert mpl.rcParams["font.size"] == 30.0
