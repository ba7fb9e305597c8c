"""The figures `phase_counts` and `topdown_phases` show what the tables hold; the results are made up."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from castmates.report.figures import phase_counts, topdown_phases
from castmates.report.figures.texts import texts_for
from castmates.report.results import read_results
from castmates.results.columns.launch import COUNTERS, TOPDOWN
from castmates.results.columns.study import frame
from castmates.study import capabilities
from castmates.study.counter_keys import BY_NAME
from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.reading import read_keys
from tests.unit.phases.test_phase_figures import FORWARD, PARTS, texts
from tests.unit.phases.test_phase_figures import results as with_phases
from tests.unit.topdown_maker import shares

PER_STEP = {"instructions": 8e6, "cycles": 4e6, "LLC-load-misses": 4e3}  # of each phase, alone
BESIDE = {"instructions": 1.0, "cycles": 1.5, "LLC-load-misses": 3.0}  # times as many in `forward`, beside others
LOST = {"forward": 0.2}  # of the slots


def made(folder, launches=3, **more):
    """Results whose lead reports phases, with what was counted in them and where their slots went."""
    with_phases(folder, launches=launches, **more)
    dice, noise = random.Random(5), np.random.default_rng(5)
    windows = pd.read_parquet(folder / "tables" / "windows.parquet")
    for (cohort, launch), own in windows.groupby(["cohort", "launch"]):
        counted, slots = [], []
        for window in own.to_dict("records"):
            beside = window["kind"] == "corun"
            same = {name: window[name] for name in ("study", "cohort", "launch", "window", "round", "scene", "member")}
            same |= {"platform": window["platform"], "running": np.nan, "note": ""}
            for phase, part in PARTS.items():
                longer = FORWARD if beside and phase == "forward" else 1.0
                for event, value in PER_STEP.items():
                    times = BESIDE[event] if beside and phase == "forward" else 1.0
                    value = 20 * value * times * float(np.exp(noise.normal(0, 0.01)))
                    counted.append(same | {"event": event, "set": "phases", "value": value, "status": "counted",
                                           "scope": "process", "source": "in-process", "phase": phase,
                                           "seconds": 20 * 0.01 * part * longer})  # fmt: skip
                for name, value in shares(LOST.get(phase, 0.0) if beside else 0.0, dice).items():
                    slots.append(
                        same
                        | {
                            "level": BY_NAME[name].level,
                            "metric": name,
                            "value": value,
                            "status": "scaled",
                            "scope": "",
                            "source": "by time",
                            "phase": phase,
                        }
                    )
        place = folder / "launches" / str(cohort) / str(launch)
        assert json.loads((place / "launch.json").read_text())
        frame(counted, COUNTERS).to_parquet(place / "counters.parquet", index=False)
        frame(slots, TOPDOWN).to_parquet(place / "topdown.parquet", index=False)
    return read_results(folder)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return made(tmp_path_factory.mktemp("results") / "study")


def test_counts_by_phase_are_in_the_picture_and_in_words(usual):
    figure, source = phase_counts.draw(usual)
    own = source[source["antagonists"] == "stream"].set_index(["phase", "metric"])["ratio"]
    assert own["forward", "LLC-load-misses"] == pytest.approx(3, abs=0.05)
    assert own["forward", "instructions per cycle"] == pytest.approx(1 / 1.5, abs=0.02)
    assert own["backward", "LLC-load-misses"] == pytest.approx(1, abs=0.02)
    assert {"dlrm-train: input", "dlrm-train: forward", "dlrm-train: backward"} <= set(texts(figure))
    told = texts_for("phase_counts", usual)
    value = f"{own['forward', 'LLC-load-misses']:.3g} times alone"
    assert f"LLC-load-misses in forward of dlrm-train beside stream {value}" in told.alternative
    assert "bar: 95 % between launches" in " ".join(texts(figure)).replace("\n", " ")


def test_top_down_by_phase_names_the_phase_whose_slots_are_lost(usual):
    figure, source = topdown_phases.draw(usual)
    own = source[(source["metric"] == "Backend_Bound") & (source["mix"] == "dlrm-train+stream")].set_index("phase")
    assert own.loc["forward", "points"] == pytest.approx(16, abs=1)
    assert own.loc["input", "points"] == pytest.approx(0, abs=1)
    assert own.loc["forward", "points_low"] < own.loc["forward", "points"] < own.loc["forward", "points_high"]
    words = texts(figure)
    assert {"dlrm-train: forward", "alone", "beside stream"} <= set(words)
    assert [word for word in words if ": " in word and word.startswith("dlrm")] == [
        f"dlrm-train: {phase}" for phase in ("input", "forward", "backward")
    ]  # as they follow each other in the step
    assert any(word.startswith(("Backend Bound +16", "Backend Bound +15")) for word in words)
    assert "forward of dlrm-train beside stream: Backend Bound +1" in texts_for("topdown_phases", usual).alternative


def test_without_counts_of_phases_both_figures_say_so(tmp_path):
    told = with_phases(tmp_path / "study")
    figure, source = phase_counts.draw(told)
    assert source.empty
    assert "Nothing was counted in the phases" in " ".join(texts(figure)).replace("\n", " ")
    figure, source = topdown_phases.draw(told)
    assert source.empty
    assert texts_for("topdown_phases", told).alternative == topdown_phases.lacking(told)


def test_what_was_divided_by_time_is_said(tmp_path):
    told = made(tmp_path / "study", launches=3)
    for file in (tmp_path / "study" / "launches").glob("*/*/counters.parquet"):
        pd.read_parquet(file).assign(source="by time", status="scaled").to_parquet(file, index=False)
    told = read_results(tmp_path / "study")
    assert "divided among phases by time" in " ".join(texts(phase_counts.draw(told)[0])).replace("\n", " ")


def plan_of(study):
    cohort = SimpleNamespace(lead=SimpleNamespace(phases=True))
    return SimpleNamespace(launches=[SimpleNamespace(design=design_of(study))], cohorts=[cohort])


@pytest.mark.parametrize(("keys", "there"), [("{}", True), ("{topdown: 0}", False)])
def test_a_study_has_the_figure_of_slots_where_it_counts_them(keys, there):
    study = read_keys(Study, f"name: one\nleads: [chase]\nantagonists: [stream]\ncounters: {keys}\n", "study.yaml")
    plan = plan_of(study)
    assert capabilities.PHASES.asked(plan)
    assert capabilities.TOPDOWN_PHASES.asked(plan) == there
    without = SimpleNamespace(launches=plan.launches, cohorts=[])
    assert not capabilities.PHASES.asked(without)
