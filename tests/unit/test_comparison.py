"""Two studies against each other: analytic cases, what is matched, and whether the intervals hold the truth."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from castmates.analysis.comparison import launches as partitions
from castmates.analysis.comparison.comparison import Side, compare
from castmates.analysis.comparison.launches import shared_launches
from castmates.analysis.statistics.intervals import holm
from castmates.analysis.statistics.welch import welch
from castmates.study.spec import Partition, Share
from tests.unit.partition_maker import alone, made, split, under, windows
from tests.unit.printed_intervals import assert_told
from tests.unit.test_coverage import covers
from tests.unit.windows_maker import Truth, cohort, mix, plan, simulated, written

ONE = plan([cohort("c", mix("dlrm@0", "stream@1"))], launches=5)
MARGIN = 0.02


def side(losses, speed=100.0, platform="measured", of=ONE):
    """A study whose co-run costs, launch by launch, these logarithms."""

    def rate(launch, number, scene, member):
        drift = 0.1 * number
        return speed * math.exp(drift - (losses[launch.number - 1] if scene.startswith("corun") else 0.0))

    launches = tuple(launch for launch in of.launches if launch.number <= len(losses))
    own = of.model_copy(update={"launches": launches})
    return Side(own, written(own, rate, platform=platform))


def row(table, **wanted):
    found = table
    for name, value in wanted.items():
        found = found[found[name] == value]
    assert len(found) == 1
    return found.iloc[0]


LOSSES_A, LOSSES_B = [0.10, 0.12, 0.11, 0.09], [0.20, 0.24, 0.16, 0.19, 0.21]


def test_the_difference_is_welchs():
    table = compare(side(LOSSES_A), side(LOSSES_B, speed=150.0), MARGIN)
    lead = row(table, member="dlrm", baseline="alone")
    wanted = stats.ttest_ind(LOSSES_B, LOSSES_A, equal_var=False)
    low, high = wanted.confidence_interval(0.95)
    assert lead["ratio"] == pytest.approx(math.exp(np.mean(LOSSES_B) - np.mean(LOSSES_A)))
    assert (lead["ratio_low"], lead["ratio_high"]) == pytest.approx((math.exp(low), math.exp(high)))
    assert lead["p_value"] == pytest.approx(wanted.pvalue)
    assert lead["slowdown_a"] == pytest.approx(math.exp(np.mean(LOSSES_A)))
    own = stats.t.interval(0.95, 4, np.mean(LOSSES_B), stats.sem(LOSSES_B))
    assert (lead["slowdown_b_low"], lead["slowdown_b_high"]) == pytest.approx(tuple(np.exp(own)))
    assert (lead["launches_a"], lead["launches_b"], lead["rounds_b"]) == (4, 5, 15)
    assert lead["verdict"] == "loses more in B"


def in_sessions(of, size):
    """The study with so many launches a day."""
    begin = 86_400.0 * ((of.windows["launch"].astype(int) - 1) // size)
    return Side(of.plan, of.windows.assign(started=begin))


@pytest.mark.parametrize("per_day", [3, 1, 5])
def test_from_three_sessions_on_they_are_the_sample_and_not_their_launches(per_day):
    """Nine launches on three days are three values; on nine days nine; 5 and 4 on two days are nine launches."""
    nine = plan([cohort("c", mix("dlrm@0", "stream@1"))], launches=9)
    losses = np.array([0.10, 0.11, 0.09, 0.20, 0.21, 0.22, 0.15, 0.14, 0.16])
    ours = in_sessions(side([0.08, 0.10, 0.12, 0.09, 0.11, 0.10, 0.11, 0.12, 0.07], of=nine), per_day)
    lead = row(compare(ours, in_sessions(side(losses, of=nine), per_day), MARGIN), member="dlrm", baseline="alone")
    values = losses.reshape(3, 3).mean(axis=1) if per_day == 3 else losses
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    assert (lead["slowdown_b_low"], lead["slowdown_b_high"]) == pytest.approx((math.exp(low), math.exp(high)))
    assert (lead["launches_b"], lead["sessions_b"]) == (9, {3: 3, 1: 9, 5: 0}[per_day])
    assert lead["verdict"] == ("unclear" if per_day == 3 else "loses more in B")


def test_hours_that_differ_are_no_difference_between_machines():
    """Studies of one truth, each in four sessions that scatter: one in twenty is judged to differ, and not half."""
    twelve = plan([cohort("c", mix("dlrm@0", "stream@1"))], launches=12)
    dice, judged = np.random.default_rng(7), []
    for _ in range(60):
        each = [np.repeat(dice.normal(0.2, 0.05, 4), 3) + dice.normal(0, 0.01, 12) for _ in "ab"]
        a, b = (in_sessions(side(losses.tolist(), of=twelve), 3) for losses in each)
        judged.append(row(compare(a, b, MARGIN), member="dlrm", baseline="alone")["p_value"] < 0.05)
    assert sum(judged) <= 8


def test_b_may_be_faster_alone_and_slower_beside_others():
    lead = row(compare(side(LOSSES_A), side([0.6, 0.62, 0.61], speed=150.0), MARGIN), member="dlrm", baseline="alone")
    assert lead["baseline_rate_ratio"] == pytest.approx(1.5)
    assert lead["scene_rate_ratio"] == pytest.approx(1.5 * math.exp(np.mean(LOSSES_A) - 0.61))
    assert lead["scene_rate_ratio_high"] < 1 < lead["baseline_rate_ratio_low"]
    assert lead["unit"] == "step"


def test_swapping_turns_every_sign():
    there, back = (
        compare(side(one), side(other), MARGIN) for one, other in ((LOSSES_A, LOSSES_B), (LOSSES_B, LOSSES_A))
    )
    assert there["ratio"].to_numpy() == pytest.approx(1 / back["ratio"].to_numpy())
    assert there["ratio_low"].to_numpy() == pytest.approx(1 / back["ratio_high"].to_numpy())
    assert row(back, member="dlrm", baseline="alone")["verdict"] == "loses less in B"


def test_launches_that_agree_to_the_last_bit_are_equivalent():
    lead = row(compare(side([0.1] * 3), side([0.1] * 4), MARGIN), member="dlrm", baseline="alone")
    assert lead["ratio_low"] == pytest.approx(1) == lead["ratio_high"]
    assert lead["verdict"] == "no difference"


def test_two_launches_are_too_few():
    lead = row(compare(side([0.1, 0.2]), side(LOSSES_B), MARGIN), member="dlrm", baseline="alone")
    assert math.isnan(lead["ratio_low"])
    assert math.isnan(lead["p_value"])
    assert lead["verdict"] == "too few launches"
    assert not math.isnan(lead["ratio"])


def test_platforms_are_never_put_into_one_interval():
    table = compare(side(LOSSES_A), side(LOSSES_B, platform="modelled"), MARGIN)
    assert set(table["where"]) == {"both"}
    assert set(table["verdict"]) == {"platforms differ"}
    for name in ("ratio", "ratio_low", "p_value", "p_holm", "baseline_rate_ratio", "scene_rate_ratio"):
        assert table[name].isna().all(), name
    assert table["slowdown_a"].notna().all()
    assert set(table["platform_b"]) == {"modelled"}


def test_units_that_differ_have_no_ratio_of_rates():
    other = side(LOSSES_B)
    other = Side(other.plan, other.windows.assign(unit="query"))
    lead = row(compare(side(LOSSES_A), other, MARGIN), member="dlrm", baseline="alone")
    assert lead["unit"] == ""
    assert math.isnan(lead["baseline_rate_ratio"])
    assert not math.isnan(lead["ratio"])


def test_what_only_one_has_is_told():
    two = plan([cohort("c", mix("dlrm@0", "stream@1"), mix("dlrm@0", "chase@1"))], launches=3)
    table = compare(side([0.1] * 3, of=two), side([0.1] * 3), MARGIN)
    assert set(table.loc[table["where"] == "only in A", "mix"]) == {"dlrm+chase"}
    assert set(table.loc[table["where"] == "both", "mix"]) == {"dlrm+stream"}
    assert set(table.loc[table["where"] == "only in A", "verdict"]) == {"only in one"}


def test_members_are_matched_without_their_cpus():
    moved = plan([cohort("other", mix("dlrm@3", "stream@4", "stream@5"))], launches=3)
    here = plan([cohort("c", mix("dlrm@0", "stream@1", "stream@2"))], launches=3)
    table = compare(side([0.1] * 3, of=here), side([0.1] * 3, of=moved), MARGIN)
    assert set(table["where"]) == {"both"}
    assert set(table["member"]) == {"dlrm", "stream", "stream#2"}


def test_holm_is_taken_over_the_rows_of_a_baseline():
    two = plan([cohort("c", mix("dlrm@0", "stream@1"), mix("dlrm@0", "chase@1"))], launches=5)
    rng = np.random.default_rng(1)
    noisy = [Side(two, written(two, lambda *_: math.exp(rng.normal(0, 0.02)))) for _ in range(2)]
    table = compare(*noisy, MARGIN)
    for baseline, own in table.groupby("baseline"):
        assert own["p_holm"].to_numpy() == pytest.approx(holm(own["p_value"])), baseline


def sweep(*shares):
    one = mix("dlrm@0", "stream@1")
    return made([one, *(under(one, share) for share in shares)], launches=3)


def test_quotas_of_other_amounts_are_other_partitions():
    def quota(percent, name):
        return Partition(name=name, shares=(Share(member="stream@1", quota=percent, period=10),))

    ours = partitions.gifts(sweep(quota(25, "quota-25"), quota(50, "quota-50")))
    theirs = partitions.gifts(sweep(quota(50, "half")))
    assert [(match.a, match.b) for match in partitions.matches(ours, theirs)] == [("quota-50", "half")]
    assert "50 % of its CPUs' time in each 10 ms" in partitions.gift_words(theirs["dlrm+stream", "half"])


def test_partitions_are_matched_by_name_and_by_what_they_give():
    renamed = split(4).model_copy(update={"name": "mine"})
    other = split(3).model_copy(update={"name": "split-2"})
    a, b = sweep(split(2), split(4)), sweep(other, renamed)
    table = compare(Side(a, windows(a)), Side(b, windows(b)), MARGIN)
    lead = table[(table["member"] == "dlrm") & (table["baseline"] == "alone")].set_index("partition_a")
    assert set(table["where"]) == {"both"}
    ways = lead.loc["split-2", ["partition_b", "masks", "lead_ways_a", "lead_ways_b"]].tolist()
    assert ways == ["split-2", "differ", 2, 3]
    assert lead.loc["split-4", ["partition_b", "masks"]].tolist() == ["mine", "same"]
    assert lead.loc["unmanaged", "masks"] == ""


def test_a_partition_is_matched_once():
    gift = {("m", "x"): (("dlrm", "0x1"),)}
    twice = {("m", "y"): (("dlrm", "0x1"),), ("m", "z"): (("dlrm", "0x1"),)}
    assert [match.b for match in partitions.matches(gift, twice)] == ["y"]
    assert len(partitions.matches(twice, gift)) == 1
    assert not partitions.matches(gift, {("other", "x"): (("dlrm", "0x1"),)})


def test_a_lead_alone_under_partitions_is_a_question_too():
    bare = mix("dlrm@0").model_copy(update={"name": "dlrm"})
    of = made([mix("dlrm@0", "stream@1"), under(bare, alone(2))], launches=3)
    table = compare(Side(of, windows(of)), Side(of, windows(of)), MARGIN)
    assert row(table, mix="dlrm", baseline="alone")["lead_ways_b"] == 2


def record(number, started="t", platform="measured", seed=1):
    spec = {"cohort": {"id": "c"}, "number": number, "seed": seed}
    return {"host": "h", "boot_id": "b", "started": started, "platform": platform, "spec": spec}


def test_launches_in_both_are_found():
    assert shared_launches([record(1), record(2)], [record(2), record(3)]) == ["c/2"]
    assert not shared_launches([record(1)], [record(1, started="later")])
    modelled = [
        record(1, started=when, platform="modelled", seed=seed) for when, seed in (("t", 1), ("u", 1), ("t", 2))
    ]
    assert shared_launches(modelled[:1], modelled[1:2]) == ["c/1"]  # the same noise, modelled twice
    assert not shared_launches(modelled[:1], modelled[2:])


samples = st.lists(st.floats(-1, 1), min_size=3, max_size=8)


@settings(deadline=None, max_examples=30)
@given(samples, samples, st.floats(-2, 2))
def test_welch_is_anchored_and_antisymmetric(one, other, shift):
    frames = [
        pd.DataFrame({"mean": [np.mean(values)], "variance": [np.var(values, ddof=1)], "launches": [len(values)]})
        for values in (one, other)
    ]
    there, back = welch(*frames).iloc[0], welch(*reversed(frames)).iloc[0]
    assert there["mean"] == pytest.approx(-back["mean"])
    assert there["low"] == pytest.approx(-back["high"])
    assert there["p_value"] == pytest.approx(back["p_value"])
    assert there["low"] <= there["mean"] <= there["high"]
    moved = [frame.assign(mean=frame["mean"] + shift) for frame in frames]
    assert welch(*moved).iloc[0]["mean"] == pytest.approx(there["mean"], abs=1e-9)


QUIET = Truth(launch=0.02, interaction=0.015, noise=0.01)
NOISY = Truth(launch=0.03, interaction=0.04, noise=0.03, rejected=0.05, corun=0.15)


@pytest.mark.parametrize(("few", "many"), [(3, 8), (5, 5)])
def test_the_intervals_hold_the_truth(few, many):
    """Simulated studies, through the very function: unequal launches and unequal noise, with drift."""
    a, b = simulated(QUIET, 800, few, 3, seed=11 + few), simulated(NOISY, 800, many, 3, seed=12 + many)
    table = compare(Side(a.plan, a.windows), Side(b.plan, b.windows), MARGIN)
    for role, baseline, truth in (("lead", "alone", 0.05), ("lead", "placebo", 0.05), ("antagonist", "alone", 0.05)):
        own = table[(table["role"] == role) & (table["baseline"] == baseline)]
        found = {"ratio": covers(own["ratio_low"], own["ratio_high"], math.exp(truth))}
        for letter, of in (("a", QUIET), ("b", NOISY)):
            lost = of.corun - (of.placebo if baseline == "placebo" else 0.0)
            ends = own[f"slowdown_{letter}_low"], own[f"slowdown_{letter}_high"]
            found[f"slowdown_{letter}"] = covers(*ends, math.exp(lost))
        for name, share in found.items():
            assert 0.925 <= share <= 0.975, (baseline, name)
            assert_told("comparison", f"{name}_low", share)


def test_the_intervals_of_rates_hold_the_truth_where_nothing_drifts():
    still = [
        Truth(launch=launch, interaction=0.015, noise=0.01, walk=0.0, trend=0.0, corun=corun)
        for launch, corun in ((0.02, 0.10), (0.04, 0.15))
    ]
    a, b = (
        simulated(truth, 800, launches, 2, seed=21 + launches) for truth, launches in zip(still, (5, 4), strict=True)
    )
    table = compare(Side(a.plan, a.windows), Side(b.plan, b.windows), MARGIN)
    alone = table[(table["baseline"] == "alone") & (table["role"] == "lead")]
    for name, truth in (("baseline", 0.0), ("scene", -0.05)):
        ends = alone[f"{name}_rate_ratio_low"], alone[f"{name}_rate_ratio_high"]
        share = covers(*ends, math.exp(truth))
        assert 0.925 <= share <= 0.975, name
        assert_told("comparison", f"{name}_rate_ratio_low", share)


def test_equal_losses_are_seldom_called_different():
    a, b = (simulated(QUIET, 1000, 5, 3, seed=seed) for seed in (31, 32))
    table = compare(Side(a.plan, a.windows), Side(b.plan, b.windows), MARGIN)
    raw = table.loc[(table["baseline"] == "alone") & (table["role"] == "lead"), "p_value"]
    assert 0.035 <= float((raw < 0.05).mean()) <= 0.065
    assert not (table["p_holm"] < 0.05).mean() > 0.001


def test_a_difference_as_large_as_the_margin_is_seldom_called_none():
    still = Truth(launch=0.02, interaction=0.004, noise=0.003, walk=0.0005)
    larger = Truth(launch=0.02, interaction=0.006, noise=0.003, walk=0.0005, corun=still.corun + math.log1p(MARGIN))
    a, same = (simulated(still, 400, 5, 2, seed=seed) for seed in (41, 42))
    beyond = simulated(larger, 400, 4, 2, seed=43)

    def share(of):
        table = compare(Side(a.plan, a.windows), Side(of.plan, of.windows), MARGIN)
        own = table[(table["baseline"] == "alone") & (table["role"] == "lead")]
        return float((own["verdict"] == "no difference").mean())

    assert share(same) > 0.9  # or the next line would show nothing
    assert share(beyond) <= 0.045  # 2.5 % by its construction
