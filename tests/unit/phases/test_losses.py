"""Losses by phase: paired within rounds, adding up to the loss of the step; synthetic steps with known answers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.explanations.phases import REST, STEP, largest_loss
from castmates.results.columns.launch import STEPS, WINDOWS
from castmates.results.columns.study import frame
from tests.unit.phases.by_phase import phase_losses
from tests.unit.windows_maker import one_slice

PHASES = ("input", "forward", "backward")
SLICES, STEPS_IN_SLICE = 3, 5


def tables(launches: int, rounds: int, parts, valid=lambda *_: True):
    """`parts(launch, round, scene)` -> seconds of input, forward, backward and the rest of every step there."""
    steps, windows = [], []
    for launch in range(1, launches + 1):
        same = {"study": "s", "cohort": "c", "launch": launch, "member": "lead@0", "platform": "measured"}
        number = 0
        for turn in range(1, rounds + 1):
            for scene, kind, mix in (("alone", "alone", ""), ("corun:lead+other", "corun", "lead+other")):
                number += 1
                *inside, rest = parts(launch, turn, scene)
                t_ns, unit = 10**12 * number, 99
                for step in range(STEPS_IN_SLICE * SLICES):
                    begin, unit = t_ns, unit + 1
                    if step and step % STEPS_IN_SLICE == 0:  # others had their turns, and it went on a little unseen
                        t_ns, unit = t_ns + 10**9, unit + 7
                        begin = t_ns
                    t_ns += round(1e9 * (sum(inside) + rest))
                    spent = {f"{name}_s": one for name, one in zip(PHASES, inside, strict=True)}
                    nested = {"forward/attention_s": inside[1] / 2, "threads/decode_s": 9.0}
                    row = {
                        "window": number,
                        "slice": SLICES * number + step // STEPS_IN_SLICE,
                        "t_ns": t_ns,
                        "units": unit,
                    }
                    row["begin_ns"] = begin if step else None
                    steps.append(same | row | (spent | nested if step else {}))
                windows.append(
                    same | {"window": number, "scene": scene, "kind": kind, "mix": mix, "round": turn, "position": 1,
                            "workload": "lead", "role": "lead", "valid": valid(launch, turn, scene), "beats": 5,
                            "open_ns": 0, "close_ns": 0, "partition": "unmanaged"} | one_slice(True)
                )  # fmt: skip
    columns = {f"{name}_s": "float64" for name in (*PHASES, "forward/attention", "threads/decode")}
    return frame(steps, dict(STEPS) | columns), frame(windows, WINDOWS)


def known(launch, turn, scene):
    slower = 1 + 0.1 * launch  # a slower launch
    if scene == "alone":
        return tuple(slower * one for one in (0.010, 0.040, 0.045, 0.005))
    return tuple(slower * one for one in (0.010, 0.050, 0.049, 0.005))


def test_each_phase_loses_what_it_takes_longer_of_the_whole_alone_step():
    found = phase_losses(*tables(3, 2, known)).set_index("phase")
    assert list(found.index) == ["input", "forward", "backward", "forward/attention", "threads/decode", REST, STEP]
    assert found["loss_pct"].to_dict() == pytest.approx(
        {"input": 0, "forward": 10, "backward": 4, "forward/attention": 5, "threads/decode": 0, REST: 0, STEP: 14},
        abs=1e-4,
    )
    assert found.loc["forward", "share_pct"] == pytest.approx(40)
    assert found.loc["forward", ["baseline_ms", "scene_ms"]].tolist() == pytest.approx([48, 60])
    assert found["outermost"].to_dict() == {
        "input": True, "forward": True, "backward": True, "forward/attention": False, "threads/decode": False,
        REST: True, STEP: False,
    }  # fmt: skip
    assert set(found["launches"]) == {3}
    assert set(found["rounds"]) == {6}
    assert (found["loss_high"] - found["loss_low"]).max() < 1e-3, "launches that agree leave no doubt"
    assert largest_loss(found.reset_index().to_dict("records"))["phase"] == "forward"


@pytest.mark.parametrize(
    "names", [("step", "rest"), ("step", "step (phase)"), ("seconds", "phase"), ("length", "done")]
)
def test_whatever_phases_are_called_the_numbers_stay_the_same(names):
    steps, windows = tables(2, 2, known)
    usual = phase_losses(steps, windows).set_index("phase")["loss_pct"]
    columns = dict(zip(("input_s", "forward_s"), (f"{name}_s" for name in names), strict=True))
    found = phase_losses(steps.rename(columns=columns), windows).set_index("phase")
    assert found["loss_pct"].tolist() == pytest.approx(usual.tolist(), abs=1e-9)
    assert found["loss_pct"][[REST, STEP]].tolist() == pytest.approx([0, 14], abs=1e-4)
    assert found.index.is_unique
    assert not found.loc[STEP, "outermost"]
    assert found["outermost"].sum() == 4


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_the_parts_add_up_to_the_step(seed, launches):
    rng = np.random.default_rng(seed)
    found = phase_losses(*tables(launches, 2, lambda *_: tuple(rng.uniform(0.001, 0.05, 4))))
    parts, whole = found[found["outermost"]], found[found["phase"] == STEP].iloc[0]
    for column in ("loss_pct", "baseline_ms", "scene_ms", "share_pct"):
        expected = 100 if column == "share_pct" else whole[column]
        assert parts[column].sum() == pytest.approx(expected, abs=1e-3)


def test_only_rounds_with_both_windows_valid_count():
    bad = (2, 1, "alone")
    steps, windows = tables(2, 2, known, valid=lambda *place: place != bad)
    found = phase_losses(steps, windows).set_index("phase")
    assert found.loc["forward", "rounds"] == 3
    assert found.loc["forward", "loss_pct"] == pytest.approx(10)
    assert found["loss_low"].isna().all(), "two launches have no interval between them"


def test_units_of_one_heartbeat_share_its_phases():
    steps, windows = tables(1, 1, known)
    steps["units"] *= 10  # ten steps a heartbeat
    spent = phase_losses(steps, windows).set_index("phase")["baseline_ms"]
    assert spent["forward"] == pytest.approx(4.4)
    assert spent[STEP] == pytest.approx(11)


def test_leads_without_phases_and_antagonists_give_no_rows():
    steps, windows = tables(2, 2, known)
    silent = steps.drop(columns=[name for name in steps if name.endswith("_s")]).assign(begin_ns=pd.NA)
    assert phase_losses(silent.astype({"begin_ns": "Int64"}), windows).empty
    assert phase_losses(steps, windows.assign(role="antagonist")).empty
    assert phase_losses(steps.iloc[:0], windows).empty


def test_under_a_partition_the_mix_without_one_is_a_baseline_too():
    steps, windows = tables(2, 2, known)
    under = windows[windows["kind"] == "corun"].assign(partition="split-4", scene="corun:lead+other@split-4")
    under["window"] += 100
    again = steps.merge(windows.loc[windows["kind"] == "corun", ["launch", "window"]]).assign(
        window=lambda table: table["window"] + 100
    )
    found = phase_losses(pd.concat([steps, again]), pd.concat([windows, under]))
    forward = found[found["phase"] == "forward"].set_index(["partition", "baseline"])["loss_pct"]
    assert forward.to_dict() == pytest.approx(
        {("unmanaged", "alone"): 10, ("split-4", "alone"): 10, ("split-4", "unmanaged"): 0}, abs=1e-4
    )


def test_names_may_be_categories_and_windows_of_others_are_left_out():
    steps, windows = tables(2, 2, known, valid=lambda launch, turn, _: (launch, turn) != (2, 1))
    others = steps.assign(member="other@1")
    mixed = pd.concat([steps, others]).sort_values(["launch", "window", "t_ns"], kind="stable", ignore_index=True)
    mixed = mixed.assign(**{name: mixed[name].astype("category") for name in ("study", "cohort", "member", "platform")})
    plain = phase_losses(steps, windows)
    assert set(plain["rounds"]) == {3}
    pd.testing.assert_frame_equal(phase_losses(mixed, windows), plain, check_exact=True)
    nothing = phase_losses(others, windows)
    assert nothing.empty
    assert list(nothing) == list(plain)
