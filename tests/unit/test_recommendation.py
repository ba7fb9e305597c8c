"""What is recommended: by hand, whatever the numbers are, and how often a mask is recommended that loses too much."""

import math
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.system import system_metrics
from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.analysis.partitions.recommendation import (
    CONFIRMED,
    EXCEEDED,
    MET,
    NO_SWEEP,
    NOT_MET,
    NOT_NEEDED,
    NOT_YET,
    OPEN,
    SEARCH,
    YES,
    pareto_table,
    recommendations,
    undominated,
    worthwhile,
)
from castmates.english import number
from castmates.report.quantity import Quantity
from castmates.report.text.recommendation import Paid, is_advised, paid, sentence
from castmates.results.columns.partitions import KNEES, PARETO
from castmates.results.columns.study import EFFECTS, frame
from castmates.study.scenes import scenes_of
from tests.unit.partition_maker import atoms, made, windows
from tests.unit.printed_intervals import assert_told
from tests.unit.snapshots import assert_as_before

lost = partial(Quantity, unit="%")


def row(partition, ways, loss, high, stage=SEARCH, kept=90.0, launches=5, mix="a+b"):
    low = math.nan if math.isnan(high) else 2 * loss - high
    return {
        "study": "s", "mix": mix, "lead": "a", "antagonists": "b", "partition": partition, "lead_ways": ways,
        "curve": re.sub(rf"^(split|lead)-{ways}", r"\1", partition),
        "lead_bytes": ways * 2.0**20 if ways else math.nan, "stage": stage,
        "source": "s" if stage == SEARCH else "fresh",
        "loss_pct": loss, "loss_low": low, "loss_high": high, "kept_pct": kept, "kept_low": kept - 1,
        "kept_high": kept + 1, "stp": 1.8, "stp_low": 1.7, "stp_high": 1.9, "frontier": False, "launches": launches,
        "refused": 0, "why_refused": "", "design": "", "platform": "modelled", "machine": "",
        "freedom": math.nan if math.isnan(high) else launches - 1,
    }  # fmt: skip


UNMANAGED = row("unmanaged", None, 20.0, 21.0, kept=99.0)
WITHOUT = {"without_pct": 20.0, "without_low": 19.0, "without_high": 21.0,
           "faster": 1.23, "faster_low": 1.21, "faster_high": 1.25}  # fmt: skip


def advised(*rows, limit=3.0):
    """The search alone: what `worthwhile` knows of the loss without a partition is not looked at."""
    (found,) = recommendations(frame([UNMANAGED, *rows], PARETO), limit).assign(cache_ways=12).to_dict("records")
    return found


def splits(*highs):
    """Partitions split-2, split-4 …, whose estimates lie a point below these upper ends."""
    return [row(f"split-{2 * number}", 2 * number, high - 1, high) for number, high in enumerate(highs, start=1)]


def test_a_bound_of_few_nodes_is_wider_than_that_of_as_many_launches():
    """24 launches on four nodes: the interval of the loss has three degrees of freedom, and so has the bound."""
    sweep = [row("split-4", 4, 1.0, 1.5, launches=24), row("cap-4", 4, 1.0, 1.5, launches=24)]  # two kinds
    bounds = [advised(*({**one, "freedom": freedom} for one in sweep))["bound_pct"] for freedom in (23, 3)]
    assert 1.5 < bounds[0] < bounds[1]


def test_the_smallest_mask_whose_upper_end_keeps_the_limit():
    found = advised(*splits(9, 2.9, 2.5, 1))
    assert (found["verdict"], found["partition"], found["lead_ways"]) == (MET, "split-4", 4)
    assert found["bound_pct"] == pytest.approx(2.9)  # of one kind: the upper end of the two-sided interval
    assert (found["confidence"], found["masks"], found["kinds"]) == (0.975, 4, 1)
    assert found["confirmation"] == NOT_YET


def test_the_walk_never_passes_a_mask_that_fails():
    assert advised(*splits(9, 2.9, 3.1, 1))["partition"] == "split-8"
    few = [*splits(9, 2.9, 2.5), row("split-8", 8, 0.1, math.nan, launches=2)]
    assert advised(*few)["partition"] == "split-4"  # two launches show nothing either way


