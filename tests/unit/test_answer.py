"""The answer of a study: its headline, its pairs, what settles the rest, and what counts against it."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from castmates.analysis.effects.verdicts import EXTENDED_LEVEL
from castmates.analysis.statistics.power import POWER, chance_within, detectable
from castmates.report.answer.answer import SHOWN, answer
from castmates.report.answer.cards import reasons, thrown_away
from castmates.report.answer.drawing import curve_drawing, scale_of
from castmates.report.answer.pairs import pairs
from castmates.report.answer.parts import Pair, percent
from castmates.report.answer.settling import MOST, launches_for, planned_spreads, spread_of, to_settle
from castmates.report.results import read_results
from castmates.study.model import Workload
from tests.unit.makers import plan
from tests.unit.makers import study as study_of
from tests.unit.partition_maker import atoms
from tests.unit.results_maker import make, record
from tests.unit.snapshots import assert_as_before
from tests.unit.test_figure_partitions import results as partitioned

LOSING = ("loss", 16.2, 13.6, 18.8)
NEARLY = ("unclear", 5.0, 0.4, 9.4)
OPEN = ("unclear", 1.0, -4.0, 5.8)
SAME = ("no loss", 0.2, -0.9, 1.3)
GAINING = ("gain", -6.0, -8.0, -4.0)
HOPED = ("unclear", -5.0, -9.4, -0.4)
FEW = ("too few launches", 3.0, 1.0, 5.0)
MISSING = ("no data", math.nan, math.nan, math.nan)
EVERY = {LOSING: "loss", NEARLY: "suspected loss", GAINING: "gain", HOPED: "suspected gain", SAME: "no loss",
         OPEN: "unclear", FEW: "too few launches", MISSING: "no data"}  # fmt: skip
NUMBERS = ["verdict", "loss_pct", "loss_low", "loss_high"]


def slowdown(loss):
    return 1 / (1 - loss / 100)


def test_leads_that_nobody_ran_beside_have_rates_and_no_losses(study):
    found = answer(
        replace(study, plan=plan(study_of(["a", "b"], [], placement={"lead": "0"})), effects=study.effects.iloc[:0])
    )
    assert found.pairs == []
    windows = study.windows[study.windows["valid"] & (study.windows["scene"] == "alone")]
    for lead in ("a", "b"):
        rates = windows[windows["workload"] == lead].groupby("launch")["rate"].mean()
        span = f"({rates.min():.3g} to {rates.max():.3g} in 5 launches)"
        assert f"{lead} makes {rates.mean():.3g} steps a second alone {span}" in found.headline


@pytest.mark.parametrize(("rate", "said"), [(12_345.6, "12,346"), (0.01234, "0.0123")])
def test_a_speed_alone_is_told_in_words_that_fit_it(study, rate, said):
    one = study.windows[(study.windows["launch"] == 1)].assign(rate=rate, unit="query")
    alone = replace(study, plan=plan(study_of(["a"], [], placement={"lead": "0"})), effects=study.effects.iloc[:0])
    assert answer(replace(alone, windows=one)).headline == f"a makes {said} queries a second alone, in one launch."
    serving = {"a": Workload(command="serve --load 10", requests=True, progress="heartbeat", unit="request")}
    service = replace(alone, plan=plan(study_of(["a"], [], placement={"lead": "0"}), programs=serving))
    found = answer(replace(service, windows=one.assign(rate=1 / 0.0042)))
    assert found.headline == "a has a p99 of 4.2 ms alone, in one launch."


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return read_results(make(tmp_path_factory.mktemp("answers") / "study", ["a", "b"], ["x", "y"], launches=5))


def told(results, *rows):
    """The results with these verdicts and losses against alone, in the order a+x, a+y, b+x, b+y."""
    effects = results.effects.copy()
    places = effects.index[(effects["role"] == "lead") & (effects["baseline"] == "alone")]
    for place, (verdict, loss, low, high) in zip(places, rows, strict=True):
        effects.loc[place, NUMBERS] = verdict, loss, low, high
        effects.loc[place, "launches"] = {"no data": 0, "too few launches": 2}.get(verdict, 5)
        effects.loc[place, ["slowdown", "slowdown_low", "slowdown_high"]] = [slowdown(end) for end in (loss, low, high)]
        effects.loc[place, ["p_value", "possibly_biased", "still_growing"]] = 0.02, False, False
    return replace(results, effects=effects)


def named(results, **budget):
    """The results of a study whose file is known."""
    return replace(
        results, study=study_of(["a", "b"], ["x", "y"], budget={"launches": 5} | budget), study_file="s.yaml"
    )


HEADLINES = [
    (LOSING, SAME, SAME, SAME), (LOSING, SAME, ("loss", 5.6, 3, 8), SAME), (LOSING, ("loss", 3.0, 2, 4), SAME, SAME),
    (LOSING,) * 4, (HOPED, OPEN, SAME, SAME), (HOPED, OPEN, HOPED, SAME), (NEARLY, OPEN, HOPED, HOPED),
    (NEARLY, OPEN, NEARLY, OPEN), (OPEN, OPEN, NEARLY, SAME), (SAME,) * 4, (SAME, OPEN, OPEN, SAME), (OPEN,) * 4,
    (SAME, OPEN, MISSING, MISSING), (SAME, OPEN, OPEN, OPEN), (SAME, SAME, MISSING, FEW), (MISSING,) * 4,
    (FEW, FEW, MISSING, FEW), (GAINING, SAME, SAME, SAME), (NEARLY, LOSING, GAINING, SAME),
]  # fmt: skip


def test_the_answer_is_what_the_verdicts_come_to(study):
    """Headline, what settles the rest, and the rows of the pairs, the heaviest loss of a program first."""
    said = {}
    for rows in HEADLINES:
        found = answer(told(study, *rows))
        lines = [f"{p.program} beside {p.antagonists}: {p.verdict}, {p.state} ({p.note})" for p in found.pairs]
        case = " | ".join(f"{row[0]} {row[1]}" for row in rows)
        said[case] = [found.headline, found.below, found.settling, *lines]
    assert_as_before("answer", said)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([*EVERY]), min_size=4, max_size=4))
def test_every_state_is_accounted_for_and_no_loss_has_to_be_earned(study, rows):
    """Two one-sided tests decide that (`no loss`); an interval that holds zero does not."""
    found = answer(told(study, *rows))
    above = f"{found.headline} {found.below}"
    claims = [above, found.settling, *(pair.verdict for pair in found.pairs)]
    assert [EVERY[row] for row in rows].count("no loss") == sum(pair.state == "no loss" for pair in found.pairs)
    if SAME not in rows:
        assert not re.search(r"no loss(?! is proven)|stays? within|no effect|nothing(?! that is measured)",
                             " ".join(claims), re.IGNORECASE)  # fmt: skip
    assert found.headline.startswith("No loss: all") == (set(rows) == {SAME})
    for row, words in ((LOSING, "lose|loss"), (NEARLY, "suspected"), (HOPED, "gain"), (GAINING, "gained"),
                       (SAME, "within"), (OPEN, "[uU]nclear"), (MISSING, "no data|any numbers")):  # fmt: skip
        if row in rows and not (row == MISSING and set(rows) == {MISSING}):
            assert re.search(words, above), (row, above)
    if FEW in rows:
        assert "oo few launches" in above or "too few" in above


def test_a_program_that_failed_is_a_row_without_numbers_and_its_reason(tmp_path):
    results = read_results(make(tmp_path / "study", failed=5))
    found = answer(results)
    assert found.headline == "Nothing was measured: every launch failed."
    (card,) = found.cards
    assert card.state == "bad"
    assert "ended with status 1 before it was ready" in card.text
    assert "castmates sweep STUDY.yaml --retry" in card.text


@settings(max_examples=30, deadline=None)
@given(st.floats(0.005, 0.3), st.floats(0.01, 0.2), st.integers(1, 20))
def test_so_many_launches_are_enough_and_one_fewer_is_not(log, spread, tried):
    """With the spread known, the chance of proving the loss is what power means; the number is the fewest."""
    pair, level = _pair(log), EXTENDED_LEVEL / tried
    count = launches_for(pair, spread, tried, None)
    if count <= MOST:
        assert detectable(spread**2, count, level) <= log
        assert count == pair.launches or detectable(spread**2, count - 1, level) > log
    else:
        assert detectable(spread**2, MOST, level) > log
    assert POWER == 0.8


@pytest.mark.parametrize(("log", "spread"), [(0.002, 0.02), (0.0, 0.03), (-0.008, 0.01)])
def test_so_many_launches_show_four_times_in_five_that_a_small_loss_is_within_the_margin(log, spread):
    count = launches_for(_pair(log), spread, 6, 0.02)
    assert count < launches_for(_pair(log), spread, 6, None)
    seen = [_share_within(log, spread, number, math.log1p(0.02)) for number in (count, count - 1)]
    assert seen[0] == pytest.approx(chance_within(spread, count, log, math.log1p(0.02)), abs=0.012)
    assert seen[0] >= 0.788
    assert seen[1] < 0.812


def _share_within(log, spread, launches, edge):
    """Of 20 000 simulated studies, how many have their whole interval within the margin."""
    values = np.random.default_rng(launches).normal(log, spread, (20_000, launches))
    half = special.stdtrit(launches - 1, 0.975) * values.std(axis=1, ddof=1) / math.sqrt(launches)
    return float((abs(values.mean(axis=1)) + half <= edge).mean())


def test_the_spread_is_that_of_the_launches_whose_interval_it_was(study):
    pair = pairs(told(study, OPEN, OPEN, OPEN, OPEN))[0]
    half = (math.log(slowdown(5.8)) - math.log(slowdown(-4.0))) / 2
    assert spread_of(pair) == pytest.approx(half / 2.776 * math.sqrt(5), rel=1e-3)


def test_pairs_that_differ_alike_are_planned_by_what_all_of_them_show():
    """Six launches of three pairs that scatter alike: the widest asks for half as many launches again as needed."""
    dice = np.random.default_rng(6)
    enough = launches_for(_pair(0.02), 0.016, 3, None)
    asked = {"pooled": [], "the widest": []}
    for _ in range(300):
        values = dice.normal(0.02, 0.016, (6, 3))
        half = special.stdtrit(5, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(6)
        found = [replace(_pair(0.02), launches=6, log_low=0.02 - each, log_high=0.02 + each) for each in half]
        spreads = {"pooled": planned_spreads(found)[0], "the widest": max(map(spread_of, found))}
        for name, spread in spreads.items():
            asked[name].append(launches_for(found[0], spread, 3, None))
    assert np.mean(asked["pooled"]) == pytest.approx(enough, rel=0.1)
    assert np.mean(asked["the widest"]) > 1.4 * enough


def test_what_is_suspected_is_settled_first_and_a_command_measures_it(study):
    suspected, every = (to_settle(results, pairs(results)) for results in (
        told(study, NEARLY, OPEN, LOSING, SAME), told(study, OPEN, OPEN, LOSING, SAME)))  # fmt: skip
    assert (suspected.pairs, every.pairs) == (1, 2)
    assert suspected.launches == 5 + suspected.more
    assert suspected.seconds == pytest.approx(suspected.more * 61 * 2)
    assert to_settle(study, pairs(told(study, LOSING, SAME, SAME, SAME))) is None


def test_no_sweep_of_a_hundred_launches_is_proposed(study):
    hopeless = told(study, ("unclear", 0.1, -30.0, 30.0), SAME, SAME, SAME)
    found = answer(hopeless)
    assert found.command == ""
    assert f"more than {MOST} launches" in found.settling


def test_many_pairs_are_cut_to_the_most_important(tmp_path):
    results = read_results(make(tmp_path / "study", ["a", "b"], [f"x{n}" for n in range(9)], launches=4))
    found = answer(results)
    assert (len(found.pairs), found.all_pairs) == (SHOWN, 18)
    left = {(pair.lead, pair.mix) for pair in pairs(results)} - {(pair.lead, pair.mix) for pair in found.pairs}
    states = {(pair.lead, pair.mix): pair.state for pair in pairs(results)}
    if any(states[place] == "loss" for place in left):
        assert all(pair.state == "loss" for pair in found.pairs)


@given(st.lists(st.floats(-500, 100), min_size=1), st.floats(0.5, 20))
def test_the_scale_holds_zero_the_margin_and_what_is_not_absurd(values, margin):
    scale = scale_of(values, margin, 360)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 360 for place in places)
    assert not any(scale.cut(value) for value in (0.0, margin, -margin, *(v for v in values if -50 <= v <= 100)))
    assert 2 <= len(scale.ticks) <= 7


def _pair(log):
    loss = 100 * (1 - math.exp(-log))
    return Pair("a@0", "a+x", "a", "x", "unclear", loss, -1, loss + 5, 5, log, log - 0.1, log + 0.1, "")


def test_a_curve_has_the_losses_of_the_table_and_its_sentence_those_of_most_ways():
    swept = partitioned(atoms(), atoms("bert@0", "chase@1", ways=(), sensitivity=()))
    found = answer(swept)
    (curve,) = found.curves  # of bert no partition was tried
    rows = swept.lead_effects("alone", under_partitions=True).query("mix == 'dlrm+stream' and lead_ways.notna()")
    assert [(point.ways, point.loss) for point in curve.points] == [
        (row.lead_ways, row.loss_pct) for row in rows.sort_values("lead_ways").itertuples()
    ]
    most = rows.loc[rows["lead_ways"].astype(int).idxmax(), "loss_pct"]
    assert f"with 8 of the 12 cache ways, {percent(most)}" in curve.sentence
    drawn = curve_drawing(curve)
    assert [mark.x for mark in drawn.marks] == sorted(mark.x for mark in drawn.marks)
    by_loss = sorted(zip(drawn.marks, curve.points, strict=True), key=lambda pair: pair[1].loss)
    assert [mark.y for mark, _ in by_loss] == sorted((mark.y for mark in drawn.marks), reverse=True)
    left, top, right, bottom = drawn.frame
    assert all(left <= mark.x <= right and top <= mark.high <= mark.y <= mark.low <= bottom for mark in drawn.marks)


def test_a_rehearsal_whose_masks_did_nothing_claims_no_ways():
    found = answer(partitioned(atoms(), platform="rehearsed"))
    assert not found.curves
    assert "beside stream" in found.headline
    assert "ways" not in found.headline


def test_what_was_thrown_away_is_counted_from_the_ledgers(tmp_path):
    folder = make(tmp_path / "study", leads=["a"], antagonists=["x"], launches=3)
    for number in (1, 2, 3):
        record(folder, "a-0000abcd", number, ledger={
            "windows": {"alone": 3, "corun": 3}, "rejected": {"corun": 1}, "slices": {"alone": 30, "corun": 30},
            "slices_rejected": {"corun": 2}, "slices_dropped": {"alone": 1},
            "slices_because": {"foreign load": {"corun": 1}, "steal": {"corun": 2}},
        })  # fmt: skip
    lost = thrown_away(read_results(folder))
    assert (lost.slices, lost.rejected, lost.dropped, lost.windows, lost.windows_lost) == (180, 6, 3, 18, 3)
    assert lost.share == pytest.approx(9 / 180)
    assert reasons(lost) == "6 because the hypervisor took the CPU and 3 because other programs ran"
