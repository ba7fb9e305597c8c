"""What a trial shows: how much more work a changed lead does, alone and beside its antagonists."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.findings.findings import gains
from castmates.report.findings import Tried, loss_of, read_trial
from castmates.report.text.words import sentences
from castmates.results.columns.findings import GAINS
from castmates.results.columns.study import EFFECTS, MITIGATIONS, frame
from castmates.results.find import NEEDED
from castmates.results.folder import StudyFolder
from castmates.results.trials import TrialRecord
from castmates.study.class_names import named
from tests.unit.printed_intervals import assert_told
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before

LEADS = {"job": 100.0, "job-changed": 40.0}
LAUNCHES, ROUNDS = 5, 3


def windows(gain_beside, dice, mixes=1, launches=LAUNCHES, between=0.03):
    """Launches of a lead and of a changed one, which does 1.1 times the work alone, and so much beside antagonists."""
    parts = []
    for lead, rate in LEADS.items():
        is_changed = lead != "job"
        launch = dice.normal(0, between * (1 + is_changed), (mixes, launches, 1))  # a launch is as good alone as beside
        for kind, gain, loss in (("alone", 1.1, 1.0), ("corun", gain_beside, 0.8)):
            level = np.log(rate * loss * (gain if is_changed else 1.0))
            log = level + launch + dice.normal(0, 0.01, (mixes, launches, ROUNDS))
            at = np.indices(log.shape).reshape(3, -1)
            mix = [f"{lead}+n{number}" for number in at[0]]
            parts.append(pd.DataFrame({
                "scene": [f"corun:{name}" for name in mix] if kind == "corun" else "alone",
                "member": f"{lead}@0", "workload": lead,
                "cohort": [f"{lead}-{number}" for number in at[0]], "launch": at[1] + 1, "unit": "step",
                "valid": True, "rate": np.exp(log.ravel()), "platform": "measured", "study": "trial",
            }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def beside(mixes=1):
    return {f"{lead}+n{number}": f"n{number}" for lead in LEADS for number in range(mixes)}


def test_the_gain_is_of_work_and_not_of_steps_and_a_loss_has_its_sign():
    dice = np.random.default_rng(1)
    table = gains(windows(0.7, dice, between=0.002), "job", "job-changed", 2.5, beside(), margin=0.02).set_index(
        "beside"
    )
    assert list(table.index) == ["", "n0"]  # alone first
    assert list(table["verdict"]) == ["gain", "loss"]
    assert table["gain_pct"].tolist() == pytest.approx([10.0, -30.0], abs=1.0)
    assert table["changed_rate"].iloc[0] == pytest.approx(44.0, abs=1.0)
    assert (table["launches"] == LAUNCHES).all()
    assert table["rate"].iloc[0] == pytest.approx(100.0, abs=2.0)


def test_leads_on_nodes_of_a_class_are_known_by_their_names_without_it():
    made = windows(0.7, np.random.default_rng(1))
    classed = made.assign(member=made["member"].map(lambda name: named(name, "xeon")))
    found = [gains(each, "job", "job-changed", 2.5, beside(), margin=0.02) for each in (made, classed)]
    assert len(found[1]) == 2
    pd.testing.assert_frame_equal(*found)
    row = {"lead": "job~xeon", "antagonists": "n0", "loss_pct": 9.0, "loss_low": 8.0, "loss_high": 10.0}
    trial = TrialRecord("t", "small-operations/job~xeon", "job", "job-changed", "", (), 1.0, "x")
    assert loss_of(Tried(trial, found[1], pd.DataFrame([row]), pd.DataFrame()), "job", "n0") == (9.0, 8.0, 10.0)


def test_what_does_not_count_is_left_out_and_two_launches_prove_nothing():
    dice = np.random.default_rng(2)
    two = windows(2.0, dice, launches=2)
    rejected = two.assign(valid=False, rate=two["rate"] * 100, launch=1)
    placebo = two.assign(scene="placebo:1", rate=1e6)
    assert {*two.columns} - {"study"} <= {*NEEDED} | {"round"}  # what a comparison reads of windows
    table = gains(pd.concat([two, rejected, placebo]), "job", "job-changed", 2.5, beside(), margin=0.02)
    assert list(table["verdict"]) == ["too few launches"] * 2
    assert table["gain_low"].isna().all()
    assert (table["gain_pct"] > 0).all()
    assert gains(two.iloc[:0], "job", "job-changed", 1.0, beside(), margin=0.02).empty


def test_the_intervals_of_gains_hold_the_truth():
    studies, shares = 2000, []
    for launches in (3, LAUNCHES):
        made = windows(1.2, np.random.default_rng(3), studies, launches)
        table = gains(made, "job", "job-changed", 2.5, beside(studies), margin=0.02)
        held = table[table["beside"] != ""]
        assert len(held) == studies
        shares.append(float(((held["gain_low"] <= 20.0) & (held["gain_high"] >= 20.0)).mean()))
    assert_told("gains", "gain_low", *shares)


def trial_of(**changes):
    changed = (("--batch", "64", "160"),)
    return replace(TrialRecord("trial", "input-bound/job", "job", "job-changed", "", changed, 2.5, "Speed."), **changes)


def test_a_trial_is_put_in_words():
    """The gain of a changed lead with the losses of both; mitigations; what was not measured has its reason."""
    table = gains(
        windows(0.7, np.random.default_rng(1), between=0.002), "job", "job-changed", 2.5, beside(), margin=0.02
    )
    loss = {"antagonists": "n0", "lead": ["job", "job-changed"], "loss_pct": [20.0, 49.0]}
    losses = pd.DataFrame(loss | {"loss_low": [19.0, 48.0], "loss_high": [21.0, 50.0]})
    rows = [{"mitigation": "unmanaged", "gain_pct": 0.0, "launches": 5},
            {"mitigation": "quota", "partition": "quota-50", "gain_pct": 8.0, "gain_low": 5.0, "gain_high": 11.0,
             "cost_pct": 48.0, "launches": 5, "verdict": "gain"},
            {"mitigation": "ways", "gain_pct": np.nan, "launches": 0, "reason": "nothing is cut here"}]  # fmt: skip
    empty = {name: 0 if kind == "int64" else np.nan if kind == "float64" else "" for name, kind in MITIGATIONS.items()}
    tried = frame([empty | row for row in rows], MITIGATIONS)
    nothing = frame([], GAINS), frame([], EFFECTS)
    trials = {
        "a changed lead": Tried(trial_of(), table, losses, frame([], MITIGATIONS)),
        "mitigations": Tried(trial_of(changed="", mix="job+n0"), *nothing, tried),
        "no results yet": Tried(trial_of(), *nothing, frame([], MITIGATIONS)),
    }
    assert_as_before("gains", {name: sentences(trial) for name, trial in trials.items()})


def test_a_trial_of_a_changed_lead_needs_no_table_of_mitigations(tmp_path):
    trial = trial_of()
    own = make(tmp_path / trial.name, leads=["job", "job-changed"], antagonists=["n0"], launches=3)
    for (cohort, launch), rows in pd.read_parquet(own / "tables/windows.parquet").groupby(["cohort", "launch"]):
        rows.to_parquet(own / "launches" / cohort / str(launch) / "windows.parquet")
    assert not (own / "tables/mitigations.parquet").exists()
    tried = read_trial(trial, StudyFolder(tmp_path / "study"))
    assert set(tried.losses["lead"]) == {"job", "job-changed"}
    assert tried.mitigations.empty
