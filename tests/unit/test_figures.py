"""The figures are drawn for every kind of result, and show what the tables say."""

import dataclasses
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from castmates.errors import CastmatesError
from castmates.report.figures import control, heatmap, heatmap_cells, heatmap_grid, windows
from castmates.report.figures.index import FIGURES
from castmates.report.figures.style import broken, own_ids, squeezed
from castmates.report.results import read_results
from castmates.report.text.words import plain
from tests.unit.legible import problems
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
    "matrix": {
        "leads": [f"lead-{n}" for n in range(18)],
        "antagonists": [f"spec-{n}" for n in range(14)],
        "blocks": 3,
        "rounds": 1,
    },
    "missing": {"missing": [("dlrm-train", "chase")], "failed": 1},
    "failed": {"failed": 5},
    "nothing": {"leads": []},
    "emulated": {"platform": "emulated", "leads": ["dlrm-train"], "blocks": 2},
}


# Each figure with the results that are hard for it; what all have in common (files, bytes) is in test_figure_files.py.
HARD = [
    *[("heatmap", variant) for variant in ("one-mix", "twenty", "matrix", "long", "missing")],
    ("windows", "wide"), ("windows", "one-mix"), ("control", "long"), ("control", "emulated"), ("control", "wide"),
    ("attribution", "usual"), ("attribution", "long"), ("health", "missing"), ("health", "long"),
]  # fmt: skip
ODD = [(figure, variant) for figure in FIGURES for variant in ("failed", "nothing")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The results of each variant, made once."""
    return cache(lambda variant: read_results(make(tmp_path_factory.mktemp("made") / variant, **VARIANTS[variant])))


@pytest.mark.parametrize(("figure", "variant"), HARD)
def test_a_figure_is_legible_with_hard_results(made, figure, variant):
    drawn, source = FIGURES[figure].module.draw(made(variant))
    assert problems(drawn) == []
    assert drawn.get_figheight() < 13
    assert len(source)


def sentences(drawn):
    """What a figure says in words, without the labels of its axes."""
    said = [*drawn.texts, *(text for axes in drawn.axes for text in axes.texts)]
    return [" ".join(text.get_text().split()) for text in said]


@pytest.mark.parametrize(("figure", "variant"), ODD)
def test_a_figure_without_numbers_says_so_and_has_its_columns(made, figure, variant):
    drawn, source = FIGURES[figure].module.draw(made(variant))
    assert len(source.columns)
    why = [said for said in sentences(drawn) if said.startswith("No") and f"the study {variant}" in said]
    if source.empty:
        assert len(why) == 1
        assert drawn.axes == []
    else:  # its mixes are known, and have no number
        assert why or "no data" in sentences(drawn)


def test_each_figure_has_a_sentence_of_its_own_for_results_without_numbers(made):
    said = [sentences(FIGURES[figure].module.draw(made("nothing"))[0])[-1] for figure in FIGURES]
    assert len(set(said)) == len(said)


def test_the_legibility_check_finds_what_is_wrong():
    figure = Figure(figsize=(3.0, 2.0))
    figure.text(0.5, 0.5, "some words")
    figure.text(0.52, 0.5, "other words", fontsize=5)
    figure.text(0.9, 0.9, "far too long for this place")
    found = " ".join(problems(figure))
    assert all(word in found for word in ("3.00 in wide", "5.0 points", "overlap", "outside"))


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


@pytest.mark.parametrize("figure", ["heatmap", "control", "windows", "health"])
def test_what_speaks_against_the_study_stands_in_the_corner_and_nothing_is_below_it(tmp_path, figure):
    results = read_results(make(tmp_path / "study", leads=["a"], antagonists=["b"]))
    plainly, _ = FIGURES[figure].module.draw(results)
    results.controls["verdict"] = results.controls["verdict"].replace({"passes": "unstable"})
    few = read_results(make(tmp_path / "few", leads=["a"], antagonists=["b"], blocks=2))
    stamped, _ = FIGURES[figure].module.draw(few)
    warned, _ = FIGURES[figure].module.draw(dataclasses.replace(results))
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


def test_names_lose_their_cpus_and_are_broken_and_changed_only_where_they_do_not_fit():
    assert plain("stream@1+chase@2.3") == "stream+chase"
    name = "cpu2017-603.bwaves_s+stress-ng-matrix"
    assert broken(name, 11).replace("\n", "") == name
    assert max(map(len, broken(name, 11).split("\n"))) <= 11
    assert squeezed(name, 11, 9) == broken(name, 11)
    assert squeezed(name, 11, 2) == "cpu2017-\n…-ng-matrix"
    assert squeezed(name, 11, 1) == "cpu20…atrix"


def test_a_missing_table_is_a_sentence(tmp_path):
    with pytest.raises(CastmatesError, match="results folder of an analysed study"):
        read_results(tmp_path)
    folder = make(tmp_path / "study", leads=["a"], blocks=1)
    (folder / "tables" / "effects.parquet").unlink()
    with pytest.raises(CastmatesError, match=r"effects\.parquet: the table is not there; run `castmates sweep "):
        read_results(folder)


def test_the_heatmap_has_means_of_whole_rows_and_columns_and_a_row_of_controls(tmp_path):
    results = read_results(make(tmp_path / "study", missing=[("dlrm-train", "chase")]))
    figure, source = heatmap.draw(results)
    assert source["row"].value_counts().to_dict() == {"mix": 10, "sensitivity": 4, "contentiousness": 6, "A/A": 2}
    means = source[source["row"] == "sensitivity"].set_index(["lead", "baseline"])["degradation_pct"]
    assert np.isnan(means["dlrm-train", "solo"])
    assert f"{means['resnet-infer', 'solo']:.1f}" in texts(figure)
    again = source[source["row"] == "A/A"].set_index("lead")["degradation_pct"]
    ratio = results.controls.query("control == 'A/A' and lead == 'resnet-infer'")["ratio"].iloc[0]
    assert again["resnet-infer"] == pytest.approx(100 * (1 - 1 / ratio))
    assert {"A/A: solo again", "sensitivity (mean)"} <= set(texts(figure))


def test_rows_that_lose_alike_stand_side_by_side_and_a_missing_cell_pulls_nowhere():
    losses = {"a": 30.0, "b": 1.0, "c": 31.0, "d": 0.0, "e": 29.0, "f": 2.0}
    rows = [
        {"antagonists": name, "lead": lead, "degradation_pct": loss}
        for name, loss in losses.items() for lead in ("x", "y") if (name, lead) != ("c", "y")
    ]  # fmt: skip
    order = heatmap_grid.alike(pd.DataFrame(rows), list(losses), "antagonists", "lead")
    assert sorted(order) == sorted(losses)
    heavy = sorted(order.index(name) for name in "ace")
    assert heavy in ([0, 1, 2], [3, 4, 5])
