"""Sentences and drawings of the parts of a loss agree with the table, and claim no more than the intervals allow."""

import math
import re
from dataclasses import replace

import pandas as pd
import pytest

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.report.figures import attribution as attribution_figure
from castmates.report.machine_facts import MachineFacts
from castmates.report.page.common_parts import environment
from castmates.report.page.page import page, shown
from castmates.report.results import Results, read_results, records
from castmates.report.text import attribution
from castmates.results.columns.study import CARRYOVER, CONTROLS, LAUNCHES, frame
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before
from tests.unit.test_figure_partitions import _launch, texts

NAN = math.nan


def results(*groups, launches=5, named=None, platform="measured", noise=0.01) -> Results:
    of = made(*groups, launches=launches)
    table = windows(of, noise, platform)
    return Results(
        name="sweep",
        effects=estimate_effects(of, table, 0.02),
        controls=frame([], CONTROLS),
        carryover=frame([], CARRYOVER),
        launches=frame([_launch(launch, platform) for launch in of.launches], LAUNCHES),
        windows=table,
        plan=of,
        attribution=estimate_attribution(of, table, 0.02, named),
    )


@pytest.fixture(scope="module")
def chosen():
    return results(atoms(), atoms("bert@0", "chase@1", ways=(), sensitivity=()), platform="modelled")


USUAL = {"mix": "m", "member": "l@0", "part": "cache capacity", "platform": "measured", "partition": "split-4",
         "lead_ways": 4, "cache_ways": 11, "launches": 5, "launches_choosing": 0, "p_value": 0.01, "points": 2.4,
         "points_low": 2.0, "points_high": 2.8, "points_within_low": 2.3, "points_within_high": 2.5}  # fmt: skip
SENTENCES = [
    ("loss", (2.4, 2.0, 2.8), {}),
    ("loss", (2.4, 2.0, 2.8), {"launches": 3, "launches_choosing": 2}),
    ("loss", (3.4, -7.2, 14.0), {}),
    ("gain", (-1.2, -2.0, -0.4), {}),
    ("gain", (-3.4, -14.0, 7.2), {}),
    ("no loss", (0.1, -0.3, 0.5), {}),
    ("unclear", (0.4, -1.0, 1.8), {}),
    ("unclear", (0.9, 0.2, 1.6), {}),
    ("unclear", (0.9, 0.2, 1.6), {"p_value": 0.06}),
    ("too few launches", (2.4, NAN, NAN), {"launches": 2}),
    ("too few launches", (-0.3, NAN, NAN), {"launches": 2, "points_within_low": -1.0, "points_within_high": 0.4}),
    ("too few launches", (2.4, NAN, NAN), {"launches": 1, "points_within_low": NAN, "points_within_high": NAN}),
]


def test_a_sentence_claims_no_more_than_its_interval():
    said = {}
    for verdict, (points, low, high), others in SENTENCES:
        part = USUAL | {"verdict": verdict, "points": points, "points_low": low, "points_high": high} | others
        said[f"{verdict} {points} [{low}, {high}] {others or ''}".strip()] = attribution._given_back(part, 0.02, 7)
    assert_as_before("attribution", said)


def flagged():
    one = results(atoms(), launches=3, named="split-4")
    table = one.attribution.assign(possibly_biased=one.attribution["part"] == "cache capacity")
    return replace(one, attribution=table)


