"""The figures are drawn for every kind of result, and show what the tables say."""

import dataclasses
import re
import struct
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.report import control, heatmap, heatmap_cells, windows
from castmates.report.figures import FIGURES, draw_figure
from castmates.report.read import read_results
from castmates.report.style import broken, own_ids, plain
from tests.unit.results_maker import make

VARIANTS = {
    "usual": {},
    "one-mix": {"leads": ["dlrm-train"], "antagonists": ["stream"], "blocks": 1},
    "twenty": {"leads": ["dlrm-train"], "antagonists": [f"spec-{number}" for number in range(20)], "blocks": 3},
    "long": {
        "leads": ["resnet50-imagenet-training-bf16-large"],
        "antagonists": ["stress-ng-matrix-3d+" * 4 + "stream"],
    },
    "wide": {"leads": [f"lead-{number}" for number in range(7)], "blocks": 3},
    "missing": {"missing": [("dlrm-train", "chase")], "failed": 1},
    "failed": {"failed": 5},
    "nothing": {"leads": []},
    "emulated": {"platform": "emulated", "leads": ["dlrm-train"], "blocks": 2},
}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_figure_is_written_whole(tmp_path, variant, figure):
    folder = make(tmp_path / variant, **VARIANTS[variant])
    stem = folder / "figures" / figure
    draw_figure(figure, read_results(folder), stem)
    assert sorted(file.name for file in stem.parent.iterdir()) == [
        f"{figure}.{suffix}" for suffix in ("csv", "pdf", "png", "svg")
    ]
    assert ElementTree.parse(stem.with_suffix(".svg")).getroot().tag.endswith("svg")
    width, height = struct.unpack(">II", stem.with_suffix(".png").read_bytes()[16:24])
    assert 300 < width <= 1500
    assert 100 < height <= 2600
    assert list(pd.read_csv(stem.with_suffix(".csv")).columns)


@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_results_give_the_same_bytes(tmp_path, figure):
    folder = make(tmp_path / "study", leads=["dlrm-train"], blocks=3)
    for run in ("a", "b"):
        draw_figure(figure, read_results(folder), tmp_path / run / figure)
    for suffix in (".svg", ".pdf", ".png", ".csv"):
        assert (tmp_path / "a" / f"{figure}{suffix}").read_bytes() == (
            tmp_path / "b" / f"{figure}{suffix}"
        ).read_bytes()


def texts(figure):
    """All words of a figure."""
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")) if text.get_text()]


def test_every_cell_of_the_heatmap_says_its_number_and_its_verdict(tmp_path):
    results = read_results(make(tmp_path / "study", missing=[("dlrm-train", "chase")]))
    figure, source = heatmap.draw(results)
    said = texts(figure)
    slower = source[source["verdict"] == "slower"].iloc[0]
    assert f"▼ {slower['degradation_pct']:.1f}" in said
    assert any(text.startswith("▲ −") for text in said)
    assert said.count("≈ 0") == (source["verdict"] == "equivalent").sum()
    assert any("hatched: no data" in text for text in said)
    assert any(text.startswith("measured") or "\nmeasured" in text for text in said)


def test_too_few_launches_give_an_interval_in_brackets_named_as_within_launch(tmp_path):
    figure, _ = heatmap.draw(read_results(make(tmp_path / "study", blocks=2)))
    said = texts(figure)
    assert any(re.fullmatch(r"\[\S+, \S+\]", text) for text in said)
    assert any("within launch only" in text for text in said)
    assert not any(text.startswith("±") for text in said)


@pytest.mark.parametrize("figure", FIGURES)
def test_what_speaks_against_the_study_stands_in_the_corner_and_nothing_is_below_it(tmp_path, figure):
    results = read_results(make(tmp_path / "study", leads=["a"], antagonists=["b"]))
    plainly, _ = FIGURES[figure](results)
    results.controls["verdict"] = results.controls["verdict"].replace({"passes": "unstable"})
    stamped, _ = FIGURES[figure](read_results(make(tmp_path / "few", leads=["a"], antagonists=["b"], blocks=2)))
    warned, _ = FIGURES[figure](dataclasses.replace(results))
    said = [[text.get_text() for text in one.texts] for one in (plainly, stamped, warned)]
    assert [words.count("unstable") for words in said] == [0, 0, 1]
    assert [words.count("too few blocks for the controls") for words in said] == [0, 1, 0]
    corner = next(text for text in warned.texts if text.get_text() == "unstable").get_window_extent()
    others = [axes.get_tightbbox() for axes in warned.axes]
    assert not any(corner.overlaps(other) for other in others)


