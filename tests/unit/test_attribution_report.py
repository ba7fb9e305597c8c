"""Sentences and drawings of the parts of a loss agree with the table, and claim no more than the intervals allow."""

import math
import re
from dataclasses import replace

import pytest

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.report.figures import attribution as attribution_figure
from castmates.report.page.common_parts import environment
from castmates.report.page.page import page, shown
from castmates.report.results import Results, read_results, records
from castmates.report.text import attribution
from castmates.results.columns.study import CARRYOVER, CONTROLS, LAUNCHES, frame
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.results_maker import make
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


def row(verdict, points=2.4, low=2.0, high=2.8, **other):
    usual = {"mix": "m", "member": "l@0", "part": "cache capacity", "platform": "measured", "partition": "split-4",
             "lead_ways": 4, "cache_ways": 11, "launches": 5, "launches_choosing": 0, "p_value": 0.01,
             "verdict": verdict,
             "points": points, "points_low": low, "points_high": high, "points_within_low": 2.3,
             "points_within_high": 2.5}  # fmt: skip
    return usual | other


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (row("loss"), "4 of 11 ways give back 2.4 points [2.0, 2.8] (split-4, 5 launches)"),
        (row("loss", launches=3, launches_choosing=2),
         "4 of 11 ways give back 2.4 points [2.0, 2.8] (split-4, chosen on 2 launches, estimated on 3 others)"),
        (row("gain", -1.2, -2.0, -0.4),
         "under 4 of 11 ways it loses 1.2 points [0.4, 2.0] more (split-4, 5 launches)"),
        (row("no loss", 0.1, -0.3, 0.5),
         "4 of 11 ways change its rate by no more than 2 % (0.1 points [\N{MINUS SIGN}0.3, 0.5]; split-4, 5 launches)"),
        (row("unclear", 0.4, -1.0, 1.8),
         "the data do not show whether 4 of 11 ways give anything back (0.4 points [\N{MINUS SIGN}1.0, 1.8]; split-4, "
         "5 launches)"),
        (row("unclear", 0.9, 0.2, 1.6),
         "4 of 11 ways may give back something (0.9 points [0.2, 1.6]; split-4, 5 launches), but chance can produce as "
         "much in 7 comparisons"),
        (row("too few launches", 2.4, NAN, NAN, launches=2),
         "within these 2 launches 4 of 11 ways gave back 2.4 points [2.3, 2.5] (split-4), and nothing more can be "
         "concluded"),
        (row("too few launches", -0.3, NAN, NAN, launches=2, points_within_low=-1.0, points_within_high=0.4),
         "within these 2 launches it lost 0.3 points [\N{MINUS SIGN}0.4, 1.0] more under 4 of 11 ways (split-4), and "
         "nothing more can be concluded"),
        (row("too few launches", 2.4, NAN, NAN, launches=1, points_within_low=NAN, points_within_high=NAN),
         "within this launch 4 of 11 ways gave back 2.4 points (split-4), and nothing more can be concluded"),
        (row("loss", 3.4, -7.2, 14.0),
         "4 of 11 ways give something back, but the data do not show how many points (3.4 points [\N{MINUS SIGN}7.2, "
         "14.0]; split-4, 5 launches)"),
        (row("gain", -3.4, -14.0, 7.2),
         "4 of 11 ways cost something, but the data do not show how many points (\N{MINUS SIGN}3.4 points "
         "[\N{MINUS SIGN}14.0, 7.2]; split-4, 5 launches)"),
        (row("unclear", 0.9, 0.2, 1.6, p_value=0.06),
         "4 of 11 ways may give back something (0.9 points [0.2, 1.6]; split-4, 5 launches), but in log terms, by "
         "which it is judged, the interval holds zero"),
    ],
)  # fmt: skip
def test_a_sentence_claims_no_more_than_its_interval(part, said):
    assert attribution._given_back(part, 0.02, 7) == said


def test_a_sentence_for_each_pair_says_what_ways_give_back(chosen):
    (said,) = attribution.sentences(chosen)  # nothing keeps the mix of bert apart
    part = chosen.attribution.query("mix == 'dlrm+stream' and part == 'cache capacity'").iloc[0]
    assert said == (
        f"dlrm beside stream: 8 of 12 ways give back {part['points']:.1f} points [{part['points_low']:.1f}, "
        f"{part['points_high']:.1f}] (split-8, chosen on 2 launches, estimated on 3 others)."
    )


def test_the_page_has_a_line_for_each_part(chosen):
    lines = attribution.rows(chosen)
    assert len(lines) == len(chosen.attribution)
    first = lines[0]
    assert first["who"] == "dlrm beside stream"
    assert first["isolation"] == (
        "isolated under split-8 (8 of 12 ways), chosen of 3 on 2 launches; estimated on 3 others"
    )
    assert lines[-1]["isolation"] == ("no partition gives the lead and its antagonists separate ways; 5 launches")
    assert {line["verdict"] for line in lines} <= {"loss", "gain", "no loss", "unclear"}