def test_where_nothing_keeps_the_limit_the_nearest_is_told():
    found = advised(*splits(9, 7, 6, 5))
    assert (found["verdict"], found["partition"], found["confirmation"]) == (NOT_MET, "split-8", "")
    assert found["bound_pct"] == pytest.approx(5)
    # A smaller mask that keeps the limit is beyond the one that fails: it misses nothing, and is not the nearest.
    passed = advised(*splits(9, 2.5, 2.4, 3.2))
    assert (passed["verdict"], passed["partition"]) == (NOT_MET, "split-8")


def test_what_is_lacking_is_told():
    assert advised()["verdict"] == NO_SWEEP
    assert advised(row("cap-2", None, 1.0, 1.5))["verdict"] == NO_SWEEP
    assert advised(row("split-4", 4, 1.0, math.nan, launches=2))["verdict"] == TOO_FEW
    assert recommendations(frame([], PARETO), 3.0).empty


def test_kinds_share_the_chance_of_an_error():
    found = advised(*splits(9, 2.0, 1.5), row("split-2-high", 2, 1.0, 1.5))
    assert (found["partition"], found["kinds"], found["masks"]) == ("split-2-high", 2, 4)
    assert found["confidence"] == pytest.approx(1 - 0.025 / 4)
    wider = stats.t.ppf(found["confidence"], 4) / stats.t.ppf(0.975, 4)
    log, high = -math.log(0.99), -math.log(0.985)
    assert found["bound_pct"] == pytest.approx(100 * (1 - math.exp(-log - wider * (high - log))))


@pytest.mark.parametrize(
    ("loss", "high", "launches", "word"),
    [(2.0, 2.9, 3, YES), (2.0, 3.1, 3, UNCLEAR), (5.0, 6.0, 3, EXCEEDED), (2.0, math.nan, 2, TOO_FEW)],
)
def test_fresh_launches_decide(loss, high, launches, word):
    fresh = row("split-4", 4, loss, high, stage=CONFIRMED, launches=launches)
    other = row("split-6", 6, 0.1, 0.2, stage=CONFIRMED)
    found = advised(*splits(9, 2.9, 2.5), fresh, other)
    assert (found["confirmation"], found["confirmed_in"], found["confirmed_launches"]) == (word, "fresh", launches)
    assert found["confirmed_loss_pct"] == loss
    assert found["loss_pct"] == pytest.approx(1.9)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-5, 40), st.floats(0.01, 10)), min_size=1, max_size=11),
    st.floats(0.5, 20),
    st.floats(0.1, 20),
)
def test_a_looser_limit_never_asks_for_more_ways(points, limit, more):
    rows = [row(f"split-{ways}", ways, loss, loss + half) for ways, (loss, half) in enumerate(points, start=1)]
    strict, loose = advised(*rows, limit=limit), advised(*rows, limit=limit + more)
    if strict["verdict"] == MET:
        assert strict["bound_pct"] <= limit
        assert loose["verdict"] == MET
        assert loose["lead_ways"] <= strict["lead_ways"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=15))
def test_the_frontier_is_what_nobody_dominates(points):
    table = frame(
        [row(f"p{place}", 1, float(loss), 9.0, kept=float(kept)) for place, (loss, kept) in enumerate(points)], PARETO
    )
    worse = [
        any(other[0] <= loss and other[1] >= kept and other != (loss, kept) for other in points)
        for loss, kept in points
    ]
    assert undominated(table).tolist() == [not one for one in worse]


