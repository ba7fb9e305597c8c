"""The figures of sensitivity and Pareto, and the sentences about them. Synthetic results."""

from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.analysis.partitions.recommendation import CONFIRMED, pareto_table, recommendations, worthwhile
from castmates.analysis.partitions.sensitivity import knees, sensitivity_table
from castmates.errors import CastmatesError
from castmates.report.figures import pareto as pareto_figure
from castmates.report.figures import sensitivity
from castmates.report.figures.pareto import labels_of, most_of
from castmates.report.figures.sheet import spaced
from castmates.report.figures.texts import texts_for
from castmates.report.text import recommendation
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.spec import Plan
from tests.unit.legible import problems
from tests.unit.partition_maker import atoms
from tests.unit.snapshots import assert_as_before
from tests.unit.test_figure_partitions import results as of_effects
from tests.unit.test_figure_partitions import texts


def results(*groups, noise=0.004, limit=25.0, **given):
    found = of_effects(*groups, noise=noise, **given)
    plan = Plan.model_validate(found.plan)
    curves = sensitivity_table(plan, found.effects)
    pareto = pareto_table(plan, found.windows, found.effects)
    advice = worthwhile(recommendations(pareto, limit), found.effects).assign(cache_ways=12)
    return replace(found, sensitivity=curves, knees=knees(curves, 12), pareto=pareto, recommendations=advice)


def test_a_point_that_would_squeeze_the_others_is_an_arrow_with_its_numbers():
    one = results(atoms(ways=range(2, 12)))
    far = one.pareto["partition"] == "cap-2"
    pareto = one.pareto.assign(**{name: one.pareto[name].where(~far, 7.0) for name in ("kept_pct", "kept_low")})
    squeezed = replace(one, pareto=pareto)
    figure, source = pareto_figure.draw(squeezed)
    assert "at the edge of the axes" in texts_for("pareto", squeezed).caption
    assert "at the edge of the axes" not in texts_for("pareto", one).caption
    loss = source.loc[far, "loss_pct"].iloc[0]
    assert figure.axes[0].get_ylim()[0] > 50
    assert f"cap-2 ({loss:.1f}, 7.0)" in texts(figure)
    assert "arrow: beyond the axes" in " ".join(texts(figure)).replace("\n", " ")
    assert problems(figure) == []


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_at_most_a_quarter_of_the_points_is_beyond_the_axes_and_only_where_it_helps(values):
    low, high = most_of(values)
    inside = [value for value in values if low <= value <= high]
    assert {low, high} <= set(values)
    assert 4 * len(inside) >= 3 * len(values)
    assert len(inside) == len(values) or 4 * (high - low) < max(values) - min(values)


def test_partitions_that_give_the_lead_as_many_ways_are_told_apart():
    row = {"lead_bytes": 9 * 2**20, "lead_ways": 6}
    rows = [row | {"partition": "split-6"}, row | {"partition": "overlap-2-lead-6"}]
    rows += [{"partition": "split-1", "lead_ways": 1, "lead_bytes": float("nan")}]
    assert labels_of(rows) == {
        "split-6": "split-6, 9 MiB", "overlap-2-lead-6": "overlap-2-lead-6, 9 MiB", "split-1": "1 way",
    }  # fmt: skip


def test_many_curves_have_colours_of_their_own_and_one_line_for_all_knees_that_are_not_reached():
    name = "stress-ng-matrix-3d-and-memory-stream-y"
    one = results(*(atoms("resnet50-imagenet-training-bf16-large-xl@0", f"{name}{n}@1") for n in range(8)))
    figure, _ = sensitivity.draw(one)
    said, panels = texts(figure), [axes for axes in figure.axes if axes.texts]
    assert len(panels) == said.count("not reached") == 2
    for axes in panels:
        lines = [text.arrow_patch.get_edgecolor() for text in axes.texts if text.get_text().startswith("beside")]
        assert len(set(lines)) == len(lines)
    assert problems(figure) == []


def test_wide_intervals_are_drawn_whole():
    one = results(atoms())
    wide = replace(one, sensitivity=one.sensitivity.assign(rate_high=140.0))
    figure, _ = sensitivity.draw(wide)
    assert figure.axes[0].get_ylim()[1] > 140


def test_figures_and_sentences_name_ways_losses_others_and_the_next_step():
    one = results(atoms())
    two = results(atoms(), atoms("bert@0", "chase@1", sensitivity=()), platform="modelled")
    chosen = one.recommendations["partition"].iloc[0]
    fresh = one.pareto[one.pareto["partition"] == chosen].assign(stage=CONFIRMED, source="fresh", frontier=False)
    confirmed = replace(one, pareto=pd.concat([one.pareto, fresh], ignore_index=True))
    studies = {"a lead": one, "two leads, modelled": two, "confirmed": confirmed,
               "none keeps 1 %": results(atoms(), limit=1.0), "two launches": results(atoms(), launches=2)}  # fmt: skip
    said = {}
    for name, found in studies.items():
        for figure, module in (("sensitivity", sensitivity), ("pareto", pareto_figure)):
            drawn, _ = module.draw(found)
            told = texts_for(figure, found)
            words = dict.fromkeys(" ".join(text.split()) for text in texts(drawn))
            said[f"{name}: {figure}"] = [*words, told.alternative, told.caption]
        said[f"{name}: sentences"] = recommendation.context(found)["sentences"]
    assert_as_before("figure-shares", said)
    assert pareto_figure.draw(confirmed)[1] is confirmed.pareto
    assert len(sensitivity.draw(two)[1]) == len(two.sensitivity)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 8)), max_size=10))
def test_labels_do_not_overlap_and_stay_inside(labels):
    ordered = sorted(labels)
    heights = [height for _, height in ordered]
    found = spaced([centre for centre, _ in ordered], heights, 0.0, 100.0)
    edges = [(y - height / 2, y + height / 2) for y, height in zip(found, heights, strict=True)]
    assert all(one[1] <= other[0] + 1e-9 for one, other in pairwise(edges))
    assert all(low >= -1e-9 and high <= 100 + 1e-9 for low, high in edges)


@pytest.mark.parametrize("text", ["0%", "100%", "-3%", "x", ".nan", "3 %%"])
def test_a_limit_that_is_none_is_refused_by_key_and_line(text):
    with pytest.raises(CastmatesError, match=r"s\.yaml, line 2: 'recommend\.lead_loss'.*a share above 0% and"):
        read_keys(Study, f"name: s\nrecommend: {{lead_loss: {text}}}\n", "s.yaml")
