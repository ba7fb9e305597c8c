"""The figure and the page of a study with partitions: what is drawn is what the table holds. Synthetic results."""

import math

import pandas as pd
import pytest

from castmates.analysis.effects.carryover import estimate_carryover
from castmates.analysis.effects.effects import estimate_controls, estimate_effects
from castmates.report.figures import heatmap, heatmap_partitions, partitions
from castmates.report.figures import windows as over_time
from castmates.report.figures.antagonists import antagonists, looks
from castmates.report.figures.texts import texts_for
from castmates.report.page.page import page, shown
from castmates.report.results import Results
from castmates.results.columns.study import LAUNCHES, frame
from castmates.study.remarks import Remark
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.windows_maker import slices_of


def results(*groups, noise=0.0, platform="measured", launches=4, notes=()) -> Results:
    of = made(*groups, launches=launches).model_copy(update={"notes": notes})
    table = windows(of, noise, platform)
    return Results(
        name="sweep",
        effects=estimate_effects(of, table, 0.02),
        controls=estimate_controls(of, table, 0.02),
        carryover=estimate_carryover(of, [slices_of(table)]),
        launches=frame([_launch(launch, platform) for launch in of.launches], LAUNCHES),
        windows=table,
        plan=of,
    )


def _launch(launch, platform):
    return {
        "study": "sweep", "cohort": launch.cohort.id, "launch": launch.number, "lead": launch.cohort.lead.workload,
        "status": "measured", "reason": "", "started": "2026-01-05T10:00:00+00:00", "rounds": 2, "windows": 40,
        "windows_rejected": 0, "platform": platform,
    }  # fmt: skip


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")) if text.get_text()]


@pytest.mark.parametrize("draw", [heatmap.draw, heatmap_partitions.draw])
def test_what_was_measured_and_what_was_modelled_have_panels_of_their_own(draw):
    one, other = results(atoms(ways=(4,))), results(atoms(ways=(4,)), platform="modelled", noise=0.1)
    both = Results(**{**vars(one), "effects": pd.concat([one.effects, other.effects], ignore_index=True),
                      "controls": pd.concat([one.controls, other.controls], ignore_index=True)})  # fmt: skip
    figure, source = draw(both)
    titles = [" ".join(axes.get_title().split()) for axes in figure.axes if axes.get_title()]
    if draw is heatmap.draw:
        assert titles == [f"against {base}, {one}" for base in ("alone", "placebo") for one in ("measured", "modelled")]
    else:
        assert titles[:2] == ["unmanaged, measured", "unmanaged, modelled"]
    rows = source[(source["baseline"] == "alone") & (source["antagonists"] == "stream")]
    for loss in rows.loc[rows["partition"] == "unmanaged", "loss_pct"]:
        assert any(f"{loss:.1f}" in text for text in texts(figure))
    alone = [axes.get_title() for axes in draw(one)[0].axes if axes.get_title()]
    assert not any("measured" in title for title in alone)


def test_what_is_drawn_is_what_the_table_says():
    source = partitions.losses(results(atoms()))
    here = source.set_index(["series", "partition"])["loss_pct"]
    assert here["split", "split-4"] == pytest.approx(100 * (1 - math.exp(-0.18)))
    assert here[partitions.OWN, "lead-2"] == pytest.approx(100 * (1 - math.exp(-0.2)))
    assert here[partitions.OWN_BESIDE_PLACEBOS, "split-4"] == pytest.approx(100 * (1 - math.exp(-0.12)))
    assert here[partitions.ALL_WAYS, "cap-2"] == pytest.approx(100 * (1 - math.exp(-0.12)))
    beside = source[source["series"] == partitions.OWN_BESIDE_PLACEBOS]
    assert beside[["low", "high"]].isna().all().all()
    assert not beside["within_launch"].any()
    assert set(beside["verdict"]) == {""}
    assert set(beside["baseline"]) == {partitions.DERIVED}
    assert len(source) == len(source.drop_duplicates(["series", "partition"]))