def test_what_all_get_done_is_computed_launch_by_launch():
    plan = made(atoms())
    table = windows(plan, noise=0.02)
    table = table[table["scene"] != "alone-again"]
    effects = estimate_effects(plan, table, 0.02)
    found = pareto_table(plan, table, effects).set_index("partition").loc["split-4"]
    logs = []
    for (_, launch), own in table.groupby(["cohort", "launch"]):
        rates = {key: np.log(group["rate"]).mean() for key, group in own.groupby(["scene", "member"])}
        logs.append([rates["corun:dlrm+stream@split-4", member] - rates[scene, member]
                     for member, scene in (("dlrm@0", "alone"), ("stream@1", "antagonist-alone:stream@1"))]
    )  # fmt: skip
        assert launch
    stp = np.log(np.exp(logs).sum(axis=1))
    half = stats.t.ppf(0.975, len(stp) - 1) * stp.std(ddof=1) / math.sqrt(len(stp))
    assert found["stp"] == pytest.approx(math.exp(stp.mean()))
    assert [found["stp_low"], found["stp_high"]] == pytest.approx(
        [math.exp(stp.mean() - half), math.exp(stp.mean() + half)]
    )
    assert found["kept_pct"] == pytest.approx(100 * math.exp(np.mean(logs, axis=0)[1]))
    exact = pareto_table(plan, windows(plan), estimate_effects(plan, windows(plan), 0.02)).set_index("partition")
    assert exact.loc["split-4", "stp"] == pytest.approx(math.exp(-0.18) + math.exp(-0.25))


def test_a_launch_without_a_member_is_left_out_of_what_all_get_done():
    plan = made(atoms())
    table = windows(plan, noise=0.02)
    lost = (table["launch"] == 1) & (table["scene"] == "corun:dlrm+stream@split-4") & (table["member"] == "stream@1")
    table.loc[lost, "valid"] = False
    found = pareto_table(plan, table, estimate_effects(plan, table, 0.02)).set_index("partition")
    rest = table[table["launch"] != 1]
    without = pareto_table(plan, rest, estimate_effects(plan, rest, 0.02)).set_index("partition")
    assert found.loc["split-4", "stp"] == pytest.approx(without.loc["split-4", "stp"])
    assert found.loc["split-4", "stp"] != found.loc["split-2", "stp"]


def test_without_antagonists_alone_no_loss_of_a_lead_changes_and_what_the_others_keep_is_unknown():
    plan = made(atoms())
    table = windows(plan, noise=0.02)
    lean = plan.model_copy(update={"launches": tuple(map(without_antagonists_alone, plan.launches))})
    rest = table[table["kind"] != "antagonist-alone"]
    whole, effects = (estimate_effects(of, own, 0.02) for of, own in ((plan, table), (lean, rest)))
    assert set(effects["role"]) == {"lead"}
    leads = whole[whole["role"] == "lead"].reset_index(drop=True)
    pd.testing.assert_frame_equal(effects, leads, check_exact=True)
    assert system_metrics(lean, rest).empty
    found = pareto_table(lean, rest, effects)
    of_others = [f"{name}{end}" for name in ("kept", "stp") for end in ("_pct", "", "_low", "_high")] + ["frontier"]
    with_others = pareto_table(plan, table, whole)
    pd.testing.assert_frame_equal(*(each.drop(columns=of_others, errors="ignore") for each in (found, with_others)))
    assert found[["kept_pct", "stp"]].isna().all(axis=None)
    said = sentence(recommendations(found, 20.0).iloc[0], "castmates sweep x.yaml --confirm")
    assert "unknown: no launch measured every member both alone and together" in said


def without_antagonists_alone(launch):
    members = {member.name: member for member in launch.cohort.members}
    scenes = scenes_of(launch.cohort.mixes, members, {"antagonist-alone"})
    assert {launch.cohort.lead.name} == {scene.active[0] for scene in scenes}
    return launch.model_copy(update={"cohort": launch.cohort.model_copy(update={"scenes": scenes})})


MIXES, WAYS = 3000, np.arange(1, 12)
CROSSING = -np.log(1 - (0.03 + 0.004 * (6.5 - WAYS)))  # the loss with so many ways: 3 % between 6 and 7
KEPT = 0.8  # by the antagonist


