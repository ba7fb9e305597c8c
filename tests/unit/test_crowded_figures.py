"""Figures of many mixes and long names: no words on words, nothing beyond a page, colours apart. Synthetic results."""

from dataclasses import replace

import pandas as pd
import pytest

from castmates.report.figures import (
    attribution,
    control,
    counters,
    evolution,
    health,
    heatmap_partitions,
    layers,
    phases,
    timeline,
)
from castmates.report.figures import windows as over_time
from castmates.report.figures.antagonists import looks
from castmates.report.figures.sheet import fitting
from castmates.report.figures.timeline import Span
from castmates.report.results import read_results
from castmates.results.columns.launch import LAYERS
from castmates.results.columns.study import frame
from tests.unit import test_counters_figure
from tests.unit.legible import problems
from tests.unit.partition_maker import atoms
from tests.unit.phases.test_phase_figures import results as with_phases
from tests.unit.results_maker import make
from tests.unit.test_figure_partitions import results as of_effects
from tests.unit.test_figure_partitions import texts
from tests.unit.test_layers_figure import made, rows

LONG = ("stress-ng-matrix-2d-and-memory-stream-yy", "stress-ng-matrix-3d-and-memory-stream-yy")


def test_as_many_parts_are_drawn_as_fit_on_a_page_and_always_one():
    assert fitting([4.0, 4.0, 4.0, 4.0], around=2.0) == 2
    assert fitting([20.0, 1.0], around=2.0) == 1
    assert fitting([1.0], around=2.0) == 1


def test_counters_of_twenty_mixes_fit_on_a_page_with_those_that_change_most(tmp_path, monkeypatch):
    scenes = {f"corun:lead+{LONG[0]}{n}": (50.0, 1e6, 2e6, 1e3 * (2 + n)) for n in range(20)}
    monkeypatch.setattr(test_counters_figure, "SCENES", {"alone": (100.0, 1e6, 1e6, 1e3)} | scenes)
    figure, source = counters.draw(test_counters_figure.results(tmp_path, *test_counters_figure.made_up(2, rounds=1)))
    assert problems(figure) == []
    assert figure.get_figheight() < 13
    assert source["mix"].nunique() == 20
    assert {text for text in texts(figure) if text.startswith("beside stress")} == {
        f"beside {LONG[0]}{n}" for n in range(14, 20)
    }
    assert "the CSV has all" in " ".join(texts(figure)).replace("\n", " ")


def test_layers_of_twenty_mixes_are_those_that_change_the_step_most():
    table = rows(1, "alone", "", 1.0)
    table += [row for n in range(20) for row in rows(1, f"corun:lead+b{n}@1", f"lead+b{n}@1", 1 + n / 10)]
    figure, source = layers.draw(made(frame(table, LAYERS)))
    assert problems(figure) == []
    assert source["beside"].nunique() == 21
    assert {text for text in texts(figure) if text.startswith("beside b")} == {f"beside b{n}" for n in range(14, 20)}
    assert "change its step most; the CSV has all" in " ".join(texts(figure)).replace("\n", " ")


def test_a_legend_of_few_does_not_stand_on_the_note_of_layers():
    table = [*rows(1, "alone", "", 1.0), *rows(1, "corun:lead+b@1", "lead+b@1", 1.2)]
    assert problems(layers.draw(made(frame(table, LAYERS)))[0]) == []


def test_long_names_in_the_figures_of_phases_and_evolution(tmp_path):
    told = with_phases(tmp_path / "study", launches=1, rounds=2, antagonists=LONG)
    told.windows["valid"] = told.windows["window"] != 1
    for module in (phases, evolution):
        figure, _ = module.draw(told)
        assert problems(figure) == []
    assert "in a rejected window" in texts(figure)


def test_windows_under_partitions_look_like_those_without():
    one = of_effects(
        atoms(ways=(2,), sensitivity=()), atoms("dlrm@0", "chase@1", ways=(2,), sensitivity=()), launches=1
    )
    figure, source = over_time.draw(one)
    said = texts(figure)
    assert "hollow: under a partition" in said
    assert not any(text.endswith("partitioned") for text in said)
    assert source["what"].str.endswith("partitioned").any()
    assert said.count("dlrm") == 1, "a panel for the program, whatever its groups"


@pytest.mark.parametrize(("across", "down", "found"), [(2, 2, (False, 12)), (4, 20, (True, 4))])
def test_the_heatmaps_of_partitions_fit_on_a_page(across, down, found):
    head = {"platform": "measured", "loss_pct": 5.0}
    source = pd.DataFrame(
        [
            head | {"partition": partition, "lead": f"lead{x}", "antagonists": f"specification-{y}"}
            for partition in ("unmanaged", *(f"split-{ways}" for ways in range(1, 5)))
            for x in range(across) for y in range(down)
        ]
    )  # fmt: skip
    assert heatmap_partitions._layout(source) == found
    drawn, left_out = heatmap_partitions.chosen(source)
    assert (len(drawn), left_out) == (min(5, found[1]), 5 - min(5, found[1]))


def test_a_scene_with_a_long_name_still_tells_its_partition():
    span = Span(1, f"beside {LONG[0]}", "split-4", 0.0, 0.1, 1.0, True, {}, False)
    said = timeline._label(span).split("\n")
    assert said[-1] == "split-4"
    assert said[0].startswith("beside stress-ng")
    assert len(said) <= timeline.LINES


def test_names_of_controls_that_begin_alike_are_told_apart_and_no_share_is_above_a_hundred(tmp_path):
    leads = ["resnet50-imagenet-training-bf16-large-xl", "resnet50-imagenet-training-bf16-small-xl"]
    told = read_results(make(tmp_path / "study", leads=leads, antagonists=["stream"], launches=2))
    told.launches["windows_rejected"] = told.launches["windows"]
    told.windows["valid"], told.windows["reason_kinds"] = False, "steal"
    figure, _ = health.draw(told)
    labels = [label.get_text() for axes in control.draw(told)[0].axes for label in axes.get_yticklabels()]
    names = [label for label in labels if label.startswith("resnet50")]
    assert len(names) == len(set(names)) == 2
    launches = next(axes for axes in figure.axes if axes.get_title("left") == health.LAUNCHES)
    assert max(launches.get_yticks()) == pytest.approx(100)
    assert problems(figure) == []


def test_ticks_of_a_wide_attribution_stand_apart(tmp_path):
    told = read_results(make(tmp_path / "study", leads=["dlrm"], antagonists=["stream"], launches=3))
    wide = told.attribution.assign(log_low=-0.5, log_high=0.9)
    assert problems(attribution.draw(replace(told, attribution=wide))[0]) == []


def test_seven_antagonists_have_colours_of_their_own_and_forty_two_have_looks_of_their_own(tmp_path):
    names = [f"spec-{number}" for number in range(42)]
    told = read_results(make(tmp_path / "study", leads=["dlrm"], antagonists=names, launches=1, rounds=1))
    found = looks(told, names)
    assert len(set(found.values())) == 42
    assert len({colour for colour, _ in list(found.values())[:7]}) == 7