def test_the_controls_that_must_not_differ_are_drawn_and_the_positive_one_is_told(tmp_path):
    figure, source = control.draw(read_results(make(tmp_path / "study", leads=["a"])))
    said = " ".join(texts(figure))
    assert all(name in said for name in ("compute+compute", "(negative)", "(of a control)"))
    assert "positive control chase+stream, solo over co-run: 1.31 [1.30, 1.32], sensitive" in said.replace("\n", " ")
    assert set(source["control"].dropna()) == {"A/A", "positive", "negative"}


def test_colours_are_symmetric_around_no_change():
    for reach in (5.0, 50.0):
        assert heatmap_cells.colours(0.0, reach)[0] == "#f7f6f6"
    assert heatmap_cells.round_limit(0.3) == 5.0
    assert heatmap_cells.round_limit(31.0) == 50.0
    assert heatmap_cells.round_limit(132.0) == 140.0


def test_rates_are_relative_to_the_valid_solo_windows_of_the_same_block(tmp_path):
    results = read_results(make(tmp_path / "study"))
    shown = windows.relative_rates(results.windows)
    solo = shown[(shown["what"] == "solo") & shown["valid"]].groupby(["company", "block"])["relative_rate"].median()
    assert np.allclose(solo, 1.0)
    assert set(shown["what"]) == {"solo", "solo-again", "placebo", "beside stream", "beside compute", "beside chase"}


def test_a_block_whose_solo_windows_were_all_rejected_is_still_shown(tmp_path):
    table = read_results(make(tmp_path / "study", leads=["a"], blocks=1)).windows
    table["valid"] = False
    shown = windows.relative_rates(table)
    assert shown["relative_rate"].notna().all()
    assert shown[shown["what"] == "solo"]["relative_rate"].median() == pytest.approx(1.0)


def test_at_most_twelve_blocks_are_drawn_the_first_and_the_last_among_them(tmp_path):
    shown = windows.relative_rates(read_results(make(tmp_path / "study", blocks=20, rounds=2)).windows)
    chosen = windows.chosen_blocks(shown)
    assert len(chosen) == len(set(chosen)) == 12
    assert chosen[0] == ("dlrm-train-0000abcd", 1)
    assert chosen[-1] == ("resnet-infer-0000abcd", 20)


def test_many_antagonists_have_looks_of_their_own(tmp_path):
    shown = windows.relative_rates(read_results(make(tmp_path / "study", **VARIANTS["twenty"])).windows)
    looks = windows._looks(shown)
    assert len(looks) == 23
    assert len(set(looks.values())) == 23


def test_block_ratios_pair_the_two_solo_scenes_inside_rounds():
    def window(number, kind, rate, valid=True):
        return {"role": "lead", "valid": valid, "kind": kind, "scene": kind, "rate": rate, "workload": "a",
                "company": "c", "block": 1, "round": number}  # fmt: skip

    table = pd.DataFrame(
        [
            window(1, "solo", 100.0), window(1, "solo-again", 50.0),
            window(2, "solo", 100.0), window(2, "solo-again", 200.0),
            window(3, "solo", 100.0), window(3, "solo-again", 1.0, valid=False),
        ]
    )  # fmt: skip
    assert control.block_ratios(table)["ratio"].tolist() == pytest.approx([1.0])


def test_ids_of_different_figures_do_not_clash():
    svg = '<g id="a"><use xlink:href="#a"/><path clip-path="url(#b)"/></g>'
    assert own_ids(svg, "x") == '<g id="x-a"><use xlink:href="#x-a"/><path clip-path="url(#x-b)"/></g>'


def test_names_lose_their_cpus_and_are_broken_but_never_changed():
    assert plain("stream@1+chase@2.3") == "stream+chase"
    name = "cpu2017-603.bwaves_s+stress-ng-matrix"
    assert broken(name, 11).replace("\n", "") == name
    assert max(map(len, broken(name, 11).split("\n"))) <= 11


def test_a_missing_table_is_a_sentence(tmp_path):
    with pytest.raises(CastmatesError, match="results folder of an analysed study"):
        read_results(tmp_path)
    folder = make(tmp_path / "study", leads=["a"], blocks=1)
    (folder / "tables" / "effects.parquet").unlink()
    with pytest.raises(CastmatesError, match=r"effects\.parquet: the table is not there"):
        read_results(folder)