def sweep(stage, rng, launches=5):
    """Simulated: rows of all partitions of two kinds in many mixes; those of a mix share their launches' `alone`."""
    rows = []
    for kind in ("split", "split-high"):
        shape = (MIXES, launches, len(WAYS))
        losses = CROSSING + rng.normal(0, 0.004, (*shape[:2], 1)) + rng.normal(0, 0.006, shape)
        kept = np.log(KEPT) + rng.normal(0, 0.006, shape)
        ends = {}
        logs = {"loss": -losses, "kept": kept, "stp": np.log(np.exp(-losses) + np.exp(kept))}
        for name, (scale, each) in zip(logs, ((-100, logs["loss"]), (100, kept), (1, logs["stp"])), strict=True):
            mean = each.mean(axis=1).ravel()
            half = stats.t.ppf(0.975, launches - 1) * each.std(axis=1, ddof=1).ravel() / math.sqrt(launches)
            values = [scale * np.exp(mean + sign * half) + 100 * (name == "loss") for sign in (-1, 0, 1)]
            low, middle, high = values[::-1] if name == "loss" else values
            ends |= {f"{name}_low": low, name if name == "stp" else f"{name}_pct": middle, f"{name}_high": high}
        names = [f"split-{count}{kind.removeprefix('split')}" for count in WAYS]
        about = {
            "mix": np.repeat(np.arange(MIXES).astype(str), len(WAYS)), "partition": np.tile(names, MIXES),
            "curve": kind, "lead_ways": np.tile(WAYS, MIXES), "launches": launches, "study": "s",
            "lead": "a", "antagonists": "b",
            "platform": "modelled", "machine": "", "stage": stage, "source": stage, "design": "",
            "freedom": launches - 1,
        }  # fmt: skip
        rows.append(pd.DataFrame(about | ends))
    return pd.concat(rows, ignore_index=True).reindex(columns=list(PARETO))


def test_a_mask_that_loses_too_much_is_seldom_recommended():
    """3000 mixes of 5 launches, 11 masks of two kinds, fresh launches of all; the loss crosses 3 % after 6 ways."""
    rng = np.random.default_rng(3)
    table = pd.concat([sweep(SEARCH, rng), sweep(CONFIRMED, rng)], ignore_index=True)
    found = recommendations(table, 3.0)
    wrong = ((found["verdict"] == MET) & (found["lead_ways"] < 7)).mean()
    assert wrong <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / MIXES)
    met = found[found["verdict"] == MET]
    assert len(met) > 0.9 * MIXES
    # Why fresh launches are wanted: the estimate of what was chosen is too good on average; its interval misses more.
    chosen = CROSSING[met["lead_ways"].to_numpy(dtype=int) - 1]
    assert (-np.log1p(-met["loss_pct"] / 100) - chosen).mean() < -0.0005
    truths = {"loss": -100 * np.expm1(-chosen), "kept": 100 * KEPT, "stp": np.exp(-chosen) + KEPT}
    for name, truth in truths.items():
        searched, fresh = (
            ((met[f"{stage}{name}_low"] <= truth) & (truth <= met[f"{stage}{name}_high"])).mean()
            for stage in ("", "confirmed_")
        )
        assert 0.935 <= fresh <= 0.965, name
        assert (0.935 <= searched <= 0.965) if name == "kept" else (0.89 <= searched <= 0.94), name
        assert_told("recommendations", f"{name}_low", searched)
        assert_told("recommendations", f"confirmed_{name}_low", fresh)


@pytest.mark.parametrize(
    ("bare", "judged", "verdict"),
    [
        ((8.0, 9.0, 10.0), "loss", NOT_MET),
        ((1.0, 4.0, 7.0), "loss", OPEN),
        ((3.5, 9.0, 14.0), "unclear", OPEN),
        ((-2.0, -1.0, 0.5), "unclear", NOT_NEEDED),
        ((math.nan, 9.0, math.nan), "too few launches", NOT_MET),
    ],
)
def test_where_no_mask_keeps_the_limit_the_loss_without_one_has_to_be_proven_all_the_same(bare, judged, verdict):
    advice = without(bare, judged)
    assert advice["verdict"] == verdict
    assert (advice["partition"] == "split-4") == (verdict == NOT_MET)