def test_what_the_figure_and_the_page_say(chosen):
    apart = results(atoms(ways=(), sensitivity=()), atoms("bert@0", "chase@1", ways=(), sensitivity=()))
    rounds = chosen.effects.assign(rounds=chosen.effects["rounds"] + 3)
    stages = replace(chosen, effects=rounds, attribution=chosen.attribution.assign(launches_choosing=0))
    studies = {
        "chosen on other launches": chosen, "every stage measured in fewer rounds": stages,
        "two launches": results(atoms(), launches=2, named="split-4"), "possibly biased": flagged(),
        "no partition": apart, "nothing": replace(apart, attribution=apart.attribution[:0]),
    }  # fmt: skip
    said = {}
    for name, one in studies.items():
        drawn = dict.fromkeys(" ".join(text.split()) for text in texts(attribution_figure.draw(one)[0]))
        below = [attribution_figure.alternative(one), attribution_figure.caption(one), attribution_figure.in_short(one)]
        rows = [" | ".join(cell for cell in row.values() if isinstance(cell, str)) for row in attribution.rows(one)]
        said[name] = [*drawn, "", *below, "", *attribution.sentences(one), "", *rows]
    assert_as_before("attribution-figure", said)


def on(machine, far=()):
    """A study of one pair with a partition, on this machine, with further rows of pairs that sit farther away."""
    one = results(atoms(), named="split-4", noise=0.001)
    return replace(one, attribution=pd.concat([one.attribution, *far]), machine=MachineFacts.model_validate(machine))


def packages(*caches):
    return {"topology": {"packages": 1, "llcs": [{"cpus": cpus} for cpus in caches]}}


def test_on_chiplets_what_no_mask_gives_back_is_also_the_way_to_memory():
    apart = results(atoms(ways=(), sensitivity=()), noise=0.001).attribution
    apart = apart.assign(mix="dlrm+stream:socket", antagonists="stream:socket")
    said = {
        "one cache": attribution.despite(on(packages("0-15"))),
        "chiplets": attribution.despite(on(packages("0-7", "8-15"))),
        "and another cache was tried": attribution.despite(on(packages("0-7", "8-15"), [apart])),
        "modelled": attribution.despite(on({"model": {"domains": 2, "sockets": 1}})),
        "modelled, a memory for each": attribution.despite(on({"model": {"domains": 2, "sockets": None}})),
    }
    assert_as_before("attribution-chiplets", said)


def test_a_dagger_of_the_page_is_explained_and_what_pairs_have_in_common_stands_once(chosen):
    assert attribution_section(flagged()).count("†") == 2
    assert "†" not in attribution_section(chosen)
    one = results(atoms(ways=(), sensitivity=()), atoms("bert@0", "chase@1", ways=(), sensitivity=()))
    assert attribution_section(one).count("no partition gives the lead") == 1, "in the caption"


def test_bars_begin_where_those_above_end(chosen):
    figure, source = attribution_figure.draw(chosen)
    (axes,) = figure.axes
    ticks = [(place, label.get_text()) for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)]
    assert [float(text.replace("\N{MINUS SIGN}", "-")) for _, text in ticks] == pytest.approx([at for at, _ in ticks])
    dlrm = source[source["mix"] == "dlrm+stream"].set_index("part")["points"]
    leaves = ["busy antagonist", "own smaller share", "despite own ways", "cache capacity"]
    bars = [patch for patch in axes.patches if patch.get_height() < 0.2][:5]
    begins = [sum(dlrm[leaves[:place]]) for place in range(4)] + [0.0]
    assert [bar.get_x() for bar in bars] == pytest.approx(begins, abs=1e-9)
    assert [bar.get_width() for bar in bars] == pytest.approx([*dlrm[leaves], dlrm["total"]])


def test_the_total_has_the_interval_of_the_loss(chosen):
    """`effects` and `attribution` are estimated apart: where their rounds are the same, so are their intervals."""
    ends = ["points", "points_low", "points_high"]
    total = chosen.attribution[chosen.attribution["part"] == "total"].set_index("mix")
    loss = chosen.lead_effects("alone").set_index("mix")
    same = [mix for mix in total.index if total.at[mix, "rounds"] == loss.at[mix, "rounds"]]
    one = results(atoms(), launches=4, named="split-4")
    pairs = [(total.loc[mix, ends], loss.loc[mix]) for mix in same]
    whole = one.attribution[one.attribution["part"] == "total"].iloc[0]
    pairs.append((whole[ends], one.lead_effects("alone").iloc[0]))
    for found, effect in pairs:
        assert found.to_list() == pytest.approx([effect[f"loss_{end}"] for end in ("pct", "low", "high")])


