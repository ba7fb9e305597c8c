"""Do the intervals of step times, of what members used and of what they keep together cover the truth? Simulated.

Many studies of one mix side by side, each a separate cohort, through the very functions that print the tables.
"""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.explanations.resources import NEEDED, OCCUPANCY, resources
from castmates.analysis.explanations.services import latencies
from castmates.analysis.partitions.recommendation import pareto_table
from castmates.results.columns.launch import LAUNCH_TABLES, STEPS, TOPDOWN, WINDOWS
from castmates.results.columns.study import frame
from tests.unit.printed_intervals import assert_told
from tests.unit.test_coverage_of_reasons import STUDIES, Studies, covers
from tests.unit.windows_maker import cohort, mix, one_slice, plan, slices_of

LOSS = 0.15
STEPS_OF_A_WINDOW = 80  # of which p50 and p95 can be given
BESIDE = {"x@1": 0.1, "y@2": 0.3}  # what the antagonists lose
SPREAD, NOISE = 0.015, 0.01  # sd between launches of what a scene does to a member, and of a window


def plan_of(launches, *antagonists):
    names = [f"lead{number:03d}" for number in range(STUDIES)]
    return plan([cohort(name, mix(f"{name}@0", *antagonists)) for name in names], launches)


@pytest.mark.parametrize("launches", [3, 10])
def test_quantiles_of_step_times(launches):
    """Steps are lognormal and follow each other (0.6); what the co-run adds differs from launch to launch."""
    studies = Studies(launches, seed=5)
    logs, _ = studies.values(LOSS)
    windows = studies.windows[:: 3 * 2].index  # the first round has steps enough
    keep = np.sort(np.concatenate([windows, windows + 1]))
    own, level = studies.windows.loc[keep].reset_index(drop=True), logs[keep]
    noise = studies.dice.normal(0, 0.2, (len(own), STEPS_OF_A_WINDOW))
    for place in range(1, STEPS_OF_A_WINDOW):
        noise[:, place] = 0.6 * noise[:, place - 1] + 0.8 * noise[:, place]
    lengths = np.exp(np.log(1e7) + level[:, None] + noise).astype(np.int64)
    times = np.cumsum(np.column_stack([np.zeros(len(own), dtype=np.int64), lengths]), axis=1)
    beats = own.loc[own.index.repeat(times.shape[1]), ["study", "cohort", "launch", "window", "member", "platform"]]
    beats = beats.assign(t_ns=times.ravel(), units=np.tile(np.arange(times.shape[1]), len(own)), slice=beats["window"])
    table = latencies(plan_of(launches, "x@1"), own, [beats.reindex(columns=list(STEPS))])
    found = {"ms": [], "ratio": []}
    for quantile in ("p50", "p95"):
        rows = table[table["quantile"] == quantile]
        for kind in ("alone", "corun"):
            ms = rows[rows["kind"] == kind]
            truth = np.exp(np.log(ms["ms"]).mean())  # what all the launches show: 400 times as many
            found["ms"].append(covers(ms["ms_low"], ms["ms_high"], truth))
        ratio = rows[rows["kind"] == "corun"]
        found["ratio"].append(covers(ratio["ratio_low"], ratio["ratio_high"], np.exp(LOSS)))
    for name, shares in found.items():
        assert 0.915 <= min(shares) <= max(shares) <= 0.985
        assert_told("latency", f"{name}_low", *shares)


@pytest.mark.parametrize("launches", [3, 10])
def test_what_members_used(launches):
    studies = Studies(launches, seed=6)
    logs, _ = studies.values(LOSS)
    shares, _ = studies.values(0.04)
    windows = studies.windows
    held = windows[["cohort", "launch", "window"]].assign(
        t_ns=1, source="resctrl", subject=windows["member"], metric="llc_occupancy", value=1e6 * np.exp(logs), note=""
    )
    slots = studies.rows(dict(TOPDOWN), metric="Backend_Bound", value=0.3 + shares)
    read = {name: frame([], LAUNCH_TABLES[name])[columns] for name, columns in NEEDED.items()}
    read |= {
        "slices": slices_of(windows)[NEEDED["slices"]],
        "samples": held[NEEDED["samples"]],
        "topdown": slots[NEEDED["topdown"]],
    }
    table = resources(plan_of(launches, "x@1"), windows, [read]).set_index("metric")
    truths = {
        OCCUPANCY: {"value": 1e6 * np.exp(LOSS), "baseline": 1e6, "change": np.exp(LOSS)},
        "Backend_Bound": {"value": 34, "baseline": 30, "change": 4},
    }
    for name in ("value", "baseline", "change"):
        found = [
            covers(table.loc[metric, f"{name}_low"], table.loc[metric, f"{name}_high"], truth[name])
            for metric, truth in truths.items()
        ]
        assert 0.915 <= min(found) <= max(found) <= 0.985
        assert_told("resources", f"{name}_low", *found)


def members_windows(launches, seed):
    """Windows of a lead and two antagonists, alone and together, two rounds of each."""
    dice = np.random.default_rng([seed, launches])
    study, launch, round_ = (axis.ravel() for axis in np.indices((STUDIES, launches, 2)))
    name = np.char.add("lead", np.char.zfill(study.astype(str), 3)).astype(object)
    common = dice.normal(0, SPREAD, (STUDIES, launches))  # what strikes all members of a launch
    tables = []
    for place, (member, loss) in enumerate({"": LOSS, **BESIDE}.items()):
        moved = loss + common + dice.normal(0, SPREAD, (STUDIES, launches))
        who = member or name + "@0"
        for kind, lost in (("alone" if member == "" else "antagonist-alone", 0.0), ("corun", moved[study, launch])):
            scene = name + "+x+y" if kind == "corun" else "alone" if member == "" else f"antagonist-alone:{member}"
            tables.append(pd.DataFrame({
                "cohort": name, "launch": launch + 1, "round": round_ + 1, "window": 8 * round_ + 2 * place,
                "scene": "corun:" + scene if kind == "corun" else scene, "kind": kind, "member": who,
                "role": "antagonist" if member else "lead", "valid": True, "platform": "measured",
                "rate": np.exp(dice.normal(0, NOISE, len(study)) - lost), "reasons": "", "reason_kinds": "",
            } | one_slice(True)))  # fmt: skip
    return pd.concat(tables, ignore_index=True).reindex(columns=list(WINDOWS))


@pytest.mark.parametrize("launches", [3, 10])
def test_what_a_lead_loses_and_what_others_keep(launches):
    of, windows = plan_of(launches, *BESIDE), members_windows(launches, seed=7)
    table = pareto_table(of, windows, estimate_effects(of, windows, 0.02))
    assert len(table) == STUDIES
    truths = {"loss": 100 * -np.expm1(-LOSS)}
    # What launches like these show: all of them together.
    truths |= {name: np.exp(np.log(table[column]).mean()) for name, column in (("kept", "kept_pct"), ("stp", "stp"))}
    for name, truth in truths.items():
        share = covers(table[f"{name}_low"], table[f"{name}_high"], truth)
        assert 0.915 <= share <= 0.985, name
        assert_told("pareto", f"{name}_low", share)
    assert truths["stp"] == pytest.approx(sum(np.exp(-loss) for loss in (LOSS, *BESIDE.values())), rel=0.002)
