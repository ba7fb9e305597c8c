"""The parts of a loss: known answers, additivity for whatever was measured, the note where a stage is missing."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.analysis.partitions.attribution_parts import isolating, linked_scenes, rounds
from castmates.study.spec import REST, Partition, Share
from castmates.terminal.preview import isolation
from tests.unit import partition_maker as maker
from tests.unit.windows_maker import cohort, mix, plan, written

SPLITS = (2, 4, 8)
# What `partition_maker.loss` comes to under split-8 and split-4.
TRUE = {
    "split-8": {"total": 0.32, "busy antagonist": 0.02, "not given back": 0.05 + 0.3 / 9, "own smaller share": 0.05,
                "despite own ways": 0.3 / 9, "cache capacity": 0.3 - 0.05 - 0.3 / 9},
    "split-4": {"total": 0.32, "busy antagonist": 0.02, "not given back": 0.16, "own smaller share": 0.1,
                "despite own ways": 0.06, "cache capacity": 0.14},
}  # fmt: skip


def attributed(of, windows, named=None):
    return estimate_attribution(of, windows, 0.02, named)


def by_part(table, column="log"):
    return dict(zip(table["part"], table[column], strict=True))


def without(windows, scene, launches=None):
    """These windows, with those of a scene (in these launches) rejected."""
    gone = windows["scene"].str.match(scene) & (windows["launch"].isin(launches) if launches else True)
    return windows.assign(valid=windows["valid"] & ~gone)


@pytest.mark.parametrize(("named", "how", "choosing"), [(None, "chosen", 2), ("split-4", "named", 0)])
def test_known_losses_are_divided_exactly(named, how, choosing):
    of = maker.made(maker.atoms(ways=SPLITS), launches=5)
    found = attributed(of, maker.windows(of), named)
    partition = named or "split-8"
    assert by_part(found) == pytest.approx(TRUE[partition])
    assert set(found["partition"]) == {partition}
    assert set(found["how"]) == {how}
    assert set(found["launches_choosing"]) == {choosing}
    assert set(found["launches"]) == {5 - choosing}
    assert set(found["rounds"]) == {2 * (5 - choosing)}
    assert set(found["note"]) == {""}
    assert set(found["lead_ways"]) == {int(partition[-1])}
    assert set(found["cache_ways"]) == {12}
    points = by_part(found, "points")
    true = TRUE[partition]
    assert points["total"] == pytest.approx(100 * (1 - math.exp(-true["total"])))
    isolated = true["busy antagonist"] + true["not given back"]
    assert points["cache capacity"] == pytest.approx(100 * (math.exp(-isolated) - math.exp(-true["total"])))
    loss = by_part(found, "loss_pct")
    assert loss["cache capacity"] == pytest.approx(100 * (1 - math.exp(-true["cache capacity"])))


def test_the_interval_of_points_is_that_of_the_linear_part():
    of = maker.made(maker.atoms(ways=(4,)), launches=6)
    windows = maker.windows(of, noise=0.03)
    windows = windows[windows["scene"] != "alone-again"]
    found = attributed(of, windows).set_index("part")
    logs = windows[windows["member"] == maker.LEAD].assign(log=lambda table: np.log(table["rate"]))
    means = logs.groupby(["scene", "launch"])["log"].mean()
    alone, isolated, together = (
        means[f"{name}"] for name in ("alone", "corun:dlrm+stream@split-4", "corun:dlrm+stream")
    )
    before, after = alone - isolated, alone - together
    linear = 100 * (np.exp(-after.mean()) * after - np.exp(-before.mean()) * before)
    half = 2.5705818 * linear.std() / math.sqrt(6)
    row = found.loc["cache capacity"]
    assert row["points"] == pytest.approx(100 * (math.exp(-before.mean()) - math.exp(-after.mean())))
    assert (row["points_low"], row["points_high"]) == pytest.approx((row["points"] - half, row["points"] + half))
    assert found.loc["cache capacity", "how"] == "the only one"


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rejected=st.sampled_from([0.0, 0.1, 0.4]),
    launches=st.integers(1, 7),
    named=st.sampled_from([None, "split-2", "split-9"]),
)
def test_parts_always_add_up(seed, rejected, launches, named):
    rng = np.random.default_rng(seed)
    of = maker.made(maker.atoms(ways=SPLITS), maker.atoms("bert@0", ways=()), launches=launches)
    windows = written(of, lambda *_: None if rng.random() < rejected else math.exp(rng.normal(3, 0.2)))
    found = attributed(of, windows, named)
    assert set(found["mix"]) == {"dlrm+stream", "bert+stream"}
    for _, own in found.groupby("mix"):
        for column in ("log", "points"):
            values = by_part(own, column)
            for whole in set(own["part_of"]) - {""}:
                parts = [values[part] for part in own.loc[own["part_of"] == whole, "part"]]
                assert sum(parts) == pytest.approx(values[whole], abs=1e-10)
        assert own["launches"].nunique() == own["rounds"].nunique() == 1
        assert (own["log_low"].isna() == (own["launches"] < 3)).all()
        assert (own["points_low"].isna() == (own["launches"] < 3)).all()


def test_only_rounds_in_which_everything_was_measured_count():
    of = maker.made(maker.atoms(ways=(4,)), launches=3)
    windows = maker.windows(of, rounds=3)
    lost = windows["valid"] & ~((windows["round"] == 2) & (windows["scene"] == "placebo:1@split-4"))
    found = attributed(of, windows.assign(valid=lost))
    assert set(found["rounds"]) == {6}
    assert by_part(found) == pytest.approx(TRUE["split-4"])


@pytest.mark.parametrize(
    ("scene", "parts", "note"),
    [
        ("placebo:1@split-4", ["total", "busy antagonist", "not given back", "cache capacity"],
         "too few rounds have a valid window beside placebos under split-4"),
        ("placebo:1$", ["total", "antagonist, not given back", "cache capacity"],
         "too few rounds have a valid window beside placebos"),
        (".*split-4$", ["total", "busy antagonist", "sharing"], "too few rounds are complete under split-4"),
        ("alone(-again)?$", ["total"], "no round has a valid window both alone and beside the antagonists"),
    ],
)  # fmt: skip
def test_parts_that_cannot_be_told_apart_are_one(scene, parts, note):
    of = maker.made(maker.atoms(ways=(4,)), launches=4)
    found = attributed(of, without(maker.windows(of), scene))
    assert found["part"].tolist() == parts
    assert set(found["note"]) == {note}
    assert set(found["launches"]) == {0 if parts == ["total"] else 4}
    assert found["platform"].unique().tolist() == ["measured"]
    if "sharing" in parts:
        assert set(found["partition"]) == {""}
        assert by_part(found)["sharing"] == pytest.approx(0.3)


def test_a_mix_without_partitions_has_what_can_be_told():
    of = maker.made([mix(maker.LEAD, maker.STREAM)], launches=3)
    found = attributed(of, maker.windows(of))
    assert by_part(found) == pytest.approx({"total": 0.32, "busy antagonist": 0.02, "sharing": 0.3})
    assert found["note"].iloc[0] == "no partition gives the lead and its antagonists separate ways"
    named = attributed(of, maker.windows(of), "split-4")
    assert named["note"].iloc[0] == "split-4, which the study names, separates no members in this mix"


def test_four_launches_are_too_few_to_choose_and_estimate():
    of = maker.made(maker.atoms(ways=SPLITS), launches=4)
    found = attributed(of, maker.windows(of))
    assert found["part"].tolist() == ["total", "busy antagonist", "sharing"]
    assert set(found["launches"]) == {4}
    assert "takes 5 launches, 2 that choose and 3 others" in found["note"].iloc[0]
    assert set(attributed(of, maker.windows(of), "split-2")["partition"]) == {"split-2"}


def test_enough_launches_without_a_complete_round_under_a_partition_are_told_so():
    of = maker.made(maker.atoms(ways=SPLITS), launches=10)
    found = attributed(of, without(maker.windows(of), "corun.*@split"))
    assert found["note"].iloc[0] == "too few launches have complete rounds under any of 3 partitions"
    assert set(found["launches"]) == {10}


def test_cohorts_of_one_launch_each_choose_together():
    one = maker.atoms(ways=SPLITS)
    of = plan([cohort(f"c{number}", *one) for number in range(5)], launches=1, mixes=one)
    found = attributed(of, maker.windows(of))
    assert set(found["partition"]) == {"split-8"}
    assert (set(found["launches_choosing"]), set(found["launches"])) == ({2}, {3})
    assert "chosen on 2 of 5 launches" in isolation.line(of, None)


def test_nothing_measured_is_no_zero():
    of = maker.made(maker.atoms(ways=SPLITS), launches=5)
    found = attributed(of, maker.windows(of)[:0])
    assert found["part"].tolist() == ["total"]
    assert found["log"].isna().all()
    assert found["verdict"].tolist() == ["no data"]


def test_the_launches_that_choose_do_not_estimate():
    """Where the choosing launches alone show split-2 as best, it is chosen, and the others show what it gives."""
    of = maker.made(maker.atoms(ways=SPLITS), launches=5)
    plain = maker.windows(of)
    _, choosing = isolating(of, *rounds(plain, linked_scenes(mix_contrasts(of))), None)
    assert len(choosing) == 2
    here = plain["launch"].isin(choosing["launch"]) & plain["member"].eq(maker.LEAD)
    better = here & plain["scene"].eq("corun:dlrm+stream@split-2")
    found = attributed(of, plain.assign(rate=plain["rate"].where(~better, plain["rate"] * 10)))
    assert set(found["partition"]) == {"split-2"}
    assert by_part(found)["cache capacity"] == pytest.approx(0.0)


def test_ways_that_are_shared_or_throttled_isolate_nobody():
    one = mix(maker.LEAD, maker.STREAM)
    split = maker.split(4)
    slow = Partition(name="slow", shares=(*split.shares[:1], Share(member=maker.STREAM, ways=0xFF0, bandwidth=20)))
    wide = Partition(name="wide", shares=(split.shares[0], Share(member=maker.STREAM, ways=0xFF8)))
    rest = Partition(name="rest", shares=(split.shares[0], Share(member=REST, ways=0xFF0)))
    of = maker.made([one, *(maker.under(one, each) for each in (slow, wide, rest, maker.capped(2)))], launches=5)
    found = attributed(of, written(of, lambda *_: 10.0))
    assert found["part"].tolist() == ["total", "busy antagonist", "sharing"]
    assert set(found["candidates"]) == {0}


def test_platforms_are_never_mixed():
    of = maker.made(maker.atoms(ways=SPLITS), launches=5)
    both = pd.concat([maker.windows(of, noise=0.01), maker.windows(of, noise=0.01, platform="modelled")])
    found = attributed(of, both)
    alone = attributed(of, maker.windows(of, noise=0.01))
    own = found[found["platform"] == "measured"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, alone)
    assert len(found) == 2 * len(alone)


def test_parts_have_the_flags_of_the_scenes_in_which_they_begin_or_end():
    of = maker.made(maker.atoms(ways=(4,)), launches=9)
    windows = maker.windows(of)
    for scene, parts in {
        "corun:dlrm.stream@split-4$": {"not given back", "despite own ways", "cache capacity"},
        "corun:dlrm.stream$": {"total", "cache capacity"},
        "corun:dlrm.stream@cap-2$": set(),
    }.items():
        lost = without(windows, scene, launches=[1, 2, 3, 4])
        effects = estimate_effects(of, lost, 0.02)
        found = estimate_attribution(of, lost, 0.02, None, effects)
        assert effects["possibly_biased"].any()
        assert set(found.loc[found["possibly_biased"], "part"]) == parts
    assert not attributed(of, windows)["possibly_biased"].any()


def test_partitions_in_other_launches_are_compared_with_the_mix_there():
    one = mix(maker.LEAD, maker.STREAM)
    first = cohort("a", one, *(maker.under(one, maker.split(ways)) for ways in (2, 4)))
    second = cohort("b", maker.under(one, maker.split(8)))
    of = plan([first, second], launches=5)
    found = attributed(of, maker.windows(of))
    assert by_part(found) == pytest.approx(TRUE["split-8"])
    assert set(found["launches"]) == {3}
    assert set(found["launches_choosing"]) == {2}