def without(ends, judged):
    """The advice where this is lost without a partition, and no mask keeps the limit."""
    low, loss, high = ends
    bare = {"mix": "a+b", "platform": "modelled", "machine": "", "role": "lead", "baseline": "alone",
            "partition": "unmanaged", "loss_pct": loss, "loss_low": low, "loss_high": high,
            "verdict": judged}  # fmt: skip
    found = recommendations(frame([UNMANAGED, row("split-4", 4, 6.0, 7.0)], PARETO), 3.0)
    (advice,) = worthwhile(found, pd.DataFrame([bare]).reindex(columns=list(EFFECTS))).to_dict("records")
    return advice


def at_knee(knee, *rows):
    """The advice without a limit, where the knee of the splits is at so many ways; None for no knee."""
    found = {"study": "s", "mix": "a+b", "lead": "a", "antagonists": "b", "member": "a@0", "curve": "split",
             "platform": "modelled", "machine": "", "knee": knee, "points": len(rows), "launches": 5, "fewest_ways": 2,
             "most_ways": 8}  # fmt: skip
    knees = frame([found], KNEES)
    return recommendations(frame([UNMANAGED, *rows], PARETO), None, knees).to_dict("records")[0] | WITHOUT


def test_the_sentences():
    """Each is read once, in tests/data/words/recommendation.txt; numbers in them are those of the rows."""
    fresh = row("split-4", 4, 2.2, 2.6, stage=CONFIRMED, launches=6)
    unknown = dict.fromkeys(["kept_low", "kept_high", "stp_low", "stp_high"], math.nan)
    nan, few, loses, wins = lost(math.nan), lost(5.0), lost(17.2, 16.2, 18.2), lost(-2.0, -3.0, -1.0)
    gains, other = row("split-2", 2, -0.3, 0.4), fresh | {"design": "4 rounds, not 3"}
    of_two = row("split-2", 2, 1.0, 2.0, stage=CONFIRMED) | unknown
    advice = {
        "no mask keeps it": (advised(*splits(9, 2.5, 2.4, 3.2)),),
        "a hair": (advised(*splits(3.02)),),
        "more launches may help": (advised(*splits(9, 9, 3.2)),),
        "larger masks fail too": (advised(*splits(9, 3.2, 9, 9)),),
        "kept": (advised(*splits(9, 2.9)),),
        "confirmed": (advised(*splits(9, 2.9), fresh) | WITHOUT, [Paid("b", loses, lost(10.9, 10.2, 11.5))]),
        "refuted": (advised(*splits(9, 2.9), row("split-4", 4, 5.0, 6.0, stage=CONFIRMED)),),
        "unclear": (advised(*splits(9, 2.9), row("split-4", 4, 2.5, 3.5, stage=CONFIRMED)),),
        "two fresh launches": (advised(*splits(9, 2.9), row("split-4", 4, 2.5, math.nan, CONFIRMED, launches=2)),),
        "gains": (advised(gains, row("split-4", 4, -0.3, 0.4, stage=CONFIRMED)), [Paid("b", wins, loses),
                                                                                  Paid("c", loses, wins)]),
        "a confirmed gain": (advised(row("split-2", 2, 1.0, 2.0), gains | {"stage": CONFIRMED, "source": "fresh"}),),
        "unknown prices": (advised(*splits(2.5)), [Paid("b", nan, few), Paid("c", few, nan)]),
        "nothing of the others": (advised(*splits(2.5), of_two | {"kept_pct": math.nan, "stp": math.nan}),),
        "the others without intervals": (advised(*splits(2.5), of_two),),
        "another design": (advised(*splits(9, 2.9), other, other | {"source": "older", "launches": 3, "design": ""}),),
        "not proven": (without((1.0, 4.0, 7.0), "loss"),),
        "not after Holm": (without((3.5, 9.0, 14.0), "unclear"),),
        "not needed": (without((-2.0, -1.0, 0.5), "unclear"),),
        "knee that seems": (at_knee(2, row("split-2", 2, 4.5, 7.0)),),
        "knee": (at_knee(2, row("split-2", 2, 3.5, 4.5)),),
        "no knee": (at_knee(None, row("split-2", 2, 3.0, 4.0), row("split-8", 8, 7.0, 8.0)),),
    }  # fmt: skip
    assert_as_before("recommendation", {name: sentence(one, "cmd", *paid_) for name, (one, *paid_) in advice.items()})