def test_a_panel_for_each_mix_with_the_sensitivity_of_its_lead():
    one = results(atoms(), atoms("bert@0", "chase@1", sensitivity=()), noise=0.01, platform="modelled")
    figure, source = partitions.draw(one)
    said = texts(figure)
    assert {"dlrm beside stream", "bert beside chase"} <= set(said)
    assert any(text.startswith("modelled (not measured)") for text in said)
    assert {"split", partitions.OWN, partitions.OWN_BESIDE_PLACEBOS, "without a partition", "cap-2"} <= set(said)
    assert "ways of the lead (1.5 MiB each)" in said
    assert len(figure.axes) == 2
    assert list(source.columns) == partitions.SHOWN
    assert "not measured" not in " ".join(texts(partitions.draw(results(atoms()))[0]))


def test_the_legend_and_the_curves_have_the_same_lines_and_no_colour_of_a_antagonist():
    one = results(atoms(), noise=0.01)
    figure, _ = partitions.draw(one)
    keys = {line.get_label(): line for line in figure.legends[0].legend_handles}
    curves = {
        (line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines
        if len(set(line.get_xdata())) > 1 and set(line.get_xdata()) != {0, 1}
    }  # fmt: skip
    for name in ("split", partitions.OWN, partitions.OWN_BESIDE_PLACEBOS):
        assert (keys[name].get_color(), keys[name].get_linestyle()) in curves, name
    assert keys[partitions.OWN].get_linestyle() == "--"
    assert keys["split"].get_linestyle() == "-"
    beside = {look[0] for look in looks(one, antagonists(one)).values()}
    assert not beside & {line.get_color() for name, line in keys.items() if name not in partitions.GREYS}


def test_few_launches_are_said_to_speak_of_themselves():
    figure, source = partitions.draw(results(atoms(), noise=0.01, launches=2))
    assert "within launch only" in " ".join(texts(figure)).replace("\n", " ")
    assert source.loc[source["series"] == "split", "within_launch"].all()


def test_a_lead_alone_has_a_panel_of_its_own():
    one = results([mix for mix in atoms() if not mix.antagonists])
    figure, _ = partitions.draw(one)
    assert "dlrm alone" in texts(figure)
    assert texts_for("partitions", one).alternative == "Losses under partitions: dlrm from 6.4 to 18.1 %."
    assert texts_for("heatmap", one).alternative == "No mix of the study sweep was measured without a partition."
    assert "was measured without a partition" in " ".join(" ".join(texts(heatmap.draw(one)[0])).split())


def test_the_other_figures_show_what_holds_without_partitions():
    one = results(atoms(), noise=0.01)
    _, source = heatmap.draw(one)
    assert set(source["partition"]) == {"unmanaged"}
    assert (source["row"] == "mix").sum() == 2
    rates = over_time.relative_rates(one.windows)
    assert rates[rates["what"] == "alone"]["relative_rate"].median() == pytest.approx(1.0, abs=0.02)
    assert {"beside stream", "beside stream, partitioned", "placebo, partitioned", "alone, partitioned"} <= set(
        rates["what"]
    )


def test_only_a_study_with_partitions_shows_their_figure():
    note = "cache.sweeps.1.split: 40 left out: from 1 to 11 ways can be given here."
    one = results(atoms(), noise=0.01, notes=(Remark(about="cache", text=note),))
    html = page(one, dict.fromkeys(shown(one), "<svg></svg>"))
    assert 'id="figure-partitions"' in html
    assert note in html
    assert "dlrm loses" in html, "the curve has its sentence"
    assert '<figure class="curve">' in html
    assert "No cache partitions" not in html
    plain = results([atoms()[0]], noise=0.01)
    assert 'id="figure-partitions"' not in page(plain, dict.fromkeys(shown(plain), "<svg></svg>"))
