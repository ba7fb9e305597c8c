"""The table of effects: exact on numbers worked out by hand, and unmoved by what must not matter."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.effects.contrasts import control_contrasts, rejection_columns
from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.statistics.pairs import TWIN, log_rates, tally, whole_alone
from castmates.errors import CastmatesError
from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.study import EFFECTS, frame
from tests.unit.windows_maker import cohort, mix, plan, written

LEAD, STREAM, CHASE = "dlrm@0", "stream@1", "chase@2"
ONE = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=3)
NUMBERS = ["slowdown", "slowdown_low", "slowdown_high", "within_low", "within_high", "p_value", "p_holm"]


def simple(launch, number, scene, member):
    """The co-run halves the lead in every round of every launch, the placebo costs a fifth, the antagonist a third."""
    if member == LEAD:
        return {"corun": 50.0, "placebo": 80.0}.get(scene.partition(":")[0], 100.0)
    return 60.0 if scene.startswith("antagonist-alone:") else 40.0


def uneven(seed=1):
    rng = np.random.default_rng(seed)
    return lambda launch, number, scene, member: simple(launch, number, scene, member) * math.exp(rng.normal(0, 0.05))


def effects(windows, of=ONE, margin=0.02):
    return estimate_effects(of, windows, margin)


def row(table, baseline, member=LEAD):
    return table[(table["baseline"] == baseline) & (table["member"] == member)].iloc[0]


def test_columns_and_types_are_the_promised_ones_also_without_windows():
    for table in (effects(written(ONE, simple)), effects(frame([], WINDOWS))):
        assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(EFFECTS)


def test_slowdown_against_each_baseline():
    table = effects(written(ONE, simple))
    assert table["baseline"].tolist() == ["alone", "placebo", "alone"]
    assert table["slowdown"].tolist() == pytest.approx([2.0, 1.6, 1.5])
    assert table["loss_pct"].tolist() == pytest.approx([50.0, 37.5, 100 / 3])
    assert table["member"].tolist() == [LEAD, LEAD, STREAM]
    assert set(table["verdict"]) == {"loss"}
    first = table.iloc[0]
    assert first[["lead", "antagonists", "role", "mix"]].tolist() == ["dlrm", "stream", "lead", "dlrm+stream"]
    assert (first["launches"], first["rounds"], first["windows_valid"], first["windows_rejected"]) == (3, 9, 9, 0)


def test_headline_interval_by_hand():
    losses = {1: 0.1, 2: 0.2, 3: 0.3}

    def rate(launch, number, scene, member):
        return math.exp(-losses[launch.number]) if scene.startswith("corun") else 1.0

    found = row(effects(written(ONE, rate)), "alone")
    half = 4.302652729696142 * 0.1 / math.sqrt(3)
    assert found["slowdown"] == pytest.approx(math.exp(0.2))
    assert found["slowdown_low"] == pytest.approx(math.exp(0.2 - half))
    assert found["slowdown_high"] == pytest.approx(math.exp(0.2 + half))
    assert found["loss_high"] == pytest.approx(100 * (1 - math.exp(-0.2 - half)))
    assert found["within_low"] == pytest.approx(math.exp(0.2)), "rounds agree, so nothing is uncertain within launch"


@pytest.mark.parametrize(("lost", "alone"), [("", 100 * 2**0.25), ("alone-again", 100.0), ("alone", 200.0)])
def test_both_scenes_alone_are_the_baseline_each_by_how_long_it_was_open(lost, alone):
    def rate(launch, number, scene, member):
        if scene == lost:
            return None
        return 200.0 if scene == "alone-again" else simple(launch, number, scene, member)

    windows = written(ONE, rate).assign(open_s=1.0)
    windows.loc[windows["scene"] == "alone", "open_s"] = 3.0
    assert row(effects(windows), "alone")["slowdown"] == pytest.approx(alone / 50)


def test_the_baseline_has_nothing_in_common_with_the_control_that_is_its_noise():
    """`alone` has two slices where its twin has one, so half its variance: independent noise then shows no relation."""
    many = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=2000)
    noise = np.random.default_rng(20261130)
    rates = {"alone": math.sqrt(0.5), "alone-again": 1.0}
    windows = written(many, lambda _launch, _round, scene, _: math.exp(0.01 * rates.get(scene, 0) * noise.normal()), 1)
    windows["open_s"] = windows["scene"].map({"alone": 2.0}).fillna(1.0)
    logs = log_rates(windows[windows["member"] == LEAD])
    baseline = whole_alone(logs).query("scene == 'alone'").set_index("launch")["log_rate"]
    first, again = (logs[logs["scene"] == scene].set_index("launch")["log_rate"] for scene in rates)
    assert abs(np.corrcoef(baseline, first - again)[0, 1]) < 0.08
    assert baseline.var() == pytest.approx(first.var() * 2 / 3, rel=0.1)


def test_each_mix_has_the_placebo_of_its_own_cpus():
    both = plan([cohort("dlrm-1", mix(LEAD, STREAM), mix(LEAD, STREAM, CHASE))], launches=3)
    placebos = {"placebo:1": 90.0, "placebo:1-2": 60.0}

    def rate(launch, number, scene, member):
        return placebos.get(scene, 50.0 if scene.startswith("corun") and member == LEAD else 100.0)

    table = effects(written(both, rate), both)
    found = table[table["baseline"] == "placebo"].set_index("mix")["slowdown"]
    assert found["dlrm+stream"] == pytest.approx(1.8)
    assert found["dlrm+stream+chase"] == pytest.approx(1.2)
    assert table.loc[table["mix"] == "dlrm+stream+chase", "member"].tolist() == [LEAD, LEAD, STREAM, CHASE]


def test_rejected_windows_break_their_pair_and_are_counted():
    def rate(launch, number, scene, member):
        if (launch.number, number) == (1, 2) and scene.startswith("corun"):
            return None
        if (launch.number, number) == (2, 1) and scene in ("alone", "alone-again"):
            return None
        return simple(launch, number, scene, member)

    table = effects(written(ONE, rate))
    alone, placebo = row(table, "alone"), row(table, "placebo")
    assert (alone["launches"], alone["rounds"]) == (3, 7)
    assert (alone["windows_valid"], alone["windows_rejected"]) == (8, 1)
    # The baseline is both scenes alone.
    assert (alone["baseline_windows_valid"], alone["baseline_windows_rejected"]) == (16, 2)
    assert (placebo["rounds"], placebo["baseline_windows_rejected"]) == (8, 0)
    assert alone["slowdown"] == pytest.approx(2.0)
    # The A/A control compares these two, so that each is counted by itself.
    controls = control_contrasts(ONE)
    apart = controls.loc[controls["scene"] == TWIN, "row"].iloc[0]
    counted = tally(written(ONE, rate), controls).loc[apart].iloc[0]
    assert counted[["windows_valid", "baseline_windows_valid"]].tolist() == [8, 8]


@pytest.mark.parametrize(
    ("lost", "base_lost", "biased"),
    [
        (0, 0, False),
        (6, 0, True),
        (2, 0, False),  # 10 points more, but chance gives as much in one case of nine
        (8, 5, False),
        (0, 6, False),  # the other way round nothing slow was lost
    ],
)
def test_a_scene_that_is_rejected_more_often_than_its_baseline_is_flagged(lost, base_lost, biased):
    more = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=4)

    def rate(launch, number, scene, member):
        place = (launch.number - 1) * 5 + number
        if (scene.startswith("corun") and place <= lost) or (scene == "alone-again" and place <= 2 * base_lost):
            return None
        return simple(launch, number, scene, member)

    found = row(effects(written(more, rate, rounds=5), more), "alone")
    assert (found["rejection_rate"], found["baseline_rejection_rate"]) == (lost / 20, 2 * base_lost / 40)
    assert found["possibly_biased"] == biased


@pytest.mark.parametrize(("lost", "kept", "few", "enough"), [
    ("slices_lost_alone", "slices_kept", 150, 250), ("windows_spoilt", "windows_valid", 400, 600),
])  # fmt: skip
def test_however_many_there_are_a_small_difference_is_no_flag(lost, kept, few, enough):
    def flagged(count):
        return rejection_columns(counts({kept: 10_000 - count, lost: count, f"baseline_{kept}": 10_000}))

    assert not flagged(few)["possibly_biased"][0]
    assert flagged(enough)["possibly_biased"][0]


def test_slices_that_go_with_their_window_are_one_event():
    one_window = {"slices_kept": 96, "slices_lost": 12, "windows_valid": 8, "windows_rejected": 1, "windows_spoilt": 1}
    base = {"baseline_slices_kept": 108, "baseline_windows_valid": 9}
    found = rejection_columns(counts(one_window | base))
    assert not found["possibly_biased"][0]
    assert found["rejection_rate"][0] == pytest.approx(12 / 108)
    alone = {"slices_kept": 96, "slices_lost": 12, "slices_lost_alone": 12, "windows_valid": 9}
    assert rejection_columns(counts(alone | base))["possibly_biased"][0]


def counts(known):
    """What `tally` counts, of one row; zero unless it is given."""
    names = ("slices_kept", "slices_lost", "slices_lost_alone", "windows_valid", "windows_rejected", "windows_spoilt")
    return pd.DataFrame([dict.fromkeys([f"{side}{name}" for side in ("", "baseline_") for name in names], 0) | known])


def test_a_window_of_too_few_cycles_loses_its_own_slices_alone():
    windows = written(ONE, simple)
    broken = windows["round"] == 1
    windows.loc[broken, ["valid", "slices", "reason_kinds"]] = [False, 12, "too few cycles"]
    windows.loc[broken, "slices_rejected"] = np.where(windows.loc[broken, "kind"] == "corun", 7, 0)
    found = row(effects(windows), "alone")
    assert found["baseline_rejection_rate"] == 0
    assert found["rejection_rate"] > 0
    assert found["possibly_biased"]


@pytest.mark.parametrize("useless", [0.0, math.nan, math.inf, ""])
def test_windows_without_a_rate_make_no_pair(useless):
    def rate(launch, number, scene, member):
        return useless if number == 1 and scene.startswith("corun") else simple(launch, number, scene, member)

    found = row(effects(written(ONE, rate)), "alone")
    assert (found["rounds"], found["slowdown"]) == (6, pytest.approx(2.0))


def test_a_missing_scene_is_no_data_not_no_effect():
    def rate(launch, number, scene, member):
        return "" if scene == "placebo:1" else simple(launch, number, scene, member)

    found = row(effects(written(ONE, rate)), "placebo")
    assert (found["verdict"], found["launches"], found["rounds"], found["windows_valid"]) == ("no data", 0, 0, 9)
    assert np.isnan(found["slowdown"])


def test_a_failed_launch_leaves_the_others():
    windows = written(ONE, simple)
    assert row(effects(windows[windows["launch"] != 2]), "alone")["verdict"] == "too few launches"
    more = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=4)
    windows = written(more, uneven())
    found = row(effects(windows[windows["launch"] != 2], more), "alone")
    assert found["launches"] == 3
    assert found["verdict"] == "loss"


@pytest.mark.parametrize("launches", [1, 2])
def test_below_three_launches_only_the_launches_speak(launches):
    few = plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=launches)
    found = row(effects(written(few, uneven()), few), "alone")
    assert found["verdict"] == "too few launches"
    assert np.isnan([found["slowdown_low"], found["slowdown_high"], found["p_value"], found["p_holm"]]).all()
    assert found["within_low"] < found["slowdown"] < found["within_high"]


def test_a_study_without_any_window_has_its_rows():
    table = effects(frame([], WINDOWS))
    assert table["verdict"].tolist() == ["no data"] * 3
    assert table["platform"].tolist() == [""] * 3
    assert table["rejection_rate"].isna().all()
    assert not table["possibly_biased"].any()


def test_the_same_name_with_another_identity_is_left_out():
    old, new = mix(LEAD, STREAM, identity="old"), mix(LEAD, STREAM, identity="new")
    other = mix(LEAD, CHASE)
    # The old cohort lives on for its other mix.
    edited = plan([cohort("a", old, other), cohort("b", new)], launches=3, mixes=[new, other])

    def rate(launch, number, scene, member):
        return (
            1.0 if launch.cohort.id == "a" and scene == "corun:dlrm+stream" else simple(launch, number, scene, member)
        )

    table = effects(written(edited, rate), edited)
    assert set(table["mix"]) == {"dlrm+stream", "dlrm+chase"}
    found = table[(table["mix"] == "dlrm+stream") & (table["baseline"] == "alone")].iloc[0]
    assert (found["launches"], found["slowdown"]) == (3, pytest.approx(2.0))


def test_launches_that_the_plan_forgot_are_left_out():
    gone = written(plan([cohort("gone", mix(LEAD, STREAM))], launches=3), lambda *_: 1.0)
    later = written(plan([cohort("dlrm-1", mix(LEAD, STREAM))], launches=4), lambda *_: 1.0)
    table = effects(pd.concat([written(ONE, simple), gone, later[later["launch"] == 4]]))
    assert (row(table, "alone")["slowdown"], row(table, "alone")["windows_valid"]) == (pytest.approx(2.0), 9)


def test_a_mix_spread_over_cohorts_is_pooled():
    shared = mix(LEAD, STREAM)
    spread = plan([cohort("a", shared, mix(LEAD, CHASE)), cohort("b", shared)], launches=2, mixes=[shared])
    found = row(effects(written(spread, simple), spread), "alone")
    assert (found["launches"], found["rounds"]) == (4, 12)


def test_what_nobody_has_measured_is_on_no_platform_where_there_are_several():
    both = plan([cohort("dlrm-1", mix(LEAD, STREAM)), cohort("dlrm-2", mix(LEAD, CHASE))], launches=3)
    known = written(both, simple)
    known = known[known["cohort"] == "dlrm-1"]
    for platforms, expected in ((["measured"], "measured"), (["measured", "modelled"], "")):
        found = effects(pd.concat([known.assign(platform=name) for name in platforms]), both)
        silent = found[found["mix"] == "dlrm+chase"]
        assert len(silent) > 0
        assert set(silent["platform"]) == {expected}
        assert set(silent["verdict"]) == {"no data"}


def test_platforms_are_never_pooled():
    windows = pd.concat(
        [written(ONE, simple), written(ONE, lambda *place: 2 * simple(*place) ** 2, platform="modelled")]
    )
    found = effects(windows)
    alone = found[(found["baseline"] == "alone") & (found["role"] == "lead")].set_index("platform")
    assert alone.loc["measured", "slowdown"] == pytest.approx(2.0)
    assert alone.loc["modelled", "slowdown"] == pytest.approx(4.0)
    assert (alone["launches"] == 3).all()
    assert alone.loc["measured", "p_holm"] == effects(written(ONE, simple)).iloc[0]["p_holm"]


def test_a_launch_given_twice_is_an_error():
    windows = written(ONE, simple)
    with pytest.raises(
        CastmatesError, match=r"dlrm-1/1 has two valid windows of dlrm@0 for the scene alone in round 1"
    ):
        effects(pd.concat([windows, windows]))


def test_holm_counts_the_rows_of_one_baseline():
    many = plan([cohort("dlrm-1", *(mix(LEAD, f"a{cpu}@{cpu}") for cpu in range(1, 6)))], launches=4)
    table = effects(written(many, uneven()), many)
    for baseline in ("alone", "placebo", "alone"):
        family = table[table["baseline"] == baseline]
        smallest = family["p_value"].idxmin()
        assert family.loc[smallest, "p_holm"] == pytest.approx(min(1, 5 * family.loc[smallest, "p_value"]))


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ((0.1, 0.11, 0.12), "loss"),
        ((-0.1, -0.11, -0.12), "gain"),
        ((0.001, -0.001, 0.002), "no loss"),
        ((0.0100, 0.0101, 0.0102), "loss"),  # small, but certain
        ((0.1, -0.1, 0.05), "unclear"),
    ],
)
def test_verdicts(losses, verdict):
    def rate(launch, number, scene, member):
        return math.exp(-losses[launch.number - 1]) if scene.startswith("corun") else 1.0

    assert row(effects(written(ONE, rate)), "alone")["verdict"] == verdict


@given(seed=st.integers(0, 10_000), factors=st.lists(st.floats(0.01, 100), min_size=3, max_size=3))
@settings(max_examples=8, deadline=None)
def test_unmoved_by_order_scale_and_rejected_windows(seed, factors):
    windows = written(ONE, uneven(seed))
    expected = effects(windows)[NUMBERS].to_numpy()
    changed = windows.assign(rate=windows["rate"] * windows["launch"].map(dict(enumerate(factors, start=1))))
    # A window that was rejected has its own place or that of the window which replaced it.
    rejected = windows.sample(frac=0.3, random_state=seed).assign(rate=123.0, valid=False)
    changed = pd.concat([changed, rejected]).sample(frac=1, random_state=seed)
    assert effects(changed)[NUMBERS].to_numpy() == pytest.approx(expected, rel=1e-6)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_swapping_scene_and_baseline_gives_the_reciprocal(seed):
    windows = written(ONE, uneven(seed))
    windows = windows[windows["scene"] != "alone-again"]
    swap = {"alone": "corun:dlrm+stream", "corun:dlrm+stream": "alone"}
    swapped = windows.assign(scene=windows["scene"].replace(swap))
    there, back = row(effects(windows), "alone"), row(effects(swapped), "alone")
    assert there["slowdown"] == pytest.approx(1 / back["slowdown"])
    assert there["slowdown_low"] == pytest.approx(1 / back["slowdown_high"])
    assert there["within_high"] == pytest.approx(1 / back["within_low"])
    assert there["p_value"] == pytest.approx(back["p_value"])