LOSSES = st.tuples(st.floats(-3, 60), st.floats(0.1, 12), st.sampled_from(["loss", "unclear", "no loss"]))
MASKS = st.tuples(st.floats(-3, 60), st.floats(0.1, 12), st.sampled_from(["gain", "gain", "unclear", "loss"]))


@settings(max_examples=60, deadline=None)
@given(LOSSES, st.lists(MASKS, min_size=1, max_size=11), st.lists(st.floats(-5, 50), min_size=1, max_size=2),
       st.sampled_from([None, 3.0, 10.0, 20.0]))  # fmt: skip
def test_no_mask_is_advised_without_a_loss_and_its_price_is_the_tables(bare, masks, prices, limit):
    """Random tables: what is advised gives back a proven loss, and its words have each number of the effects."""
    who = {"mix": "a+b", "platform": "modelled", "machine": "", "lead": "a", "antagonists": "b"}

    def effect(partition, baseline, loss, half, verdict, role="lead", member="a@0"):
        low, high = loss - half, loss + half
        slow = {f"slowdown{end}": 1 / (1 - value / 100) for end, value in (("", loss), ("_low", low), ("_high", high))}
        return who | slow | {"partition": partition, "baseline": baseline, "role": role, "member": member,
                             "loss_pct": loss, "loss_low": low, "loss_high": high,
                             "verdict": verdict}  # fmt: skip

    names = [f"split-{ways}" for ways in range(1, len(masks) + 1)]
    rows = [effect("unmanaged", "alone", *bare)]
    for name, (loss, half, verdict) in zip(names, masks, strict=True):
        rows += [effect(name, "alone", loss, half, "loss"), effect(name, "unmanaged", loss - bare[0], half, verdict)]
    rows += [
        effect(name, "alone", price + place, 1.0, "loss", "antagonist", f"b{number}@{number}")
        for place, name in enumerate(("unmanaged", *names))
        for number, price in enumerate(prices, start=1)
    ]
    effects = pd.DataFrame(rows).reindex(columns=list(EFFECTS))
    search = [row("unmanaged", None, bare[0], bare[0] + bare[1])]
    search += [
        row(name, ways, loss, loss + half)
        for ways, (name, (loss, half, _)) in enumerate(zip(names, masks, strict=True), 1)
    ]
    ways = int(np.argmin([loss for loss, _, _ in masks])) + 1
    counts = {
        "kept_pct": 95.0,
        "knee": ways,
        "fewest_ways": 1,
        "most_ways": len(masks),
        "points": len(masks),
        "launches": 5,
    }
    knees = frame([who | counts | {"study": "s", "curve": "split", "member": "a@0", "verdict": "known"}], KNEES)
    found = recommendations(frame(search, PARETO), limit, knees if limit is None else None)
    (advice,) = worthwhile(found, effects).assign(cache_ways=12).to_dict("records")
    most = limit or 5.0
    said = sentence(advice, "run", paid(advice, effects))
    if not is_advised(advice):
        assert "run" not in said, "there is nothing to confirm"
        return
    assert (bare[2], masks[int(advice["lead_ways"]) - 1][2]) == ("loss", "gain")
    assert bare[0] - bare[1] > most
    assert limit is None or advice["loss_high"] <= limit + 1e-9
    assert limit is not None or advice["lead_ways"] == ways
    for one in effects[
        (effects["role"] == "antagonist") & effects["partition"].isin([advice["partition"], "unmanaged"])
    ].itertuples():
        size = f"{number(abs(one.loss_pct))} %"
        assert size in said, (one.member, one.partition)
    assert len(paid(advice, effects)) == len(prices)
    assert {name for name in names if f"({name}," in said} == {advice["partition"]}
