"""The figures are drawn for every kind of result, and show what the tables hold."""

import dataclasses
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from castmates.errors import CastmatesError
from castmates.report.figures import control, heatmap, heatmap_grid, windows
from castmates.report.figures.index import FIGURES
from castmates.report.figures.style import ALARM, broken, own_ids, squeezed
from castmates.report.results import read_results
from castmates.report.text.words import plain
from castmates.results.columns.launch import SAMPLES
from castmates.results.columns.study import frame
from castmates.study.reasons import NOT_VISIBLE
from tests.unit.legible import problems
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before

VARIANTS = {
    "usual": {},
    "one-mix": {"leads": ["dlrm-train"], "antagonists": ["stream"], "launches": 1},
    "twenty": {"leads": ["dlrm-train"], "antagonists": [f"spec-{number}" for number in range(20)], "launches": 3},
    "long": {
        "leads": ["resnet50-imagenet-training-bf16-large"],
        "antagonists": ["stress-ng-matrix-3d+" * 4 + "stream"],
    },
    "wide": {"leads": [f"lead-{number}" for number in range(7)], "launches": 3},
    "matrix": {
        "leads": [f"lead-{n}" for n in range(18)],
        "antagonists": [f"spec-{n}" for n in range(14)],
        "launches": 3,
        "rounds": 1,
    },
    "missing": {"missing": [("dlrm-train", "chase")], "failed": 1},
    "failed": {"failed": 5},
    "nothing": {"leads": []},
    "emulated": {"platform": "emulated", "leads": ["dlrm-train"], "launches": 2},
}


