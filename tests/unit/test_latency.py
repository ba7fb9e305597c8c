"""Quantiles of step latency over launches: what is given, what is refused and why, and whether intervals cover."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castmates.analysis.explanations.evolution import quantiles
from castmates.analysis.explanations.services import latencies
from castmates.analysis.statistics.intervals import estimate
from castmates.results.columns.launch import STEPS
from castmates.results.columns.study import frame
from tests.unit.windows_maker import cohort, mix, plan, written

MIX = plan([cohort("c", mix("bert@0", "stream@1"))], launches=4)
MS = {"alone": 10, "alone-again": 10, "placebo:1": 11, "antagonist-alone:stream@1": 2, "corun:bert+stream": 15}


def heartbeats(windows, length, count=lambda _: 140, units=lambda *_: 1):
    """Beats of every window: so many steps, of a length by scene and launch in ns."""
    parts = []
    for row in windows.to_dict("records"):
        n = count(row["launch"])
        done = np.cumsum([units(row, place) for place in range(n + 1)])
        times = row["window"] * 10**12 + np.arange(n + 1) * length(row)
        place = {name: row[name] for name in ("study", "cohort", "launch", "window", "member", "platform")}
        place["slice"] = row["window"]
        parts.append(frame([place | {"t_ns": t, "units": u} for t, u in zip(times, done, strict=True)], STEPS))
    return pd.concat(parts, ignore_index=True)


def table(length=lambda row: MS[row["scene"]] * 10**6, rounds=2, **how):
    windows = written(MIX, lambda *_: 1.0, rounds=rounds)
    beats = heartbeats(windows, length, **how)
    cut = int((beats["launch"] <= 2).sum())
    return latencies(MIX, windows, [beats[:cut], beats[cut:]]).set_index(["member", "scene", "quantile"])


def test_each_scene_has_its_latency_and_the_ratio_to_its_baseline():
    found = table()
    assert found.index.get_level_values("scene").unique().tolist() == [
        "alone", "placebo:1", "corun:bert+stream", "antagonist-alone:stream@1",
    ]  # fmt: skip
    lead = found.loc["bert@0", "corun:bert+stream", "p50"]
    assert (lead["ms"], lead["ratio"], lead["baseline"]) == (pytest.approx(15), pytest.approx(1.5), "alone")
    assert (lead["launches"], lead["launches_paired"], lead["steps"], lead["mix"]) == (4, 4, 4 * 280, "bert+stream")
    assert found.loc[("stream@1", "corun:bert+stream", "p95"), "ratio"] == pytest.approx(7.5)
    alone = found.loc["bert@0", "alone", "p50"]
    assert (alone["baseline"], alone["launches_paired"], alone["mix"]) == ("", 0, "")
    assert np.isnan(alone["ratio"])
    assert found.loc[("bert@0", "placebo:1", "p50"), "ratio"] == pytest.approx(1.1)


def test_launches_are_the_units():
    lengths = {1: 10.0, 2: 11.0, 3: 12.0, 4: 11.0}
    found = table(lambda row: int(lengths[row["launch"]] * MS[row["scene"]] * 10**5))
    logs = np.log([lengths[launch] for launch in (1, 2, 3, 4)])
    low, high = stats.ttest_1samp(logs, 0).confidence_interval()
    row = found.loc["bert@0", "alone", "p95"]
    assert (row["ms"], row["ms_low"], row["ms_high"]) == pytest.approx(tuple(np.exp([logs.mean(), low, high])))
    corun = found.loc["bert@0", "corun:bert+stream", "p95"]  # what launches have in common drops out of the ratio
    assert (corun["ratio_low"], corun["ratio_high"]) == pytest.approx((1.5, 1.5))


def test_too_few_steps_are_refused_with_a_sentence():
    found = table()  # 280 steps in a launch
    row = found.loc["bert@0", "alone", "p99"]
    assert row["refused"] == "p99 needs 368 steps in a launch; the most that one has is 280"
    assert row[["ms", "ms_low", "ratio"]].isna().all()
    assert (row["launches"], row["launches_few"], row["steps_needed"]) == (0, 4, 368)
    assert table(rounds=3).loc[("bert@0", "alone", "p99"), "refused"] == ""


def test_where_many_launches_have_too_few_the_others_are_no_fair_sample():
    found = table(rounds=1, count=lambda launch: 10 if launch == 1 else 90)
    assert found.loc[("bert@0", "alone", "p95"), "refused"] == ("p95 needs 72 steps in a launch; 1 of 4 have fewer")
    assert found.loc[("bert@0", "alone", "p50"), "refused"] == ""


def test_members_whose_beats_cover_varying_units_have_no_steps():
    found = table(units=lambda row, place: 1 + place % 3 if row["member"] == "bert@0" else 5)
    assert "different numbers of units" in found.loc[("bert@0", "alone", "p50"), "refused"]
    row = found.loc["stream@1", "antagonist-alone:stream@1", "p50"]
    assert (row["refused"], row["units"], row["unit"]) == ("", 5, "step")


def test_launches_whose_steps_cover_different_units_are_not_averaged():
    found = table(units=lambda row, _: 8 if row["member"] == "bert@0" and row["launch"] == 1 else 4)
    row = found.loc["bert@0", "alone", "p50"]
    assert row["refused"].startswith("steps cover different numbers of units in different launches")
    assert row[["ms", "units"]].isna().all()
    assert found.loc[("stream@1", "antagonist-alone:stream@1", "p50"), "units"] == 4


def test_steps_of_another_size_than_the_baselines_have_no_ratio():
    found = table(units=lambda row, _: 8 if row["scene"].startswith("corun") else 4)
    row = found.loc["bert@0", "corun:bert+stream", "p50"]
    assert (row["refused"], row["units"], row["launches_paired"]) == ("", 8, 0)
    assert np.isnan(row["ratio"])


def test_a_phase_has_quantiles_of_the_steps_that_have_it():
    """Prefill takes a fifth of a step alone and half of it beside others; what has no phases has no row of them."""
    windows = written(MIX, lambda *_: 1.0, rounds=2)
    beats = heartbeats(windows, lambda row: MS[row["scene"]] * 10**6)
    beats = beats.merge(windows[["launch", "window", "member", "scene"]], on=["launch", "window", "member"])
    lead = beats["member"] == "bert@0"
    beats["prefill_s"] = np.where(beats["scene"].str.startswith("corun"), 7.5e-3, 2e-3)
    beats["decode_s"] = np.where(beats.index % 2, 1e-3, 0.0)  # half of the steps have none
    beats.loc[~lead, ["prefill_s", "decode_s"]] = np.nan
    beats["decode/attention_s"] = 1e-3
    found = latencies(MIX, windows, [beats]).set_index(["what", "member", "scene", "quantile"])
    row = found.loc["prefill phase", "bert@0", "corun:bert+stream", "p50"]
    assert (row["ms"], row["ratio"], row["steps"]) == (pytest.approx(7.5), pytest.approx(3.75), 4 * 280)
    assert found.loc[("decode phase", "bert@0", "alone", "p50"), ["ms", "steps"]].tolist() == [pytest.approx(1), 560]
    assert found.loc[("step", "bert@0", "alone", "p50"), "ms"] == pytest.approx(10)
    assert {(what, member) for what, member, *_ in found.index if what != "step"} == {
        ("prefill phase", "bert@0"), ("decode phase", "bert@0"),
    }  # fmt: skip


def test_nothing_measured_is_no_row_and_no_beats_are_refused():
    windows = written(MIX, lambda *_: 1.0)
    found = latencies(MIX, windows, [])
    assert set(found["refused"]) == {"no step lies wholly within a valid window"}
    assert latencies(MIX, windows[:0], []).empty


@pytest.mark.parametrize(("steps", "share"), [(80, 0.5), (80, 0.95), (400, 0.99)])
def test_intervals_over_launches_cover_where_pooled_steps_do_not(steps, share):
    """Simulated: 400 studies of five launches that differ by 5 %; steps are lognormal and follow each other (0.6)."""
    rng, studies, launches = np.random.default_rng(20261124), 400, 5
    noise = rng.normal(0, 0.2, (studies * launches, steps))
    for place in range(1, steps):
        noise[:, place] = 0.6 * noise[:, place - 1] + 0.8 * noise[:, place]
    log_ns = noise + rng.normal(0, 0.05, (studies * launches, 1)) + np.log(1e7)
    group = np.repeat(np.arange(studies * launches), steps)
    values = quantiles(np.exp(log_ns).astype(np.int64).ravel(), group, np.bincount(group), [share])[:, 0]
    values_of = pd.DataFrame(
        {"study": np.arange(len(values)) // launches, "cohort": "c", "launch": np.arange(len(values))}
    )
    values_of["difference"] = np.log(values)
    truth = values_of["difference"].mean()  # what launches like these show: 2000 of them
    found = estimate(values_of, ["study"])
    assert 0.92 <= ((found["low"] <= truth) & (truth <= found["high"])).mean() <= 0.98
    pooled = np.sort(log_ns.reshape(studies, -1), axis=1)
    low, high = (int(stats.binom.ppf(edge, pooled.shape[1], share)) for edge in (0.025, 0.975))
    assert ((pooled[:, low] <= truth) & (truth <= pooled[:, high])).mean() < 0.85