def test_what_an_idle_loop_costs_a_program_is_drawn_once():
    one = results(
        atoms(antagonist="stream@1"), atoms(antagonist="chase@1", sensitivity=()), launches=3, named="split-4"
    )
    busy = one.attribution[one.attribution["part"] == "busy antagonist"]
    same = busy.iloc[0][["points", "points_low", "points_high"]]
    table = one.attribution.copy()
    table.loc[busy.index, same.index] = [same.to_list()] * len(busy)
    figure, _ = attribution_figure.draw(replace(one, attribution=table))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert (len(busy), labels.count("busy antagonist")) == (2, 1)
    assert any("drawn for the first of them" in " ".join(text.split()) for text in texts(figure))


def attribution_section(one):
    apart = len(attribution.separations(one)) > 1
    known = {"told_apart": attribution.same_for_all(one), "first": "", "apart_in_ways": apart}
    return environment().get_template("attribution.html.j2").render(attribution=attribution.rows(one), **known)


def test_without_partitions_the_figure_is_folded_below_a_line_and_the_reason_stands_once(tmp_path, chosen):
    plain = read_results(make(tmp_path / "study", ["a", "b"], ["x", "y"]))
    html = page(plain, dict.fromkeys(shown(plain), "<svg></svg>"))
    (line, folded) = re.search(r"<summary>([^<]*placebo[^<]*)</summary>(.*?)</details>", html, re.DOTALL).groups()
    parts = plain.attribution.set_index("part")
    assert (parts.loc[["sharing", "busy antagonist"], "verdict"] == "unclear").all(), "nothing may be claimed of them"
    assert line.endswith("a placebo in the antagonist&#39;s place, and what its work adds")
    alike = parts.assign(verdict="loss").reset_index()
    assert attribution_figure.in_short(replace(plain, attribution=alike)).endswith(" points, its work the rest")
    open_ = alike.assign(
        verdict=alike["verdict"].mask((alike["part"] == "sharing") & (alike["mix"] == "a+x"), "unclear")
    )
    assert attribution_figure.in_short(replace(plain, attribution=open_)).endswith("is proven for 3 of 4 mixes")
    assert 'id="figure-attribution"' in folded
    table = attribution_section(plain)
    assert "separate ways" not in table, "no partition was tried"
    assert "How it was separated</th>" not in table
    assert "How it was separated</th>" in attribution_section(chosen), "mixes differ in it"
    assert attribution_figure.in_short(chosen) == ""


def test_of_too_many_mixes_the_largest_losses_are_drawn(chosen):
    known = attribution_figure._known(chosen)
    many = [({**total, "points": points}, own) for points in range(60) for total, own in known[:1]]
    drawn = attribution_figure._drawn(many)
    assert 5 < len(drawn) < 60
    assert [total["points"] for total, _ in drawn] == list(range(60 - len(drawn), 60))
    assert attribution_figure._drawn(many[:5]) == many[:5]


def test_a_total_has_the_number_of_its_loss_or_the_rounds_that_it_is_made_of(chosen):
    fewer = {total["mix"]: attribution.fewer_rounds(chosen, total) for total, _ in attribution.mixes(chosen)}
    assert fewer == {"dlrm+stream": "3 of 5 launches", "bert+chase": ""}
    (whole,) = records(chosen.attribution.query("part == 'total' and mix == 'bert+chase'"))
    loss = chosen.lead_effects("alone").set_index("mix").loc["bert+chase"]
    assert whole["points"] == pytest.approx(loss["loss_pct"])
    assert attribution.ends(whole) == pytest.approx((loss["loss_low"], loss["loss_high"]))