# Every figure of every study with much, and more that is hard for one; what all have in common (files, bytes) is in
# test_figure_files.py.
HARD = [
    *[(name, variant) for name, view in FIGURES.items() if view.needs is None for variant in ("wide", "long")],
    *[("heatmap", variant) for variant in ("one-mix", "twenty", "matrix", "missing")],
    ("windows", "one-mix"), ("windows", "matrix"), ("control", "emulated"), ("attribution", "usual"),
    ("health", "missing"),
]  # fmt: skip
ODD = [(figure, variant) for figure in FIGURES for variant in ("failed", "nothing")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The results of each variant, made once."""
    return cache(lambda variant: read_results(make(tmp_path_factory.mktemp("made") / variant, **VARIANTS[variant])))


@pytest.mark.parametrize(("figure", "variant"), HARD)
def test_a_figure_is_legible_with_hard_results(made, figure, variant):
    module = FIGURES[figure].module
    drawn, source = module.draw(made(variant))
    assert problems(drawn) == []
    assert drawn.get_figheight() < 13
    assert len(source) or module.lacking(made(variant))


def sentences(drawn):
    """What a figure shows in words, without the labels of its axes."""
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
    assert bool(why) == bool(FIGURES[figure].module.lacking(made(variant)))


def test_each_figure_has_a_sentence_of_its_own_for_results_without_numbers(made):
    said = [sentences(FIGURES[figure].module.draw(made("nothing"))[0])[-1] for figure in FIGURES]
    assert len(set(said)) == len(said)
    assert said == [FIGURES[figure].module.lacking(made("nothing")) for figure in FIGURES]


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


LEADS = ["dlrm-train", "resnet-infer", "bert"]
HEATMAPS = {
    "a mix is missing": {"missing": [("dlrm-train", "chase")]},
    "two launches": {"launches": 2},
    "means from three rows and columns on": {"leads": LEADS, "missing": [("dlrm-train", "chase")]},
    "no means of two": {"leads": LEADS[:2]},
}


def test_what_the_heatmap_and_the_controls_say(tmp_path):
    """Numbers with their verdicts; within launch in brackets; of the controls, the positive one is told in words."""
    said = {}
    for name, study in HEATMAPS.items():
        figure, source = heatmap.draw(read_results(make(tmp_path / name, **study)))
        said[name] = dict.fromkeys(" ".join(text.split()) for text in texts(figure))
        if name.startswith("means"):
            assert source["row"].value_counts().to_dict() == {"mix": 16, "sensitivity": 6, "contentiousness": 6}
            means = source[source["row"] == "sensitivity"].set_index(["lead", "baseline"])["loss_pct"]
            assert np.isnan(means["dlrm-train", "alone"])
    figure, source = control.draw(read_results(make(tmp_path / "study", leads=["a"])))
    said["controls"] = dict.fromkeys(" ".join(text.split()) for text in texts(figure))
    assert set(source["control"].dropna()) == {"A/A", "positive", "negative"}
    assert_as_before("heatmap", said)


@pytest.mark.parametrize("figure", ["heatmap", "control", "windows", "health"])
def test_what_speaks_against_the_study_stands_in_the_corner_and_nothing_is_below_it(tmp_path, figure):
    results = read_results(make(tmp_path / "study", leads=["a"], antagonists=["b"]))
    plainly, _ = FIGURES[figure].module.draw(results)
    results.controls["verdict"] = results.controls["verdict"].replace({"passes": "unstable"})
    few = read_results(make(tmp_path / "few", leads=["a"], antagonists=["b"], launches=2))
    stamped, _ = FIGURES[figure].module.draw(few)
    warned, _ = FIGURES[figure].module.draw(dataclasses.replace(results))
    said = [[text.get_text() for text in one.texts] for one in (plainly, stamped, warned)]
    assert [words.count("not steady") for words in said] == [0, 0, 1]
    assert [words.count("too few launches to know the noise") for words in said] == [0, 1, 0]
    corner = next(text for text in warned.texts if text.get_text() == "not steady").get_window_extent()
    others = [axes.get_tightbbox() for axes in warned.axes]
    assert not any(corner.overlaps(other) for other in others)


def test_colours_are_symmetric_around_no_change():
    for reach in (5.0, 50.0):
        assert heatmap_grid.colours(0.0, reach)[0] == "#f7f6f6"
    assert heatmap_grid.round_limit(0.3) == 5.0
    assert heatmap_grid.round_limit(31.0) == 50.0
    assert heatmap_grid.round_limit(132.0) == 140.0


def test_rates_are_relative_to_the_valid_alone_windows_of_the_same_launch(tmp_path):
    results = read_results(make(tmp_path / "study"))
    shown = windows.relative_rates(results.windows)
    alone = shown[(shown["what"] == "alone") & shown["valid"]].groupby(["cohort", "launch"])["relative_rate"].median()
    assert np.allclose(alone, 1.0)
    assert set(shown["what"]) == {"alone", "alone-again", "placebo", "beside stream", "beside compute", "beside chase"}


def test_a_launch_whose_alone_windows_were_all_rejected_is_still_shown(tmp_path):
    table = read_results(make(tmp_path / "study", leads=["a"], launches=1)).windows
    table["valid"] = False
    shown = windows.relative_rates(table)
    assert shown["relative_rate"].notna().all()
    assert shown[shown["what"] == "alone"]["relative_rate"].median() == pytest.approx(1.0)


def test_of_many_launches_evenly_spaced_ones_are_drawn_in_the_order_of_their_start(tmp_path):
    results = read_results(make(tmp_path / "study", launches=200, rounds=1))
    launches = results.launches.assign(
        started=[f"2026-01-{32 - row.launch % 31:02d}" for row in results.launches.itertuples()]
    )
    shown = windows.relative_rates(results.windows)
    chosen = windows.chosen_launches(shown, launches)
    assert len(chosen) == len(set(chosen)) == windows.LAUNCHES
    started = launches.set_index(["cohort", "launch"])["started"]
    assert [started[place] for place in chosen] == sorted(started[place] for place in chosen)
    assert {started[chosen[0]], started[chosen[-1]]} == {min(started), max(started)}
    drawn = windows.in_a_row(shown, chosen)
    ends = drawn.groupby("launch")["minutes"].agg(["min", "max"])
    assert (ends["min"].iloc[1:].to_numpy() > ends["max"].iloc[:-1].to_numpy()).all(), "launches do not overlap"


def test_who_took_time_and_why_else_windows_were_rejected_stand_below_them(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], antagonists=["b"], launches=2)
    results = read_results(folder)
    table = results.windows
    table["valid"], table["reason_kinds"], table["blamed"] = True, "", ""
    lost = (table["launch"] == 1) & (table["window"] == 2)
    table.loc[lost, ["valid", "reason_kinds", "blamed"]] = False, "foreign load", "make (pid 7)"
    other = (table["launch"] == 2) & (table["window"] == 1)
    table.loc[other, ["valid", "reason_kinds"]] = False, "still filling"
    children = "children of make (pid 9)"
    for place in folder.glob("launches/*/*"):
        head = {
            "study": "study",
            "cohort": place.parent.name,
            "launch": int(place.name),
            "t_ns": 1,
            "source": "culprits",
        }
        rows = [
            head | {"window": 2, "subject": "cpu1", "metric": "foreign_s", "value": 0.2, "note": "make (pid 7)"},
            head | {"window": 2, "subject": "cpu1", "metric": "foreign_s", "value": 0.1, "note": children},
            head | {"window": 3, "subject": "cpu0", "metric": "steal_s", "value": 0.05, "note": ""},
        ]  # fmt: skip
        frame(rows, SAMPLES).to_parquet(place / "samples.parquet")
    found = windows.disturbances(results, [("a-0000abcd", 1), ("a-0000abcd", 2)])
    shares = found.set_index(["launch", "window", "cause"])["share_pct"]
    opened = table.set_index(["launch", "window"])["open_s"]
    assert shares[1, 2, "make"] == pytest.approx(100 * 0.3 / opened[1, 2])
    assert shares[2, 3, "hypervisor"] == pytest.approx(100 * 0.05 / opened[2, 3])
    assert np.isnan(shares[2, 1, "still filling"])
    assert len(found) == 5, "what the samples name is not named once more by the reason"
    figure, source = windows.draw(results)
    below = {
        axes.get_title("left"): {label.get_text() for label in axes.get_yticklabels()} for axes in figure.axes[-2:]
    }
    assert below == {
        "Who else took time": {"make", "hypervisor"}, "Why else windows were rejected": {"still filling"}
    }  # fmt: skip
    disturbed_by = source.set_index(["launch", "window"])["disturbed_by"]
    assert disturbed_by[1, 2] == "make"
    assert np.isnan(disturbed_by[2, 1]), "nobody did"
    assert windows.alternative(results).endswith(
        "took time: make and hypervisor. Why else windows were rejected: still filling."
    )
    lanes = figure.axes[-2]
    at = source.set_index(["launch", "window"])["minutes"][1, 2]
    red = [lines for lines in lanes.collections if to_hex(lines.get_color()[0]) == ALARM]
    assert at in [segment[0][0] for lines in red for segment in lines.get_segments()]


@pytest.mark.parametrize(
    ("kinds", "blamed", "took", "why"),
    [
        ("steal", "", ["hypervisor"], []),
        ("foreign load; swapping", "children of make (pid 7)", ["make"], ["swapping"]),
        ("still filling", "", [], ["still filling"]),
        ("neighbours", NOT_VISIBLE, ["not visible"], []),
        ("foreign load", "interrupts", ["interrupts"], []),
        ("", "", [], []),
    ],
)
def test_a_reason_names_who_took_time_or_stands_for_itself(kinds, blamed, took, why):
    expected = [*((who, windows.TOOK) for who in took), *((kind, windows.WHY) for kind in why)]
    assert windows.causes(kinds, blamed) == expected


def test_launch_ratios_pair_the_two_alone_scenes_inside_rounds():
    def window(number, kind, rate, valid=True):
        return {"role": "lead", "valid": valid, "kind": kind, "scene": kind, "rate": rate, "member": "a@0",
                "cohort": "c", "launch": 1, "round": number}  # fmt: skip

    table = pd.DataFrame(
        [
            window(1, "alone", 100.0), window(1, "alone-again", 50.0),
            window(2, "alone", 100.0), window(2, "alone-again", 200.0),
            window(3, "alone", 100.0), window(3, "alone-again", 1.0, valid=False),
        ]
    )  # fmt: skip
    assert control.launch_ratios(table)["ratio"].tolist() == pytest.approx([1.0])


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
    folder = make(tmp_path / "study", leads=["a"], launches=1)
    (folder / "tables" / "effects.parquet").unlink()
    with pytest.raises(CastmatesError, match=r"effects\.parquet: the table is not there; run `castmates sweep "):
        read_results(folder)


def test_the_heaviest_antagonists_stand_above_and_what_is_missing_below():
    losses = {"a": 1.0, "b": 9.0, "c": float("nan"), "d": 4.0}
    rows = [{"panel": "alone", "antagonists": name, "lead": "x", "loss_pct": loss} for name, loss in losses.items()]
    assert heatmap_grid.grid(pd.DataFrame(rows), ["alone"], means=False).rows == ["b", "d", "a", "c"]
    many = {name: 2.0 * place for place, name in enumerate("abcdefg")}
    rows = [{"panel": "alone", "antagonists": name, "lead": "x", "loss_pct": loss} for name, loss in many.items()]
    assert heatmap_grid.grid(pd.DataFrame(rows), ["alone"], means=False).rows == list("gfedcba")


def test_rows_that_lose_alike_stand_side_by_side_and_a_missing_cell_pulls_nowhere():
    losses = {"a": 30.0, "b": 1.0, "c": 31.0, "d": 0.0, "e": 29.0, "f": 2.0}
    rows = [
        {"antagonists": name, "lead": lead, "loss_pct": loss}
        for name, loss in losses.items() for lead in ("x", "y") if (name, lead) != ("c", "y")
    ]  # fmt: skip
    order = heatmap_grid.alike(pd.DataFrame(rows), list(losses), "antagonists", "lead")
    assert sorted(order) == sorted(losses)
    heavy = sorted(order.index(name) for name in "ace")
    assert heavy in ([0, 1, 2], [3, 4, 5])