def test_bars_begin_where_those_above_end(chosen):
    figure, source = attribution_figure.draw(chosen)
    said = texts(figure)
    assert {"dlrm beside stream", "bert beside chase", "own smaller share", "sharing"} <= set(said)
    assert said.count("loss, % of the rate alone") == 1, "one axis for all"
    (axes,) = figure.axes
    ticks = [(place, label.get_text()) for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)]
    assert [float(text.replace("\N{MINUS SIGN}", "-")) for _, text in ticks] == pytest.approx([at for at, _ in ticks])
    assert any(text.startswith("modelled (not measured)") for text in said)
    dlrm = source[source["mix"] == "dlrm+stream"].set_index("part")["points"]
    leaves = ["busy antagonist", "own smaller share", "despite own ways", "cache capacity"]
    bars = [patch for patch in figure.axes[0].patches if patch.get_height() < 0.2][:5]
    begins = [sum(dlrm[leaves[:place]]) for place in range(4)] + [0.0]
    assert [bar.get_x() for bar in bars] == pytest.approx(begins, abs=1e-9)
    assert [bar.get_width() for bar in bars] == pytest.approx([*dlrm[leaves], dlrm["total"]])
    words = attribution_figure.alternative(chosen)
    assert "dlrm beside stream" in words
    assert "bert beside chase" in words
    assert "chosen on other launches" in attribution_figure.caption(chosen)


def test_two_launches_speak_of_themselves():
    one = results(atoms(), launches=2, named="split-4")
    figure, _ = attribution_figure.draw(one)
    said = " ".join(" ".join(texts(figure)).split())
    assert "dashed, and numbers beside: within launch only" in said
    assert "hollow: too few launches" in said
    assert attribution.rows(one)[0]["interval"].endswith(" within launch")


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
    return (
        environment()
        .get_template("attribution.html.j2")
        .render(
            attribution=attribution.rows(one),
            told_apart=attribution.same_for_all(one),
            first="",
            apart_in_ways=len(attribution.separations(one)) > 1,
        )
    )


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


def test_a_part_that_may_be_biased_has_a_dagger():
    one = results(atoms(), launches=3, named="split-4")
    part = one.attribution["part"] == "cache capacity"
    flagged = Results(**{**vars(one), "attribution": one.attribution.assign(possibly_biased=part)})
    said = texts(attribution_figure.draw(flagged)[0])
    assert "cache capacity †" in said
    assert "†: possibly biased by rejected windows" in " ".join(" ".join(said).split())
    assert all("possibly biased" in text for text in attribution.sentences(flagged))
    page = attribution_section(flagged)
    assert page.count("†") == 2
    assert "† Possibly biased: windows of a co-run" in page
    assert "†" not in attribution_section(one)


def test_a_study_without_any_loss_says_so():
    one = results(atoms(), launches=3)
    empty = Results(**{**vars(one), "attribution": one.attribution[:0]})
    figure, _ = attribution_figure.draw(empty)
    assert "No loss is known in the study sweep." in " ".join(" ".join(texts(figure)).split())
    assert attribution_figure.alternative(empty) == "No loss is known."
    assert attribution_figure.caption(empty)


def test_of_too_many_mixes_the_largest_losses_are_drawn(chosen):
    known = attribution_figure._known(chosen)
    many = [({**total, "points": points}, own) for points in range(60) for total, own in known[:1]]
    drawn = attribution_figure._drawn(many)
    assert 5 < len(drawn) < 60
    assert [total["points"] for total, _ in drawn] == list(range(60 - len(drawn), 60))
    assert attribution_figure._drawn(many[:5]) == many[:5]


def test_a_total_has_the_number_of_its_loss_or_the_rounds_that_it_is_made_of(chosen):
    totals = chosen.attribution.query("part == 'total'").set_index("mix")
    losses = chosen.lead_effects("alone").set_index("mix")
    fewer = {total["mix"]: attribution.fewer_rounds(chosen, total) for total, _ in attribution.mixes(chosen)}
    assert fewer == {"dlrm+stream": "3 of 5 launches", "bert+chase": ""}
    whole = records(chosen.attribution.query("part == 'total' and mix == 'bert+chase'"))[0]
    loss = losses.loc["bert+chase"]
    assert totals.loc["bert+chase", "points"] == pytest.approx(loss["loss_pct"])
    assert attribution.ends(whole) == pytest.approx((loss["loss_low"], loss["loss_high"]))
    figure, _ = attribution_figure.draw(chosen)
    said = texts(figure)
    assert {"total (3 of 5 launches)", "total"} <= set(said)
    assert "the others chose the partition" in " ".join(" ".join(said).split())
    effects = chosen.effects.assign(rounds=chosen.effects["rounds"] + 3)
    one = replace(chosen, effects=effects, attribution=chosen.attribution.assign(launches_choosing=0))
    said = " ".join(" ".join(texts(attribution_figure.draw(one)[0])).split())
    assert "those in which every stage was measured" in said


def test_what_pairs_have_in_common_is_said_once():
    one = results(atoms(ways=(), sensitivity=()), atoms("bert@0", "chase@1", ways=(), sensitivity=()))
    said = " ".join(" ".join(texts(attribution_figure.draw(one)[0])).split())
    assert said.count("no partition gives the lead") == 1
    page = attribution_section(one)
    assert page.count("no partition gives the lead") == 1, "in the caption"
